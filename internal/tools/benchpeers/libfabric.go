package main

import (
	"fmt"
	"strconv"
	"strings"
)

// parsePingPong reads what fi_pingpong prints: a line of names and a line of
// figures for the one size that was asked for. Its MB are 10^6 bytes, and an
// xfer is a message in one direction: half a round trip, of which an iteration
// has two. An "=" before #ack says that all messages were acknowledged.
//
// Its time has two decimals only, so it is taken from that of a message.
func parsePingPong(out []byte, iterations int) (reading, error) {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, line := range lines[:len(lines)-1] {
		names, figures := strings.Fields(line), strings.Fields(lines[i+1])
		if len(names) == 0 || names[0] != "bytes" {
			continue
		}
		if len(names) != len(figures) {
			return reading{}, fmt.Errorf("fi_pingpong printed %d figures for %d names: %s", len(figures), len(names), lines[i+1])
		}
		r, err := pingPongLine(names, figures)
		r.Seconds = 2 * float64(iterations) * r.LatencyNS / 1e9
		return r, err
	}
	return reading{}, fmt.Errorf("fi_pingpong printed no figures: %s", tail(out))
}

func pingPongLine(names, figures []string) (r reading, err error) {
	for i, name := range names {
		var to *float64
		switch name {
		case "#ack":
			if !strings.HasPrefix(figures[i], "=") {
				return reading{}, fmt.Errorf("fi_pingpong lost messages: %s acknowledged", figures[i])
			}
			continue
		case "MB/sec":
			to = &r.BytesPerSecond
		case "usec/xfer":
			to = &r.LatencyNS
		default:
			continue
		}
		if *to, err = strconv.ParseFloat(figures[i], 64); err != nil {
			return reading{}, fmt.Errorf("fi_pingpong's %s: %w", name, err)
		}
	}
	if r.BytesPerSecond <= 0 || r.LatencyNS <= 0 {
		return reading{}, fmt.Errorf("fi_pingpong does not say its MB/sec and usec/xfer: %s", strings.Join(figures, " "))
	}
	r.BytesPerSecond *= 1e6
	r.LatencyNS *= 1e3
	r.MessagesPerSecond = 1e9 / r.LatencyNS
	return r, nil
}
