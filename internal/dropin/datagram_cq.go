//go:build linux

package dropin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"urnic/internal/door"
)

// The datagramWCs of a completion queue are those of queue pairs that package rnic does not know.
type datagramWCs struct {
	pairs atomic.Int32 // queue pairs that complete here
	n     atomic.Int32 // completions

	mu        sync.Mutex
	ring      []datagramWC
	head      int
	armed     bool // the program waits for an event
	solicited bool // of one that is solicited, or in error
	told      bool // it has fired for what is there: nothing was added or polled since
	sinceArm  int  // polls since it was armed last
	wake      context.CancelFunc
}

type datagramWC struct {
	WC
	of      *datagramQP
	receive bool
	urgent  bool // solicited, or in error
}

// push adds a completion. It reports false if there is no room for it.
func (c *completionQueue) push(w *datagramWC) bool {
	d := &c.datagrams
	d.mu.Lock()
	n := int(d.n.Load())
	if n >= c.verbs.Entries() {
		d.mu.Unlock()
		return false
	}
	if n == len(d.ring) {
		d.grow()
	}
	d.ring[(d.head+n)%len(d.ring)] = *w
	d.n.Add(1)
	fire := d.armed && (!d.solicited || w.urgent)
	if d.told = fire; fire {
		d.armed = false
	}
	wake := d.wake
	d.wake = nil
	d.mu.Unlock()
	if fire {
		door.Fire(c.verbs)
	}
	if wake != nil {
		wake()
	}
	return true
}

func (d *datagramWCs) grow() {
	ring := make([]datagramWC, max(16, 2*len(d.ring)))
	n := copy(ring, d.ring[d.head:])
	copy(ring[n:], d.ring[:d.head])
	d.ring, d.head = ring, 0
}

// take moves completions to out, and returns how many.
func (d *datagramWCs) take(out []WC) (n int) {
	if d.n.Load() == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for n < len(out) && d.n.Load() > 0 {
		w := &d.ring[d.head]
		out[n] = w.WC
		w.of.polled(w.receive)
		w.of = nil
		d.head = (d.head + 1) % len(d.ring)
		d.n.Add(-1)
		n++
	}
	d.told = d.told && n == 0
	return n
}

// forget removes the completions of a queue pair.
func (d *datagramWCs) forget(of *datagramQP) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, left := int(d.n.Load()), 0
	for i := range n {
		w := &d.ring[(d.head+i)%len(d.ring)]
		if w.of == of {
			w.of.polled(w.receive)
			continue
		}
		d.ring[(d.head+left)%len(d.ring)] = *w
		left++
	}
	d.n.Store(int32(left))
}

// arm notes that the program waits for an event, and reports whether it is due at once: programs count on
// one for what is there already, but not on two. See policy.FireForQueued.
//
// The queue may get its first queue pair later.
func (d *datagramWCs) arm(solicitedOnly bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sinceArm = 0
	for i := range int(d.n.Load()) {
		if !d.told && (!solicitedOnly || d.ring[(d.head+i)%len(d.ring)].urgent) {
			d.armed, d.told = false, true
			return true
		}
	}
	d.solicited = solicitedOnly && (!d.armed || d.solicited)
	d.armed = true
	return false
}

// pollsBetween is how often a program may poll before it waits for an event, as far as is known.
const pollsBetween = 16

// pollsOn reports whether the program is likely to poll soon again, rather than to wait for an event.
func (d *datagramWCs) pollsOn() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sinceArm = min(d.sinceArm+1, pollsBetween)
	return d.sinceArm == pollsBetween
}

// pollDatagrams receives what has come for the queue.
func (e *Engine) pollDatagrams(c *completionQueue) {
	if p := e.datagrams.port.Load(); p != nil {
		p.Poll(c.datagrams.pollsOn())
	}
}

// awaitDatagrams waits for a completion, if all are of datagrams. Else it has push call wake, and
// reports that others are to be waited for.
func (e *Engine) awaitDatagrams(c *completionQueue, wake context.CancelFunc, most time.Duration) bool {
	d := &c.datagrams
	if d.n.Load() > 0 {
		return false
	}
	if c.connections.Load() == 0 {
		if p := e.datagrams.port.Load(); p != nil {
			p.Await(most)
		}
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake = wake
	return d.n.Load() == 0
}
