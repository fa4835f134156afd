package capture

import (
	"bytes"
	"fmt"
)

// A DropKind says what was left out.
type DropKind uint8

// The kinds of what is left out.
const (
	DropRST      DropKind = iota // a reset whose sequence number is not the one that is due (RFC 5961 §3.2)
	DropSYN                      // a SYN within a connection (RFC 5961 §4.2)
	DropFIN                      // the end of a stream that continues
	DropChecksum                 // a segment with a wrong checksum that was sent again, or has no bytes
	DropAck                      // an acknowledgement of what can't have been sent (RFC 9293 §3.10.7.4)
	DropData                     // bytes behind the end of their stream
	numDrops
)

// Drops counts what was left out by DropKind.
type Drops [numDrops]int

// DropNames are the kinds' names in JSON, in their order.
var DropNames = [numDrops]string{"rst", "syn", "fin", "checksum", "ack", "data"}

// A Drop is a segment, or a part of one, that was left out.
type Drop struct {
	Kind  DropKind
	Off   int // how many bytes it lies beyond the place that is due; negative: before it
	Bytes int // of payload that were left out
}

// String says what it is, and why it was left out.
func (d Drop) String() string {
	place := fmt.Sprintf("%d bytes after the expected sequence number", d.Off)
	if d.Off < 0 {
		place = fmt.Sprintf("%d bytes before the expected sequence number", -d.Off)
	}
	switch d.Kind {
	case DropRST:
		return "a TCP reset is ignored: its sequence number lies " + place
	case DropSYN:
		return "a SYN is ignored: the connection is open and continues"
	case DropFIN:
		return "a FIN is ignored: it lies " + place + ", and the stream continues"
	case DropChecksum:
		return fmt.Sprintf("a segment of %d bytes is ignored: its TCP checksum is wrong", d.Bytes)
	case DropAck:
		return "a segment is ignored: it acknowledges data beyond the window of the other side"
	default:
		return fmt.Sprintf("ignored: %d bytes after the end of their stream", d.Bytes)
	}
}

// maxSuspects bounds how many segments with a wrong checksum wait in a direction.
const maxSuspects = 32

// A newcomer is a SYN with another initial sequence number than that of its connection.
// A TCP answers it by a challenge (RFC 5961 §4.2). It opens a connection if what follows
// belongs to it.
type newcomer struct {
	segment
	from Side
	at   At
	told bool // it was reported as left out
}

// A heldReset is a RST that a TCP may take or ignore. What follows tells.
type heldReset struct {
	at   At
	seq  uint32
	next uint32 // what was due when it came
}

// end returns the sequence number behind the segment.
func (h *heldSegment) end() uint32 {
	end := h.seq + h.size()
	if h.fin {
		end++
	}
	return end
}

// remark counts and reports what is left out.
func (a *Assembler) remark(c *conn, from Side, at At, d Drop) {
	a.stats.Dropped[d.Kind]++
	if !c.ignored {
		c.consumer.Drop(from, at, d)
	}
}

// The connections that a segment between two endpoints may belong to.
type fit int

const (
	fitsThis     fit = iota // the one that is known
	fitsNone                // none
	fitsPerhaps             // a new one, if more comes of it
	fitsNewcomer            // the one that a newcomer has begun
	fitsAnother             // a new one
)

// fits says to which connection a segment belongs, c being the one that is known.
func (a *Assembler) fits(c *conn, from Side, s *segment) fit {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	if !s.syn {
		if c.again != nil && !s.rst && c.confirmed(from, s) {
			return fitsNewcomer
		}
		return fitsThis
	}
	switch {
	case c.over:
		if d.syn && d.isn == s.seq {
			return fitsThis // late, or sent again
		}
		return fitsAnother
	case d.started:
		if d.syn && d.isn == s.seq || !d.syn && !d.any && d.next == s.seq+1 {
			return fitsThis
		}
	case !s.ok || !peer.syn || peer.isn+1 == s.ack || peer.after(s.ack) == 0:
		return fitsThis
	default: // not the answer to the SYN
		return fitsNone
	}
	if c.ignored || !peer.started {
		return fitsAnother
	}
	if n := c.again; n != nil && s.ok && from != n.from && s.ack == n.seq+1 {
		return fitsNewcomer
	}
	return fitsPerhaps
}

// confirmed reports whether a segment continues where the newcomer has begun, and not where
// the connection that is known does.
func (c *conn) confirmed(from Side, s *segment) bool {
	n := c.again
	d := &c.dirs[n.from]
	if from == n.from {
		return s.seq == n.seq+1 && d.after(s.seq) != 0
	}
	return s.ok && s.ack == n.seq+1 && d.after(s.ack) != 0 && (!d.hasAcked || d.acked != s.ack)
}

