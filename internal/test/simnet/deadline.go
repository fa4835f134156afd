package simnet

import (
	"sync"
	"time"
)

// A deadline is a time that can be moved while others wait for it. Its zero
// value never comes.
type deadline struct {
	mu    sync.Mutex
	moved int           // how often; a timer of an earlier time does nothing
	timer *time.Timer   // or nil
	c     chan struct{} // closed when the time has passed
}

// passed returns a channel that is closed when the time has passed.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh()
	return d.c
}

// over reports whether the time has passed.
func (d *deadline) over() bool {
	select {
	case <-d.passed():
		return true
	default:
		return false
	}
}

// set moves the deadline; the zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop() // if it fires all the same, it finds that it is late
		d.timer = nil
	}
	d.moved++
	d.fresh()
	select {
	case <-d.c:
		d.c = make(chan struct{})
	default:
	}
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		close(d.c)
	default:
		now := d.moved
		d.timer = time.AfterFunc(left, func() { d.expire(now) })
	}
}

// expire is the timer's end.
func (d *deadline) expire(set int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.moved == set {
		close(d.c)
	}
}

// fresh makes the channel if there is none. The caller holds mu.
func (d *deadline) fresh() {
	if d.c == nil {
		d.c = make(chan struct{})
	}
}
