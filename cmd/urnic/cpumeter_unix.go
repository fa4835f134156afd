//go:build unix

package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

var processors = float64(runtime.NumCPU())

// cpuTime returns the processor time that this process has taken.
func cpuTime() (time.Duration, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
