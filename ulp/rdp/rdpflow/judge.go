package rdpflow

import (
	"hash/maphash"
	"slices"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// judge judges a segment whose form is right, and returns its number.
func (c *conn) judge(from dissect.Side, at capture.At, s *Segment) uint64 {
	h, d := &s.Header, &c.dirs[from]
	c.remarks(from, at, s)
	if refusal(h) {
		c.ack(from, at, s, 0)
		return 0
	}
	if !d.placed {
		d.place(h.Seq)
	}
	number := extend(d.ref, h.Seq)
	s.Stray = !near(number, d.ref) || s.has(wire.RST) && d.syn && number <= d.iss
	if s.Stray {
		c.note(from, at, "the number %d has nothing to do with those of the connection: the last one is %d", h.Seq, uint32(d.ref))
		return number
	}
	switch {
	case s.has(wire.SYN):
		c.syn(from, at, s, number)
	case d.syn && number <= d.iss:
		c.blame(ruleSequence, from, at, "number %d; the SYN has used up %d, and all numbers are behind that", h.Seq, uint32(d.iss))
	}
	if s.numbered() {
		c.numbered(from, at, s, number)
	} else if !s.has(wire.RST) {
		c.unnumbered(from, at, s, number)
	}
	c.ack(from, at, s, number)
	c.size(from, at, s)
	if s.has(wire.RST) && c.ends(from, s) && number >= d.next && (!d.rst || number < d.rstNumber) {
		d.rst, d.rstNumber = true, number
	}
	if c.loop.goesOn(from, at, s) {
		c.blame(ruleLoop, from, at, "the two sides answer each other with the same segments again and again, %d times by now", longLoop)
	}
	return number
}

// place takes a first number of a side.
func (d *direction) place(n uint32) { d.placed, d.ref = true, firstNumber|uint64(n) }

// saw takes a number that a side has sent.
func (d *direction) saw(number, next uint64) {
	if !d.any {
		d.any, d.low, d.next = true, number, next
	}
	d.low, d.next = min(d.low, number), max(d.next, next)
	d.ref = max(d.ref, number)
}

// remarks reports what is odd about a segment, and no fault.
func (c *conn) remarks(from dissect.Side, at capture.At, s *Segment) {
	h, d := &s.Header, &c.dirs[from]
	options := s.has(wire.SYN) && len(s.Raw) >= wire.SYNLen && (s.Raw[22]&0x7f != 0 || s.Raw[23] != 0)
	if !d.toldIgnored && (options || 2*int(s.Raw[1]) != h.Len()) {
		d.toldIgnored = true
		c.note(from, at, "the header has bytes or options without a meaning (RFC 908 §4.2.1, §4.3.2), which a receiver ignores")
	}
	if !d.toldPseudo && s.Pseudo {
		d.toldPseudo = true
		c.note(from, at, "the checksum covers a pseudo-header")
	}
	if !d.toldNUL && s.has(wire.NUL) && !s.has(wire.ACK) {
		d.toldNUL = true
		c.note(from, at, "a NUL without ACK: a side that has no connection can't answer it in a way that ends the connection")
	}
}

// syn takes a SYN.
func (c *conn) syn(from dissect.Side, at capture.At, s *Segment, number uint64) {
	h, d, peer := &s.Header, &c.dirs[from], &c.dirs[1-from]
	l := limits{most: h.MaxOutstanding, size: h.MaxSegment, sequenced: h.Sequenced}
	if d.syn {
		if l != d.limits {
			c.blame(ruleSYNAgain, from, at, "the SYN with number %d again, with %v; before, it had %v", h.Seq, l, d.limits)
		}
		return
	}
	d.syn, d.iss, d.limits = true, number, l
	c.sum.side(from).limits(l, h.Seq)
	if l.most == 0 || l.size < wire.MinSegment {
		c.blame(ruleLimits, from, at, "%v: nobody can send anything to such a side", l)
	}
	if s.has(wire.ACK) && peer.syn && peer.limits.sequenced && !l.sequenced {
		c.note(from, at, "the answer does not ask for sequenced delivery, and the SYN does")
	}
}

// numbered takes a segment that uses up its number.
func (c *conn) numbered(from dissect.Side, at capture.At, s *Segment, number uint64) {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	s.Again = !d.seen.add(number)
	c.same(from, at, s, number)
	if !s.Again && !s.has(wire.SYN) {
		if d.rst && number >= d.rstNumber && peer.syn { // else, it may be another connection
			c.blame(ruleAfterRST, from, at, "number %d is new, and the RST of this side had %d: it has closed the connection", s.Header.Seq, uint32(d.rstNumber))
		}
		c.window(from, at, s, number)
	}
	d.aged.roll(at, d.next)
	d.saw(number, number+1)
}

// unnumbered takes a segment whose number is the one that its sender will use next.
func (c *conn) unnumbered(from dissect.Side, at capture.At, s *Segment, number uint64) {
	d := &c.dirs[from]
	d.aged.roll(at, d.next)
	if number < d.aged.old {
		c.blame(ruleSequence, from, at, "an %s with number %d; %d was used long before, and the next number would be right", s.Kind(), s.Header.Seq, uint32(d.aged.old-1))
	}
	d.saw(number, number)
}

// An aged says which numbers were used long ago.
type aged struct {
	old  uint64 // numbers below it were used before age has passed
	now  uint64 // numbers below it were used at time
	time time.Time
}

// age is longer than a segment is in transit.
const age = 2 * time.Second

// roll takes the time, and the next number of a side.
func (g *aged) roll(at capture.At, next uint64) {
	if g.time.IsZero() || at.Time.Sub(g.time) >= age {
		g.old, g.now, g.time = g.now, next, at.Time
	}
}

// same judges whether a number stands for the same as before.
func (c *conn) same(from dissect.Side, at capture.At, s *Segment, number uint64) {
	if s.Missing > 0 {
		return
	}
	var m maphash.Hash
	m.SetSeed(c.a.seed)
	_ = m.WriteByte(byte(s.Header.Flags & (wire.SYN | wire.NUL))) // it never fails, nor does the next
	_, _ = m.Write(s.Data)
	d, hash := &c.dirs[from], m.Sum64()
	if was := d.recent.find(number); was != nil {
		if was.hash != hash {
			c.blame(ruleAgain, from, at, "the number %d again, for another segment: %d bytes, and before %d", s.Header.Seq, s.Length, was.length)
		}
		return
	}
	before := len(d.recent.slots)
	if c.a.hashes < maxHashes {
		d.recent.put(sent{number: number, hash: hash, length: s.Length})
		c.a.hashes += len(d.recent.slots) - before
	}
}

// window judges whether a number may be sent: not beyond the acceptance window, which is twice
// what the other side's SYN allows, and not with more outstanding than it allows. What was
// acknowledged out of sequence is not outstanding (RFC 908 §3.5).
func (c *conn) window(from dissect.Side, at capture.At, s *Segment, number uint64) {
	peer := &c.dirs[1-from]
	if !peer.syn || !peer.acked {
		return
	}
	most := uint64(peer.limits.most)
	beyond := func() bool { return number > peer.cur+2*most }
	many := func() bool { return number > peer.cur && peer.outstanding(number) > most }
	proves := func(s *Segment, _ uint64) bool { return s.tells(peer.cur) }
	lists := func(s *Segment, _ uint64) bool { // all that it has: there was room for more
		room := wire.EACKRoom(c.dirs[from].limits.size, s.Length)
		return s.tells(peer.cur) && s.has(wire.EACK) && len(s.Header.EACKs) < room
	}
	switch {
	case beyond():
		c.doubt(newFinding(ruleWindow, from, at, "number %d; the window of the %v ends before %d", s.Header.Seq, 1-from, uint32(peer.cur+2*most+1)), beyond, proves)
	case many():
		c.doubt(newFinding(ruleOutstanding, from, at, "number %d, with %d unacknowledged; the %v allows %d", s.Header.Seq, peer.outstanding(number), 1-from, most), many, lists)
	}
}

// outstanding is how many numbers up to the last one this side has not acknowledged.
func (d *direction) outstanding(last uint64) uint64 {
	return last - d.cur - d.eacked.count(d.cur+1, last)
}

// tells reports whether a segment reports that its sender has acknowledged just this number, and no
// more. What is sent again may tell something old.
func (s *Segment) tells(number uint64) bool {
	return s.has(wire.ACK) && !s.has(wire.RST) && !s.numbered() && s.Header.Ack == uint32(number)
}

// size judges the size of a segment. The sizes of a SYN count 20 bytes for IP (RFC 908 §4.3.2).
func (c *conn) size(from dissect.Side, at capture.At, s *Segment) {
	peer, n := &c.dirs[1-from], wire.IPLen+len(s.Raw)+s.Missing
	if peer.syn && !s.has(wire.SYN) && n > int(peer.limits.size) {
		c.blame(ruleSize, from, at, "a segment of %d bytes, with 20 for IP; the %v takes %d", n, 1-from, peer.limits.size)
	}
}

// longLoop is how many segments, sent by turns without anything new, are a loop; within loopGap of
// each other.
const (
	longLoop = 16
	loopGap  = time.Second
)

// A loop counts segments that answer one another.
type loop struct {
	n    int
	from dissect.Side
	time time.Time
	last [2]struct {
		flags    wire.Flags
		seq, ack uint32
		eacks    []uint32
	}
}

// goesOn takes a segment, and reports whether there are enough for a loop.
func (l *loop) goesOn(from dissect.Side, at capture.At, s *Segment) bool {
	h, last := &s.Header, &l.last[from]
	if s.numbered() {
		l.n, last.flags = 0, 0
		return false
	}
	same := h.Flags == last.flags && h.Seq == last.seq && h.Ack == last.ack && slices.Equal(h.EACKs, last.eacks)
	if same && l.from != from && at.Time.Sub(l.time) < loopGap {
		l.n++
	} else {
		l.n = 0
	}
	l.from, l.time = from, at.Time
	last.flags, last.seq, last.ack, last.eacks = h.Flags, h.Seq, h.Ack, append(last.eacks[:0], h.EACKs...)
	return l.n == longLoop
}
