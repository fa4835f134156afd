package main

import (
	"fmt"
	"strconv"
)

// How figures are written on the page.

func ratioText(v float64) string { return fmt.Sprintf("%.2f", v) }

func bytesText(v float64) string {
	if v < 1e8 {
		return fmt.Sprintf("%.1f MB/s", v/1e6)
	}
	return fmt.Sprintf("%.2f GB/s", v/1e9)
}

func rateText(v float64) string    { return scaled(v) + "/s" }
func connectText(v float64) string { return grouped(v) + "/s" }
func timeText(v float64) string    { return fmt.Sprintf("%.2f µs", v/1e3) }
func millisText(v float64) string  { return fmt.Sprintf("%.1f ms", v/1e6) }
func percentText(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
func memoryText(v float64) string  { return fmt.Sprintf("%.1f KiB", v/1024) }

// allocsText shows a thousandth: below are strays of the runtime, of which there
// are some in any run.
func allocsText(v float64) string { return fmt.Sprintf("%.3f", v) }

// scaled writes a number of messages.
func scaled(v float64) string {
	if v < 1e6 {
		return grouped(v)
	}
	return fmt.Sprintf("%.2f million", v/1e6)
}

// grouped writes a whole number with commas between its thousands.
func grouped(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
