package main

import (
	"fmt"
	"syscall"
)

const (
	mostIdleQPs  = 10_000 // that are measured
	leastIdleQPs = 9_500  // that may stand for them
	otherFiles   = 100    // that a program has open beside the sockets of its QPs
)

// idleQPs returns how many QPs a process can have both ends of, up to those that
// are measured, if it may have so many files open.
func idleQPs(files uint64) int {
	if files < 2+otherFiles {
		return 1
	}
	return int(min(mostIdleQPs, (files-otherFiles)/2))
}

// openFiles returns how many files and sockets a program may have open, 0 if
// that is not known. A Go program goes up to the hard limit by itself.
func openFiles() uint64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return l.Max
}

// idle takes the memory of an idle QP from a contest with as many of them as
// there may be.
func idle(name string) func(round) (sample, error) {
	return func(r round) (sample, error) {
		v, err := r.figure(name, idleMemory)
		if err != nil {
			return sample{}, err
		}
		n := r[name].Readings[0].QPs
		if n < leastIdleQPs {
			return sample{}, fmt.Errorf("%s: %d QPs don't stand for %d: raise the hard limit of open files (ulimit -Hn) to %d",
				name, n, mostIdleQPs, 2*mostIdleQPs+otherFiles)
		}
		text := func(v float64) string { return fmt.Sprintf("%s of %s QPs", memoryText(v), grouped(float64(n))) }
		return sample{v, v, 0, text, nil}, nil
	}
}
