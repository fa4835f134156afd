package rdp

import (
	"errors"
	"net"
	"time"

	"urnic/ulp/rdp/machine"
)

// now is the machine's time.
func (e *Endpoint) now() machine.Time { return time.Since(e.start) }

// unlock lets go of the lock after the machine was given something: those that wait are woken, and what there is to send is
// sent.
func (e *Endpoint) unlock() {
	e.carryOut()
	if !e.sending && !e.closed {
		e.transmit()
	}
	e.arm()
	e.mu.Unlock()
}

// carryOut wakes those for whom something has happened.
func (e *Endpoint) carryOut() {
	for events := e.m.Events(); events != nil; events = e.m.Events() {
		for i := range events {
			ev := &events[i]
			if ev.Kind == machine.Acceptable {
				if l := e.listeners[ev.Listener]; l != nil {
					l.ready.Wake()
				}
				continue
			}
			c := e.conns[ev.Conn]
			if c == nil {
				continue // it waits for Accept, or nobody looks at it any more
			}
			switch ev.Kind {
			case machine.Readable:
				c.readable.Wake()
			case machine.Writable:
				c.writable.Wake()
			case machine.Accepted, machine.Acceptable, machine.Answered: // who waits for that waits for the wake.Bell
			case machine.StateChanged:
				c.readable.Wake()
				c.writable.Wake()
				if ev.State == machine.Closed {
					c.leave()
				}
			}
			c.bell.Ring()
		}
	}
}

// turns is how often a goroutine sends for others before it has another one do so.
const turns = 16

// transmit sends what there is to send. It is called with the lock held, and releases it during system calls.
func (e *Endpoint) transmit() {
	e.sending = true
	defer func() { e.sending = false }()
	var b batch
	for i := 0; ; i++ {
		if i == turns {
			e.alarm = -1 // the timer's goroutine continues, now
			e.timer.Reset(0)
			break
		}
		if b == nil {
			b = e.carrier.newBatch()
		}
		if !e.fill(b) {
			break
		}
		e.mu.Unlock()
		err := b.send()
		e.mu.Lock()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				e.failure = err
			}
			break
		}
		e.carryOut()
	}
	e.carrier.freeBatch(b)
}

// fill takes what the machine has to send. It reports whether there was anything.
func (e *Endpoint) fill(b batch) bool {
	now := e.now()
	for {
		mem := b.room(largest)
		if mem == nil {
			break
		}
		segment, p, ok := e.m.Pull(now, mem)
		if !ok {
			break
		}
		if e.recorder != nil {
			e.recorder.Segment(e.localFor(p.Remote), p.Remote, segment)
		}
		b.add(len(segment), p.Remote)
	}
	return !b.empty()
}

// arm sets the timer for the machine's next deadline.
func (e *Endpoint) arm() {
	at, ok := e.m.Deadline()
	switch {
	case e.closed || e.alarm < 0:
	case !ok:
		if e.alarm > 0 {
			e.alarm = 0
			e.timer.Stop()
		}
	case e.alarm == 0 || at < e.alarm:
		e.alarm = max(at, 1)
		e.timer.Reset(max(at-e.now(), 0))
	}
}

// ring is called when the timer rings, which may be before the deadline: it has moved since.
func (e *Endpoint) ring() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.alarm = 0
	e.m.Advance(e.now())
	e.unlock()
}