// tellNewcomer reports the SYN of a newcomer as left out.
func (a *Assembler) tellNewcomer(c *conn) {
	if n := c.again; n != nil && !n.told {
		n.told = true
		a.remark(c, n.from, n.at, Drop{Kind: DropSYN})
	}
}

// refuses judges a segment as its receiver's TCP would, and reports whether it is left
// out, or kept until more is known.
func (a *Assembler) refuses(c *conn, from Side, at At, s *segment) bool {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	switch {
	case s.sum == sumGood:
		d.good = true
	case s.sum == sumBad && d.good && !d.distrust && d.started:
		a.suspect(c, from, at, s)
		return true
	}
	if s.rst {
		return a.refusesReset(c, from, at, s)
	}
	// Nobody acknowledges more than the window let the other side send. The capture may
	// lack packets that opened it: if it continues like that, the acknowledgements count.
	if s.ok && !s.syn && peer.hasEdge && int32(s.ack-peer.edge) > 0 && int32(s.ack-peer.top()) > 1 && peer.odd < 3 {
		peer.odd++
		a.remark(c, from, at, Drop{Kind: DropAck, Off: peer.after(s.ack)})
		s.ok = false
		return s.size() == 0 && !s.fin
	}
	peer.odd = 0
	return false
}

// refusesReset judges a RST. RFC 5961 §3.2 has a TCP take the one whose sequence number is
// due at the receiver. The capture may be ahead of the receiver, and lack segments that it
// has: in between, what follows tells.
func (a *Assembler) refusesReset(c *conn, from Side, at At, s *segment) bool {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	if !d.started {
		// In answer to a SYN, it must acknowledge that (RFC 9293 §3.10.7.3).
		if s.ok && peer.syn && (s.ack == peer.isn+1 || peer.after(s.ack) == 0) {
			a.reset(c, from, at)
		} else {
			a.remark(c, from, at, Drop{Kind: DropRST})
		}
		return true
	}
	off := d.after(s.seq)
	fresh := d.hasAcked && d.hasEdge && d.after(d.acked) >= 0 // the window is the one of now
	switch {
	case off == 0 || s.seq == d.top() || d.hasAcked && s.seq == d.acked || d.closed && s.seq == d.finSeq:
		return false
	case off < -maxJump || off > maxJump || d.hasAcked && int32(s.seq-d.acked) < 0 || fresh && int32(s.seq-d.edge) > 0:
		a.remark(c, from, at, Drop{Kind: DropRST, Off: off})
		return true
	}
	if d.rst != nil {
		a.remark(c, from, d.rst.at, Drop{Kind: DropRST, Off: d.after(d.rst.seq)})
	}
	d.rst = &heldReset{at: at, seq: s.seq, next: d.next}
	return true
}

// settle decides about resets that were kept.
func (a *Assembler) settle(c *conn) {
	for i := range c.dirs {
		side, d := Side(i), &c.dirs[i]
		h := d.rst
		if h == nil {
			continue
		}
		switch {
		case d.next != h.next && d.after(h.seq) == 0: // what the capture had out of order came before it
			d.rst = nil
			a.reset(c, side, h.at)
		case d.hasAcked && int32(d.acked-h.seq) > 0, d.next != h.next && d.after(h.seq) < 0:
			d.rst = nil
			a.remark(c, side, h.at, Drop{Kind: DropRST, Off: int(int32(h.seq - h.next))})
		}
	}
}

// settleAtEnd decides about a reset that was kept, when nothing more will come: it counts
// if its sender has sent nothing since.
func (a *Assembler) settleAtEnd(c *conn, side Side) {
	d := &c.dirs[side]
	h := d.rst
	if h == nil {
		return
	}
	d.rst = nil
	if d.next != h.next || d.reset {
		a.remark(c, side, h.at, Drop{Kind: DropRST, Off: int(int32(h.seq - h.next))})
		return
	}
	a.reset(c, side, h.at)
}

// acknowledge takes notice of what the other side acknowledges of a side's stream, and of
// the window that it offers.
func (a *Assembler) acknowledge(c *conn, side Side, at At, s *segment) {
	d, receiver := &c.dirs[side], &c.dirs[1-side]
	if !d.started || d.after(s.ack) > maxJump || d.after(s.ack) < -maxJump {
		return
	}
	if !s.rst {
		shift := uint8(maxScale)
		switch {
		case s.syn:
			shift = 0
		case receiver.syn:
			shift = receiver.shift
		}
		if edge := s.ack + uint32(s.window)<<shift; !d.hasEdge || int32(edge-d.edge) > 0 {
			d.hasEdge, d.edge = true, edge
		}
	}
	if d.hasAcked && int32(s.ack-d.acked) <= 0 {
		return
	}
	d.hasAcked, d.acked = true, s.ack
	left := max(0, -d.after(s.ack))
	if d.closed {
		left = max(0, left-1)
	}
	a.sent -= len(d.sent)
	d.trim(left)
	a.sent += len(d.sent)
	if !c.ignored {
		c.consumer.Acked(side, at, left)
	}
}

