package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A watch tells how busy others kept the processors for a while: it takes what
// this program and those that it ran have used off what was used in all.
type watch struct {
	all  times
	ours time.Duration
}

func startWatch() (watch, error) {
	var w watch
	stat, err := os.ReadFile("/proc/stat")
	if err == nil {
		w.all, err = parseTimes(string(stat))
	}
	if err != nil {
		return w, err
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return w, err
		}
		w.ours += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return w, nil
}

// others returns the part of the processors' time that others have used since
// then.
func (w watch) others() (float64, error) {
	now, err := startWatch()
	if err != nil {
		return 0, err
	}
	return w.until(now), nil
}

// tick is the unit of the kernel's times.
const tick = 10 * time.Millisecond

func (w watch) until(later watch) float64 {
	all := later.all.all - w.all.all
	if all <= 0 {
		return 0
	}
	busy := all - (later.all.idle - w.all.idle)
	ours := float64(later.ours-w.ours) / float64(tick)
	return min(1, max(0, (busy-ours)/all))
}

// times are what the processors have done since the system started, in ticks.
type times struct{ all, idle float64 }

// parseTimes reads the first line of /proc/stat: "cpu", then the ticks of user,
// nice, system, idle, waiting for I/O, and others.
func parseTimes(stat string) (t times, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	words := strings.Fields(line)
	if len(words) < 6 || words[0] != "cpu" {
		return t, fmt.Errorf("the processors' times: %q", line)
	}
	for i, w := range words[1:] {
		v, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return t, fmt.Errorf("the processors' times: %w", err)
		}
		if i >= 8 { // guests' are in user's
			break
		}
		t.all += v
		if i == 3 || i == 4 {
			t.idle += v
		}
	}
	return t, nil
}
