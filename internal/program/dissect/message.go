package dissect

import (
	"encoding/binary"
	"math"

	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/rdmap"
	"urnic/stag"
)

// A queue is what is known of the untagged messages of one queue.
type queue struct {
	known bool   // next is known
	next  uint32 // the MSN of the next message
	open  *Message
	ended bool // the message before next was seen to its end
}

// Tagged messages carry no number. Writes and Read Responses have different
// sources and may be interleaved; each has a slot for the message in progress.
const (
	slotWrite = iota
	slotRead
	slotOther // what should not be tagged
	numSlots
)

func slotOf(o rdmap.Opcode) int {
	switch o {
	case rdmap.OpWrite:
		return slotWrite
	case rdmap.OpReadResponse:
		return slotRead
	default:
		return slotOther
	}
}

// hasHeader reports whether messages of the opcode carry an RDMAP header, or
// data of which there is so little that it may be kept like one.
func hasHeader(o rdmap.Opcode) bool {
	return o == rdmap.OpReadRequest || o >= rdmap.OpTerminate && o.Valid()
}

// message adds a segment to its message.
func (s *stream) message(at capture.At, seg *Segment) {
	var m *Message
	if seg.DDP.Control.Tagged() {
		m = s.taggedMessage(at, seg)
	} else {
		m = s.untaggedMessage(at, seg)
	}
	payload := seg.DDP.Payload
	m.Segments++
	m.Length += uint64(len(payload))
	if keep := maxHead - len(m.head); keep > 0 && hasHeader(m.Op) {
		m.head = append(m.head, payload[:min(keep, len(payload))]...)
	}
	if m.Op == rdmap.OpReadResponse {
		s.response(at, m, seg)
	}
	s.writeAbove(at, m, seg)
	s.gather(m, seg)
	if !seg.DDP.Control.Last() {
		s.dataAbove(at, m, seg)
		return
	}
	s.complete(at, m)
	if m.Op.Valid() {
		s.f.con.Messages[m.Op]++
	}
	s.f.a.emit(&Event{Kind: KindMessage, Conn: s.f.con, At: at, From: s.f.side(s.id), Message: m})
	s.dataAbove(at, m, seg)
	s.sendAbove(at, m)
}

// untaggedMessage finds the message of an untagged segment, or begins one, and
// checks MSN, MO and RsvdULP (RFC 5041 §4.3, §5.2).
func (s *stream) untaggedMessage(at capture.At, seg *Segment) *Message {
	f, u := s.f, &seg.DDP.Untagged
	var scratch queue // for queues that do not exist, of which nothing is kept
	q := &scratch
	if u.QN < rdmap.NumQueues {
		q = &s.queues[u.QN]
	}
	m := q.open
	if m != nil && u.MSN != m.MSN {
		f.violate(ruleLast, s.id, at, "the message with MSN %d on queue %d has no last segment: MSN %d follows", m.MSN, m.QN, u.MSN)
		s.release(m)
		m = nil
	}
	if m == nil {
		m = s.beginUntagged(at, seg, q)
	} else {
		if u.RsvdULP != m.rsvd {
			f.violate(ruleRsvdULP3, s.id, at, "RsvdULP changes from %x to %x within a message", m.rsvd, u.RsvdULP)
		}
		if uint64(u.MO) != m.next {
			f.violate(ruleMO, s.id, at, "MO %d, where the message continues at %d", u.MO, m.next)
		}
	}
	m.next = uint64(u.MO) + uint64(len(seg.DDP.Payload))
	if m.next > math.MaxUint32 {
		f.violate(ruleLength, s.id, at, "a message of %s; it must be shorter than 2^32", plural.Count(m.next, "byte"))
	}
	q.open, q.ended = m, seg.DDP.Control.Last()
	if q.ended {
		q.open = nil
	}
	return m
}

// beginUntagged begins the message of an untagged segment.
func (s *stream) beginUntagged(at capture.At, seg *Segment, q *queue) *Message {
	f, u := s.f, &seg.DDP.Untagged
	m := &Message{
		Op: seg.Op, QN: u.QN, MSN: u.MSN, rsvd: u.RsvdULP, first: at,
		Partial: !q.known && u.QN < rdmap.NumQueues && u.MO != 0,
	}
	if m.Op.Invalidates() {
		m.Invalidate = stag.STag(binary.BigEndian.Uint32(u.RsvdULP[1:]))
	}
	switch {
	case q.known && q.ended && u.MSN == q.next-1 && u.MO > 0:
		f.violate(ruleLast, s.id, at, "a segment of MSN %d on queue %d follows the one with L=1", u.MSN, u.QN)
	case q.known && u.MSN != q.next:
		f.violate(ruleMSN, s.id, at, "MSN %d on queue %d, where %d comes next", u.MSN, u.QN, q.next)
		fallthrough
	default:
		if u.MO != 0 && !m.Partial {
			f.violate(ruleMO, s.id, at, "the first segment of a message has MO %d, not 0", u.MO)
		}
	}
	q.known, q.next = true, u.MSN+1
	return m
}

