package rxudp

import (
	"sync"
	"time"
)

// grace is how long nobody may receive, as it takes a thread's wake-up to have somebody do so.
const grace = time.Millisecond

// A role is the receiver's: at most one goroutine at a time receives. A wake-up of a thread
// takes longer than a short call, so neither side of one has to have another goroutine woken:
//
//   - A caller that waits for its reply receives itself for a while, if nobody does.
//   - Who has received a call carries it out, if the service's handlers are brief.
//
// In between the role is lent: nobody has it, and it is taken again soon. Before something
// waits, and once a grace is over, a goroutine of its own takes it, which is read.
type role struct {
	held    bool
	turns   uint64 // how often it was taken
	ticking bool
	seen    uint64 // turns at the last tick
	tick    *time.Timer
	reading sync.WaitGroup // read
}

// take has the caller receive from now on. It is called with the lock held, while nobody has
// the role.
func (r *role) take() {
	r.held = true
	r.turns++
}

// lend ends that. If nobody has taken the role again before the grace ends, a goroutine does.
func (e *Endpoint) lend() {
	r := &e.role
	r.held = false
	if !r.ticking && !e.closed {
		r.ticking, r.seen = true, r.turns
		r.tick.Reset(grace)
	}
}

// lapse is called now and then while the role is lent.
func (e *Endpoint) lapse() {
	e.mu.Lock()
	defer e.unlock() // what who carries out calls would have sent
	r := &e.role
	r.ticking = false
	switch {
	case r.held || e.closed:
	case r.turns == r.seen:
		if e.spares {
			e.spinner.lost() // calls come too seldom for that
		}
		e.attend()
	default:
		r.ticking, r.seen = true, r.turns
		r.tick.Reset(grace)
	}
}

// attend has a goroutine receive if nobody does. It is called before anything waits.
func (e *Endpoint) attend() {
	if e.role.held || e.closed {
		return
	}
	e.role.take()
	e.role.reading.Go(e.read)
}