// suspect keeps a segment whose checksum is wrong. If it is acknowledged and was not sent
// again, its checksum was left to the network card.
func (a *Assembler) suspect(c *conn, from Side, at At, s *segment) {
	d := &c.dirs[from]
	h := heldSegment{segment: *s, from: from, at: at}
	off := d.after(h.end())
	if s.rst || s.syn || off <= 0 || off > maxJump || d.closed {
		a.remark(c, from, at, Drop{Kind: DropChecksum, Bytes: len(s.data)})
		return
	}
	if len(d.suspects) >= maxSuspects || a.ahead > a.maxAheadTotal {
		if len(d.suspects) == 0 {
			a.remark(c, from, at, Drop{Kind: DropChecksum, Bytes: len(s.data)})
			return
		}
		a.useSuspect(c, from, 0)
	}
	h.data = append([]byte(nil), s.data...)
	a.ahead += len(h.data)
	d.suspects = append(d.suspects, h)
}

// useSuspect processes a segment whose checksum is wrong after all.
func (a *Assembler) useSuspect(c *conn, side Side, i int) {
	d := &c.dirs[side]
	h := d.suspects[i]
	d.suspects = append(d.suspects[:i], d.suspects[i+1:]...)
	a.ahead -= len(h.data)
	h.at.BadChecksum = true
	h.ok = false // its acknowledgement is old
	a.process(c, side, h.at, &h.segment)
}

// believe processes the segments with a wrong checksum that are acknowledged and were not
// sent again.
func (a *Assembler) believe(c *conn, side Side, ack uint32) {
	d := &c.dirs[side]
	for i := 0; i < len(d.suspects); {
		if h := &d.suspects[i]; int32(h.end()-ack) > 0 || d.has(h.seq, h.end()) {
			i++
			continue
		}
		d.distrust = true
		a.useSuspect(c, side, i)
		i = 0
	}
	a.dropReplaced(c, side)
}

// has reports whether the bytes from seq to end are there.
func (d *direction) has(seq, end uint32) bool {
	if d.after(seq) < 0 {
		seq = d.next
	}
	for i := range d.pending {
		if p := &d.pending[i]; int32(p.seq-seq) <= 0 && int32(p.end()-seq) > 0 {
			seq = p.end()
		}
	}
	return int32(end-seq) <= 0
}

// dropReplaced leaves out the segments with a wrong checksum that were sent again.
func (a *Assembler) dropReplaced(c *conn, side Side) {
	d := &c.dirs[side]
	for i := 0; i < len(d.suspects); {
		h := d.suspects[i]
		if d.after(h.end()) > 0 {
			i++
			continue
		}
		d.suspects = append(d.suspects[:i], d.suspects[i+1:]...)
		a.ahead -= len(h.data)
		a.remark(c, side, h.at, Drop{Kind: DropChecksum, Bytes: len(h.data)})
	}
}

// compare reports bytes that were sent again and differ from those that were delivered,
// as far as they are not acknowledged: of others, the receiver has taken the first.
func (a *Assembler) compare(c *conn, from Side, at At, seq uint32, b []byte) {
	d := &c.dirs[from]
	if c.ignored {
		return
	}
	first := d.next - uint32(len(d.sent))
	if skip := int(int32(first - seq)); skip > 0 {
		b = b[min(skip, len(b)):]
		seq = first
	}
	if len(b) == 0 {
		return
	}
	at0 := int(seq - first)
	old := d.sent[at0:min(len(d.sent), at0+len(b))]
	b = b[:len(old)]
	if bytes.Equal(old, b) {
		return
	}
	lo, hi := 0, len(b)
	for old[lo] == b[lo] {
		lo++
	}
	for old[hi-1] == b[hi-1] {
		hi--
	}
	c.consumer.Differs(from, at, len(d.sent)-at0-lo, b[lo:hi])
}

// showVariants reports the other versions of what has been delivered.
func (a *Assembler) showVariants(c *conn, side Side) {
	d := &c.dirs[side]
	for i := 0; i < len(d.variants); {
		v := d.variants[i]
		if d.after(v.end()) > 0 {
			i++
			continue
		}
		d.variants = append(d.variants[:i], d.variants[i+1:]...)
		a.ahead -= len(v.data)
		a.compare(c, side, v.at, v.seq, v.data)
	}
}