// taggedMessage finds the message of a tagged segment, or begins one, and
// checks STag, TO and RsvdULP (RFC 5041 §4.2, §5.2).
func (s *stream) taggedMessage(at capture.At, seg *Segment) *Message {
	f, t := s.f, &seg.DDP.Tagged
	slot := slotOf(seg.Op)
	m := s.tagged[slot]
	if m == nil {
		if slot = s.continues(seg, slot); s.tagged[slot] != nil {
			m = s.tagged[slot]
		}
	}
	if m != nil && t.STag != m.STag {
		f.violate(ruleLast, s.id, at, "the %v to STag %v has no last segment: STag %v follows", m.Op, m.STag, t.STag)
		m = nil
	}
	if m == nil {
		m = &Message{Op: seg.Op, Tagged: true, STag: t.STag, TO: t.TO, first: at, rsvd: [5]byte{t.RsvdULP}}
	} else {
		if t.RsvdULP != m.rsvd[0] {
			f.violate(ruleRsvdULP, s.id, at, "RsvdULP changes from %02x to %02x within a message", m.rsvd[0], t.RsvdULP)
		}
		if t.TO != m.next {
			f.violate(ruleTO, s.id, at, "TO 0x%x, where the message continues at 0x%x", t.TO, m.next)
		}
	}
	m.next = t.TO + uint64(len(seg.DDP.Payload))
	if m.Length+uint64(len(seg.DDP.Payload)) > math.MaxUint32 && m.Length <= math.MaxUint32 {
		f.violate(ruleLength, s.id, at, "a message of 2^32 bytes or more")
	}
	s.tagged[slot] = m
	if seg.DDP.Control.Last() {
		s.tagged[slot] = nil
	}
	return m
}

// continues returns the slot of a message that seg carries on under another
// opcode, or slot itself.
func (s *stream) continues(seg *Segment, slot int) int {
	t := &seg.DDP.Tagged
	for i, m := range s.tagged {
		if m != nil && m.STag == t.STag && m.next == t.TO && m.Length > 0 {
			return i
		}
	}
	return slot
}

// unfinished looks at the messages that are not at their end when their stream
// is. Most often the connection broke; but a message of fixed length that is
// whole, and whose sender then closed its direction, ought to have had L=1.
func (s *stream) unfinished(at capture.At, fin bool) {
	open := make([]*Message, 0, len(s.queues)+len(s.tagged))
	for i := range s.queues {
		open = append(open, s.queues[i].open)
	}
	for _, m := range append(open, s.tagged[:]...) {
		switch {
		case m == nil:
		case fin && hasHeader(m.Op) && m.Op != rdmap.OpTerminate && !m.Partial:
			s.f.violate(ruleLast, s.id, at, "%v of %s without a last segment", m.Op, plural.Count(m.Length, "byte"))
		default:
			s.f.note(s.id, at, "the last %v of the %v is cut short after %s", m.Op, s.f.side(s.id), plural.Count(m.Length, "byte"))
		}
	}
}

// complete judges a message that is there to its end.
func (s *stream) complete(at capture.At, m *Message) {
	if m.Length == 0 && m.Segments > 1 {
		s.f.violate(ruleZeroLength, s.id, at, "a message without data in %s; it must have one", plural.Count(m.Segments, "segment"))
	}
	if m.Partial {
		return
	}
	head := m.head
	if m.Length > uint64(len(head)) { // longer than any header; the codec says so
		head = append(head, 0)
	}
	switch m.Op {
	case rdmap.OpReadRequest:
		s.readRequest(at, m, head)
	case rdmap.OpReadResponse:
		s.readDone(at, m)
	case rdmap.OpTerminate:
		s.terminate(at, m)
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		if v, err := rdmap.ParseImmediate(m.Op, head); err != nil {
			s.f.violate(ruleImmediate, s.id, at, "%v of %s; it has %d", m.Op, plural.Count(m.Length, "byte"), rdmap.ImmediateLen)
		} else {
			m.Immediate = &v
		}
	case rdmap.OpAtomicRequest:
		s.atomicRequest(at, m, head)
	case rdmap.OpAtomicResponse:
		s.atomicResponse(at, m, head)
	default: // Writes and Sends have no header
	}
}
