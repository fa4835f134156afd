package rdmap

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"

	"urnic/ddp"
	"urnic/stag"
)

// A Trace is what a stream's trace hook gets of one message, with the verdict
// on it: when all of it has been posted, when it is delivered, or when a
// segment of it is refused. A valid message that can't be completed here is
// traced twice, the second time with that error. A segment whose header could
// not be read, as its FPDU is damaged, is not traced.
type Trace struct {
	Sent   bool // by this side; else received
	Op     Opcode
	QN     uint32 // of an untagged message
	MSN    uint32
	STag   stag.STag // of a tagged message, or the STag that a Send invalidates
	TO     uint64
	Length uint64 // bytes of the DDP message

	// Err says why the message was refused, which ended the stream; nil if it
	// was not. If Err is set, TO is that of the refused segment, and Length
	// that of its payload plus what precedes it in an untagged message.
	Err *Error
}

// String shows the message in one line.
func (t Trace) String() string {
	dir := "<-"
	if t.Sent {
		dir = "->"
	}
	s := fmt.Sprintf("%s %v", dir, t.Op)
	if t.tagged() {
		s += fmt.Sprintf(" stag=%v to=0x%x len=%d", t.STag, t.TO, t.Length)
	} else {
		s += fmt.Sprintf(" qn=%d msn=%d len=%d", t.QN, t.MSN, t.Length)
		if t.Op.Invalidates() {
			s += fmt.Sprintf(" invalidate=%v", t.STag)
		}
	}
	if t.Err != nil {
		s += fmt.Sprintf(" refused: %v", t.Err)
	}
	return s
}

// tagged reports whether the message was tagged. A refused one need not match
// its opcode.
func (t *Trace) tagged() bool {
	if t.Err != nil {
		return len(t.Err.Header) > 0 && ddp.Control(t.Err.Header[0]).Tagged()
	}
	return t.Op.Tagged()
}

func (s *Stream) traceSent() {
	if s.cfg.Trace == nil {
		return
	}
	m := &s.sending.msg
	t := Trace{Sent: true, Op: s.sending.code, QN: m.QN, MSN: m.MSN(), STag: m.STag, TO: m.TO, Length: m.Length}
	if o := s.sending.op; o != nil && o.Op.Invalidates() {
		t.STag = o.Invalidate
	} else if !m.Tagged {
		t.STag, t.TO = 0, 0
	}
	s.cfg.Trace(t)
}

func (s *Stream) traceTagged(op Opcode, tag stag.STag, to, length uint64) {
	if s.cfg.Trace != nil {
		s.intake.lease.End() // the hook may call something that waits for that
		s.cfg.Trace(Trace{Op: op, STag: tag, TO: to, Length: length})
	}
}

func (r *receiver) traceUntagged(h *ddp.UntaggedHeader, length uint32) {
	if r.cfg.Trace != nil {
		r.intake.lease.End()
		r.cfg.Trace(untaggedTrace(h, uint64(length)))
	}
}

func untaggedTrace(h *ddp.UntaggedHeader, length uint64) Trace {
	t := Trace{Op: Control(h.RsvdULP[0]).Opcode(), QN: h.QN, MSN: h.MSN, Length: length}
	if t.Op.Invalidates() {
		t.STag = stag.STag(binary.BigEndian.Uint32(h.RsvdULP[1:]))
	}
	return t
}

// traceRefused traces the message that e is about, if e identifies it.
func (s *Stream) traceRefused(e *Error) {
	if s.cfg.Trace == nil || len(e.Header) == 0 {
		return
	}
	seg, err := ddp.ParseSegment(e.Header)
	if err != nil {
		return
	}
	n := uint64(e.SegmentLen - len(e.Header))
	var t Trace
	if h := &seg.Tagged; seg.Control.Tagged() {
		t = Trace{Op: Control(h.RsvdULP).Opcode(), STag: h.STag, TO: h.TO, Length: n}
	} else {
		t = untaggedTrace(&seg.Untagged, uint64(seg.Untagged.MO)+n)
	}
	t.Err = e
	s.cfg.Trace(t)
}

// A Count counts messages, and the bytes that they carried above DDP.
type Count struct{ Messages, Octets uint64 }

// Stats counts the messages of a stream by opcode.
type Stats struct {
	Sent, Received [numOpcodes]Count
}

// Add adds the counts of another stream.
func (s *Stats) Add(o Stats) {
	for i := range numOpcodes {
		s.Sent[i].Messages += o.Sent[i].Messages
		s.Sent[i].Octets += o.Sent[i].Octets
		s.Received[i].Messages += o.Received[i].Messages
		s.Received[i].Octets += o.Received[i].Octets
	}
}

// counts is Stats while the stream works: sent is the transmitter's, received the
// receiver's.
type counts struct{ sent, received tally }

// A tally counts the messages of one direction, for one goroutine at a time.
// Others see what was counted before the last publish. An atomic operation per
// message would cost more than the rest of the bookkeeping.
type tally struct {
	fresh  [numOpcodes]Count
	used   uint16 // a bit for each of fresh that is not zero
	public [numOpcodes]struct{ messages, octets atomic.Uint64 }
}

func (t *tally) count(op Opcode, octets uint64) {
	t.fresh[op].Messages++
	t.fresh[op].Octets += octets
	t.used |= 1 << op
}

func (t *tally) publish() {
	for ; t.used != 0; t.used &= t.used - 1 {
		i := bits.TrailingZeros16(t.used)
		t.public[i].messages.Add(t.fresh[i].Messages)
		t.public[i].octets.Add(t.fresh[i].Octets)
		t.fresh[i] = Count{}
	}
}

func (t *tally) load(op int) Count {
	return Count{t.public[op].messages.Load(), t.public[op].octets.Load()}
}

// Stats returns the counts of what the stream has sent and received so far.
func (s *Stream) Stats() Stats {
	var out Stats
	for i := range numOpcodes {
		out.Sent[i], out.Received[i] = s.counts.sent.load(int(i)), s.counts.received.load(int(i))
	}
	return out
}
