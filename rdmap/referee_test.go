package rdmap

import (
	"fmt"

	"urnic/ddp"
	"urnic/stag"
)

// A message is an RDMA Message put together from its segments.
type message struct {
	op         Opcode
	qn, msn    uint32    // untagged
	tag        stag.STag // tagged
	to         uint64
	invalidate stag.STag
	data       []byte
	segments   int
}

func (m message) String() string {
	if m.op.Tagged() {
		return fmt.Sprintf("%v to %v+0x%x, %d octets in %d segments", m.op, m.tag, m.to, len(m.data), m.segments)
	}
	return fmt.Sprintf("%v qn=%d msn=%d, %d octets in %d segments", m.op, m.qn, m.msn, len(m.data), m.segments)
}

// A referee watches what one end sends, segment by segment, and holds it to the
// rules that every sender must keep: RFC 5041 §4 and §5.2, RFC 5040 §4.1 and
// §5.4.
type referee struct {
	messages []message
	next     [NumQueues]uint32 // MSN less one
	begun    bool
	control  ddp.Segment // header of the message's first segment
	ended    bool        // there was a Terminate
}

func (r *referee) see(b []byte) error {
	seg, err := ddp.ParseSegment(b)
	if err != nil {
		return err
	}
	if r.ended {
		return fmt.Errorf("%x was sent after the Terminate", b)
	}
	if seg.Control.Reserved() != 0 || seg.Control.Version() != 1 {
		return fmt.Errorf("DDP control field %#02x", uint8(seg.Control))
	}
	c, tagged := Control(b[1]), seg.Control.Tagged()
	if c.Version() != 1 || c.Reserved() != 0 || !c.Opcode().Valid() || c.Opcode().Tagged() != tagged {
		return fmt.Errorf("RDMAP control field %#02x, tagged: %v", uint8(c), tagged)
	}
	if r.begun && c.Opcode() == OpTerminate && b[1] != byte(r.last().op)|0x40 {
		r.begun = false // the message inside which the stream ended is given up
		r.messages = r.messages[:len(r.messages)-1]
	}
	if !r.begun {
		r.messages = append(r.messages, message{op: c.Opcode()})
		r.control = seg
	}
	m := r.last()
	if tagged {
		err = r.tagged(m, &seg)
	} else {
		err = r.untagged(m, &seg)
	}
	m.data = append(m.data, seg.Payload...)
	m.segments++
	r.begun = !seg.Control.Last()
	r.ended = !r.begun && m.op == OpTerminate
	return err
}

func (r *referee) last() *message { return &r.messages[len(r.messages)-1] }

func (r *referee) tagged(m *message, seg *ddp.Segment) error {
	if !r.begun {
		m.tag, m.to = seg.Tagged.STag, seg.Tagged.TO
	}
	first := r.control.Tagged
	if h := seg.Tagged; h.RsvdULP != first.RsvdULP || h.STag != first.STag || h.TO != first.TO+uint64(len(m.data)) {
		return fmt.Errorf("%v came %d octets into %v", h, len(m.data), first)
	}
	return nil
}

func (r *referee) untagged(m *message, seg *ddp.Segment) error {
	h := seg.Untagged
	if h.QN != m.op.Queue() {
		return fmt.Errorf("%v on queue %d", m.op, h.QN)
	}
	if !r.begun {
		m.qn, m.msn = h.QN, h.MSN
		m.invalidate = stag.STag(uint32(h.RsvdULP[1])<<24 | uint32(h.RsvdULP[2])<<16 | uint32(h.RsvdULP[3])<<8 | uint32(h.RsvdULP[4]))
		r.next[h.QN]++
		if !m.op.Invalidates() && m.invalidate != 0 {
			return fmt.Errorf("%v with Invalidate STag %v", m.op, m.invalidate)
		}
	}
	first := r.control.Untagged
	if h.RsvdULP != first.RsvdULP || h.QN != first.QN || h.MSN != r.next[h.QN] || h.MO != uint32(len(m.data)) {
		return fmt.Errorf("%v came %d octets into %v; MSN %d is in turn", h, len(m.data), first, r.next[h.QN])
	}
	return nil
}
