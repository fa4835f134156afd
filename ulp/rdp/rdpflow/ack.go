package rdpflow

import (
	"fmt"
	"slices"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// A stair is an acknowledgement without a number of its own: what has this number or a higher one
// was sent later, and acknowledges no less.
type stair struct {
	set         bool
	number, ack uint64
}

// ack takes the acknowledgement of a segment. The number of a refusal is 0.
func (c *conn) ack(from dissect.Side, at capture.At, s *Segment, number uint64) {
	if !s.has(wire.ACK) {
		return
	}
	h, d, peer := &s.Header, &c.dirs[from], &c.dirs[1-from]
	if !peer.placed {
		peer.place(h.Ack)
	}
	n := extend(peer.ref, h.Ack)
	if peer.syn && n < peer.iss {
		if !d.syn { // it may answer for an earlier connection, which the other side has lost
			c.note(from, at, "it acknowledges %d, and the numbers of the %v begin with %d", h.Ack, 1-from, uint32(peer.iss))
			return
		}
		c.blame(ruleAckUnsent, from, at, "it acknowledges %d, and the numbers of the %v begin with %d", h.Ack, 1-from, uint32(peer.iss))
		return
	}
	if peer.any && n >= peer.next {
		c.unsent(ruleAckUnsent, from, at, n, "it acknowledges %d; the last one that the %v has sent is %d")
	} else if !s.has(wire.RST) && (!peer.any || near(n, peer.next)) {
		c.back(from, at, s, number, n)
		if !d.acked || n > d.cur {
			d.acked, d.cur = true, n
			d.eacked.forget(n)
		}
	}
	if s.has(wire.EACK) {
		c.eacks(from, at, s)
	}
}

// unsent doubts that a number was sent that a side acknowledges. It was not if the other side says
// later, by a segment that uses up no number, that it is still to come.
func (c *conn) unsent(rule dissect.Rule, from dissect.Side, at capture.At, n uint64, format string) {
	peer := &c.dirs[1-from]
	still := func() bool { return n >= peer.next }
	proves := func(s *Segment, number uint64) bool {
		return !s.numbered() && !s.has(wire.RST) && number <= n
	}
	c.doubt(newFinding(rule, from, at, format, uint32(n), 1-from, uint32(peer.next-1)), still, proves)
}

// back judges whether an acknowledgement falls back.
func (c *conn) back(from dissect.Side, at capture.At, s *Segment, number, n uint64) {
	b := &c.dirs[from].bare
	later := number > b.number || s.numbered() && number == b.number
	if b.set && later && n < b.ack {
		c.blame(ruleAckBack, from, at, "it acknowledges %d; before number %d was used, %d was acknowledged", s.Header.Ack, uint32(b.number), uint32(b.ack))
	}
	if !s.numbered() && (!b.set || n > b.ack || n == b.ack && number < b.number) {
		*b = stair{set: true, number: number, ack: n}
	}
}

// eacks takes the numbers that were received out of sequence.
func (c *conn) eacks(from dissect.Side, at capture.At, s *Segment) {
	h, d, peer := &s.Header, &c.dirs[from], &c.dirs[1-from]
	low, high, unsent := 0, 0, uint64(0)
	for _, number := range h.EACKs {
		e := extend(peer.ref, number)
		ahead := wire.Diff(number, h.Ack)
		switch {
		case ahead <= 1:
			low++
		case d.syn && int64(ahead) > 2*int64(d.limits.most):
			high++
		case peer.any && e >= peer.next:
			unsent = max(unsent, e)
		case e > d.cur && d.acked:
			d.eacked.add(e)
		}
	}
	if low > 0 {
		c.blame(ruleEACK, from, at, "%d of the EACKs are in sequence: the acknowledgement of %d says that the next one, %d, is missing", low, h.Ack, h.Ack+1)
	}
	if high > 0 {
		c.blame(ruleEACK, from, at, "%d of the EACKs are beyond the window of this side, which ends before %d", high, h.Ack+2*uint32(d.limits.most)+1)
	}
	if unsent > 0 {
		c.unsent(ruleEACKUnsent, from, at, unsent, "an EACK for %d; the last one that the %v has sent is %d")
	}
	sorted := slices.Sorted(slices.Values(h.EACKs))
	if n := len(sorted) - len(slices.Compact(sorted)); n > 0 {
		c.blame(ruleEACK, from, at, "%d of the EACKs are there twice", n)
	}
}

// newFinding returns a finding.
func newFinding(rule dissect.Rule, from dissect.Side, at capture.At, format string, args ...any) finding {
	return finding{rule: rule, from: from, at: at, detail: fmt.Sprintf(format, args...)}
}
