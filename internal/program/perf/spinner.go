package perf

import (
	"context"
	"runtime"
)

// A spinner is notified each time that a busy loop finds nothing to do.
type spinner struct {
	n     uint
	yield uint // every how many times the processor is left to others
}

// spinners is how many goroutines spin in a process that has both sides.
const spinners = 2

func newSpinner() *spinner {
	s := &spinner{yield: 256}
	if runtime.GOMAXPROCS(0) < spinners { // the other one needs the processor to get on
		s.yield = 1
	}
	return s
}

// pause returns an error when the context has ended.
func (s *spinner) pause(ctx context.Context) error {
	s.n++
	if s.n%s.yield == 0 {
		runtime.Gosched()
	}
	if s.n%1024 == 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
