package work

import (
	"context"
	"sync"
	"time"
)

// A Life is the context of a call. It makes its channel only if somebody asks for it, as most
// handlers do not.
type Life struct {
	mu    sync.Mutex
	done  chan struct{}
	ended bool
}

var _ context.Context = (*Life)(nil)

// End ends the context: the call has failed, or its handler has returned.
func (l *Life) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	if l.done != nil {
		close(l.done)
	}
}

// Deadline is of context.Context: there is none.
func (*Life) Deadline() (at time.Time, ok bool) { return at, false }

// Done is closed by End.
func (l *Life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.ended {
			close(l.done)
		}
	}
	return l.done
}

// Err is context.Canceled once Done is closed.
func (l *Life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return context.Canceled
	}
	return nil
}

// Value is of context.Context: there is none.
func (*Life) Value(any) any { return nil }
