package datagram

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// maxPartials is how many messages of a process may be incomplete: a MiB.
	maxPartials = 256
	// maxOfSource is how many of them may come from one address.
	maxOfSource = 64
	// staleAfter is how long a message may be incomplete before it gives its place to
	// another one. Its fragments leave the sender together.
	staleAfter = time.Second
)

// A partialKey names the message that a queue pair sends to another: one at a time.
type partialKey struct {
	from         netip.AddrPort
	source, dest uint32
}

type partial struct {
	key   partialKey
	first Header
	have  uint32 // bytes
	parts uint32 // fragments
	since time.Duration
	data  [MTU]byte
}

// A Reassembly joins the fragments of messages of UD queue pairs. They must come in order
// and without a gap; else the message is lost, as a datagram may be. It never has more than
// maxPartials messages, each with memory for one MTU.
type Reassembly struct {
	partials map[partialKey]*partial
	order    []*partial // the oldest first
	free     []*partial
}

// Add takes a fragment that comes at a time. If the message is complete, it returns it
// with the header of its first fragment; it is valid until the next call. Else first is
// nil: the reason is Taken if more is to come, and says otherwise why the message is lost.
// evicted counts other messages that are lost for it.
func (r *Reassembly) Add(from netip.AddrPort, h *Header, payload []byte, now time.Duration) (first *Header, message []byte, reason Reason, evicted int) {
	key := partialKey{from, h.Source, h.Dest}
	p := r.partials[key]
	if h.Offset == 0 {
		if p != nil { // a new message: the rest of the old one does not come
			r.remove(p)
			evicted++
		}
		evicted += r.makeRoom(from.Addr(), now)
		p = r.take()
		p.key, p.first, p.have, p.parts, p.since = key, *h, 0, 0, now
		r.partials[key] = p
		r.order = append(r.order, p)
	} else if p == nil {
		return nil, nil, Incomplete, 0
	}
	f := &p.first
	behind := h.Offset == p.have && h.Length == f.Length && h.Sequence-f.Sequence == p.parts && h.Flags&^AskAck == f.Flags&^AskAck && h.Key == f.Key
	if !behind || len(payload) > MTU-int(p.have) {
		r.remove(p)
		return nil, nil, Incomplete, evicted
	}
	copy(p.data[p.have:], payload)
	p.have += uint32(len(payload))
	p.parts++
	if p.have < f.Length {
		return nil, nil, Taken, evicted
	}
	r.remove(p)
	return &p.first, p.data[:p.have], Taken, evicted
}

// makeRoom removes messages until one more of a source has a place, and returns how
// many.
func (r *Reassembly) makeRoom(source netip.Addr, now time.Duration) (removed int) {
	for len(r.order) > 0 && now-r.order[0].since > staleAfter {
		r.remove(r.order[0])
		removed++
	}
	if len(r.order) < maxOfSource { // then no source can have so many
		return removed
	}
	of := make(map[netip.Addr]int)
	for _, p := range r.order {
		of[p.key.from.Addr()]++
	}
	if of[source] < maxOfSource && len(r.order) < maxPartials {
		return removed
	}
	loser := source
	if of[source] < maxOfSource { // the source that has most loses its oldest
		for _, p := range r.order {
			if a := p.key.from.Addr(); of[a] > of[loser] {
				loser = a
			}
		}
	}
	for _, p := range r.order {
		if p.key.from.Addr() == loser {
			r.remove(p)
			return removed + 1
		}
	}
	r.remove(r.order[0])
	return removed + 1
}

func (r *Reassembly) take() *partial {
	if r.partials == nil {
		r.partials = make(map[partialKey]*partial)
	}
	if n := len(r.free); n > 0 {
		p := r.free[n-1]
		r.free = r.free[:n-1]
		return p
	}
	return new(partial)
}

func (r *Reassembly) remove(p *partial) {
	delete(r.partials, p.key)
	if i := slices.Index(r.order, p); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
	r.free = append(r.free, p)
}

// Len returns how many messages are incomplete.
func (r *Reassembly) Len() int { return len(r.order) }

// Forget removes the incomplete messages for a queue pair.
func (r *Reassembly) Forget(dest uint32) {
	for _, p := range slices.Clone(r.order) {
		if p.key.dest == dest {
			r.remove(p)
		}
	}
}
