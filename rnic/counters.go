package rnic

import (
	"maps"
	"slices"

	"urnic/rdmap"
)

// Counters has the counters of a device.
type Counters struct {
	Connected uint64 // connections that this side has initiated
	Accepted  uint64 // connections that it has accepted
	Rejected  uint64 // requests that it has rejected
	Dropped   uint64 // requests dropped without an answer: too late, the peer was gone, or too many were waiting
	Failed    uint64 // start-ups that failed
	Lost      uint64 // streams that ended without a graceful close

	Messages rdmap.Stats // by opcode, Terminates among them
}

// Counters returns the device's counters.
func (d *Device) Counters() Counters {
	if !d.made() {
		return Counters{}
	}
	s := &d.stats
	c := Counters{
		Connected: s.connected.Load(), Accepted: s.accepted.Load(), Rejected: s.rejected.Load(),
		Dropped: s.dropped.Load(), Failed: s.failed.Load(), Lost: s.lost.Load(),
	}
	d.mu.Lock() // each queue pair is counted once: here or in the list
	c.Messages = s.ended
	qps := slices.Collect(maps.Keys(d.qps))
	d.mu.Unlock()
	for _, q := range qps {
		c.Messages.Add(q.(*QP).Counters())
	}
	return c
}

// Counters returns how many messages the queue pair has sent and received, by
// opcode.
func (q *QP) Counters() rdmap.Stats {
	if !q.made() {
		return rdmap.Stats{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.ended
	if q.link != nil {
		s.Add(q.link.rdmap.Stats())
	}
	return s
}

// retire takes a queue pair that has ended out of the registry, and keeps what it
// has counted.
func (d *Device) retire(q *QP) {
	counted := q.Counters()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.ended.Add(counted)
	delete(d.qps, q)
}
