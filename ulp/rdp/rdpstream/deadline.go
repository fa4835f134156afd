package rdpstream

import (
	"context"
	"os"
	"sync"
	"time"
)

// A deadline ends waits. It may be moved while something waits.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{} // closed when the deadline has passed
}

func (d *deadline) init() { d.done = make(chan struct{}) }

// set moves the deadline; the zero Time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.done // it has rung: wait until that is told
	}
	d.timer = nil
	passed := d.passed()
	if t.IsZero() {
		if passed {
			d.done = make(chan struct{})
		}
		return
	}
	if left := time.Until(t); left > 0 {
		if passed {
			d.done = make(chan struct{})
		}
		done := d.done
		d.timer = time.AfterFunc(left, func() { close(done) })
		return
	}
	if !passed {
		close(d.done)
	}
}

func (d *deadline) passed() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// expired reports whether the deadline has passed.
func (d *deadline) expired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed()
}

// context returns a context that ends when the deadline passes.
func (d *deadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return until{context.Background(), d.done}
}

// until is a context that ends with a channel.
type until struct {
	context.Context
	done <-chan struct{}
}

func (u until) Done() <-chan struct{} { return u.done }

func (u until) Err() error {
	select {
	case <-u.done:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}
