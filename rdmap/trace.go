package rdmap

import (
	"fmt"
	"sync/atomic"

	"urnic/ddp"
	"urnic/stag"
)

// A Trace is what a stream's trace hook sees of one message: when all of it has
// been posted, or when it is delivered.
type Trace struct {
	Sent   bool // by this side; else received
	Op     Opcode
	QN     uint32 // of an untagged message
	MSN    uint32
	STag   stag.STag // of a tagged message, or the STag that a Send invalidates
	TO     uint64
	Length uint64 // octets of the DDP message
}

// String shows the message in one line.
func (t Trace) String() string {
	dir := "<-"
	if t.Sent {
		dir = "->"
	}
	if t.Op.Tagged() {
		return fmt.Sprintf("%s %v stag=%v to=0x%x len=%d", dir, t.Op, t.STag, t.TO, t.Length)
	}
	s := fmt.Sprintf("%s %v qn=%d msn=%d len=%d", dir, t.Op, t.QN, t.MSN, t.Length)
	if t.Op.Invalidates() {
		s += fmt.Sprintf(" invalidate=%v", t.STag)
	}
	return s
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
		s.cfg.Trace(Trace{Op: op, STag: tag, TO: to, Length: length})
	}
}

func (s *Stream) traceUntagged(op Opcode, h *ddp.UntaggedHeader, length uint32) {
	if s.cfg.Trace == nil {
		return
	}
	t := Trace{Op: op, QN: h.QN, MSN: h.MSN, Length: uint64(length)}
	if op.Invalidates() {
		t.STag = stag.STag(uint32(h.RsvdULP[1])<<24 | uint32(h.RsvdULP[2])<<16 | uint32(h.RsvdULP[3])<<8 | uint32(h.RsvdULP[4]))
	}
	s.cfg.Trace(t)
}

// A Count says how many messages there were, and how many octets they carried
// above DDP.
type Count struct{ Messages, Octets uint64 }

// Stats counts the messages of a stream by opcode.
type Stats struct {
	Sent, Received [numOpcodes]Count
}

// Add adds what another stream counted.
func (s *Stats) Add(o Stats) {
	for i := range numOpcodes {
		s.Sent[i].Messages += o.Sent[i].Messages
		s.Sent[i].Octets += o.Sent[i].Octets
		s.Received[i].Messages += o.Received[i].Messages
		s.Received[i].Octets += o.Received[i].Octets
	}
}

// counts is Stats while the stream works.
type counts struct {
	sent, received [numOpcodes]struct{ messages, octets atomic.Uint64 }
}

func (*counts) count(to *[numOpcodes]struct{ messages, octets atomic.Uint64 }, op Opcode, octets uint64) {
	to[op].messages.Add(1)
	to[op].octets.Add(octets)
}

// Stats returns what the stream has sent and received so far.
func (s *Stream) Stats() Stats {
	var out Stats
	for i := range numOpcodes {
		out.Sent[i] = Count{s.counts.sent[i].messages.Load(), s.counts.sent[i].octets.Load()}
		out.Received[i] = Count{s.counts.received[i].messages.Load(), s.counts.received[i].octets.Load()}
	}
	return out
}
