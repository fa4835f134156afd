package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// lookAround is how long others are watched before a round.
const lookAround = 300 * time.Millisecond

// othersBusy returns which part of the processors others use while nothing runs
// here.
func othersBusy(ctx context.Context) (float64, error) {
	before, err := processorTimes()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(lookAround):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := processorTimes()
	if err != nil {
		return 0, err
	}
	return before.busyUntil(after), nil
}

// times are what the processors have done since the system started, in ticks.
type times struct{ all, idle float64 }

func (t times) busyUntil(later times) float64 {
	all := later.all - t.all
	if all <= 0 {
		return 0
	}
	return 1 - (later.idle-t.idle)/all
}

func processorTimes() (times, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return times{}, err
	}
	return parseTimes(string(b))
}

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
