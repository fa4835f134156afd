package rdpflow

import (
	"encoding/json"
	"errors"
	"fmt"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/mpa"
	"urnic/ulp/rdp/rdpllp/llpwire"
	"urnic/ulp/rdp/wire"
)

// A ddp follows DDP over RDP in a connection (docs/ddp-over-rdp.md).
//
// Segments of DDP are shown as they arrive. They are judged in the order in which their sender numbered them: what RDP has
// not brought yet is waited for, and what the capture lacks is given up when the other side has acknowledged it.
type ddp struct {
	c    *conn
	d    *dissect.DDP
	dirs [2]ddpDirection // by sender

	request, answer *start
	early           early
	shut            bool // the connection of RDP was closed
	over            bool // nothing more comes of it
	judged          bool // the sizes of both sides were
}

// A ddpDirection is what one side sends. Its numbers are those of RDP, but where they are called segments.
type ddpDirection struct {
	turn
	begins    bool   // first says something
	first     uint64 // the lowest number that had a message other than one of start-up
	highest   uint64 // the highest number of a segment
	toldOrder bool
	toldAfter bool // that it sends behind its end, or although the connection was rejected
	end       *ending
	ended     bool // all up to the end was delivered, or given up
}

// tries is how many messages may not look like DDP over RDP in a connection to its port, before another protocol is taken to
// use it.
const tries = 4

// A carried is what a message of RDP is in DDP over RDP.
type carried struct {
	Kind   string  `json:"kind"` // of llpwire; "damaged" or "malformed"
	Number *uint32 `json:"number,omitempty"`

	kind   llpwire.Kind // as far as it can be known
	number uint32
	ack    uint32 // of the segment of RDP
	body   []byte
	err    error
}

func (m *carried) String() string {
	switch {
	case m.err != nil:
		return m.Kind + " message of DDP over RDP"
	case m.kind == llpwire.Segment:
		return fmt.Sprintf("DDP segment %d", m.number)
	case m.kind == llpwire.End:
		return fmt.Sprintf("end of %s of DDP", count(uint64(m.number), "segment"))
	}
	return m.Kind + " of DDP over RDP"
}

// MarshalJSON writes it as an object.
func (m *carried) MarshalJSON() ([]byte, error) {
	type plain carried
	j := plain{Kind: m.Kind}
	if m.err == nil && (m.kind == llpwire.Segment || m.kind == llpwire.End) {
		j.Number = &m.number
	}
	return json.Marshal(j)
}

// carry decodes the message of a segment.
func (m *carried) carry(data []byte, ack uint32) {
	*m = carried{ack: ack}
	m.kind, m.number, m.body, m.err = llpwire.Parse(data)
	switch {
	case m.err == nil:
		m.Kind = m.kind.String()
	case isDamaged(m.err):
		m.Kind = "damaged"
		m.kind, m.number, m.body = llpwire.Peek(data)
	default:
		m.Kind = "malformed"
	}
}

// reason returns what an error of the codec found.
func reason(err error) string {
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		return e.Reason
	}
	return err.Error()
}

func isDamaged(err error) bool {
	e, ok := errors.AsType[*mpa.Error](err)
	return ok && e.Code == mpa.CodeCRC
}

// looks reports whether a message looks like one of DDP over RDP: its checksum is right, or its header makes sense.
func (m *carried) looks(size int) bool {
	return m.err == nil || m.kind != 0 || size >= llpwire.Overhead && !isDamaged(m.err)
}

// carries says what the connection carries in a segment, if that is DDP over RDP.
func (c *conn) carries(s *Segment) {
	if c.sum.Ports[dissect.Server] != llpwire.Port || c.ddp == nil && c.tried >= tries {
		return
	}
	if s.Kind() == KindData && s.Missing == 0 && !s.Stray {
		s.message = &c.a.message
		s.message.carry(s.Data, s.Header.Ack)
		if c.ddp == nil && !s.message.looks(len(s.Data)) {
			c.tried++
			s.message = nil
			return
		}
	}
	if c.ddp == nil && s.message != nil {
		c.ddp = newDDP(c)
	}
	s.within = c.ddp != nil
}

// newDDP begins to follow DDP in a connection.
func newDDP(c *conn) *ddp {
	p := &ddp{c: c, d: c.r.DDP()}
	for i := range p.dirs {
		side := dissect.Side(i)
		if d := &c.dirs[i]; d.syn {
			p.dirs[i].begin(d.iss + 1)
			p.dirs[i].counted = true
			p.dirs[i].last = d.iss
			p.d.FromStart(side)
		} else {
			p.dirs[i].loose = true
			p.d.PickedUp(side)
		}
	}
	if !p.known() {
		c.note(dissect.Client, c.last, "DDP over RDP, picked up in mid-stream: its start-up was not captured")
	}
	return p
}

// known reports whether the capture has the connection from its start on.
func (p *ddp) known() bool { return p.c.dirs[0].syn && p.c.dirs[1].syn }

// take takes a segment of RDP that has arrived, and has a right place in the connection.
func (p *ddp) take(from dissect.Side, at capture.At, s *Segment, number uint64) {
	if !p.judged {
		p.judged = true
		p.room(dissect.Client)
		p.room(dissect.Server)
	}
	d := &p.dirs[from]
	if s.numbered() && !d.begun {
		d.begin(number)
	}
	fresh := s.numbered() && d.add(number)
	// The other side had it before, as its acknowledgement tells, or something that only makes sense with it.
	if behind := number+1 < p.c.dirs[from].next; fresh && (number <= d.acked || behind && p.hasHead(1-from)) {
		p.d.Late(from)
	}
	p.acknowledges(from, s)
	p.lacks(at)
	if fresh {
		switch {
		case s.message != nil:
			p.message(from, at, s, number)
		case s.Missing > 0: // what it was is not known
			d.tear(number)
		}
	}
	p.advance(at)
}

// message takes a message.
func (p *ddp) message(from dissect.Side, at capture.At, s *Segment, number uint64) {
	m, d := s.message, &p.dirs[from]
	if m.err != nil {
		d.tear(number)
		p.wrong(from, at, s)
		return
	}
	switch m.kind {
	case llpwire.Segment:
		p.segment(from, at, s, number)
	case llpwire.End:
		p.ending(from, at, m, number)
	default:
		p.offer(from, at, s, number)
	}
}

// wrong reports a message that can't be decoded.
func (p *ddp) wrong(from dissect.Side, at capture.At, s *Segment) {
	m := s.message
	if !isDamaged(m.err) {
		p.c.r.Lacks(len(s.Data))
		p.c.r.Violate(ruleDDPMessage, from, at, "%s", reason(m.err))
		return
	}
	p.d.BadCRC(len(s.Data))
	if m.kind == llpwire.Segment {
		p.d.Damaged(from, at, p.dirs[from].segmentNumber(m.number), s.Data, m.body)
	}
	p.c.r.Violate(ruleDDPCRC, from, at, "%s", reason(m.err))
}

// segment takes a segment of DDP.
func (p *ddp) segment(from dissect.Side, at capture.At, s *Segment, number uint64) {
	m, d := s.message, &p.dirs[from]
	p.follows(from, at, number, m)
	d.highest = max(d.highest, number)
	n := d.segmentNumber(m.number)
	switch {
	case d.has(n):
		p.c.r.Violate(ruleDDPNumber, from, at, "segment %d comes again, under number %d of RDP", m.number, uint32(number))
		return
	case n < d.next || n-d.next >= maxAhead:
		if !d.loose {
			p.c.r.Violate(ruleDDPNumber, from, at, "segment %d, where %d is next: RDP's window is less than what lies between them", m.number, uint32(d.next))
		}
		return
	case d.end != nil && n >= d.end.total && !d.toldAfter:
		d.toldAfter = true
		p.c.r.Violate(ruleDDPEnd, from, at, "segment %d, where the end says that there were %d", m.number, d.end.total)
	}
	p.d.Arrive(from, at, n, s.Data, m.body)
	p.put(from, at, n, number, m.body)
}

// follows judges whether a segment, or the end, may be where it is.
func (p *ddp) follows(from dissect.Side, at capture.At, number uint64, m *carried) {
	d := &p.dirs[from]
	if !d.begins || number < d.first {
		d.begins, d.first = true, number
	}
	p.checkFirst(from, at)
	switch {
	case p.answer != nil && p.answer.kind == llpwire.Reject && !d.toldAfter:
		d.toldAfter = true
		p.c.r.Violate(ruleDDPOrder, from, at, "it sends in a connection that was rejected")
	case d.end != nil && number > d.end.number && !d.toldAfter:
		d.toldAfter = true
		p.c.r.Violate(ruleDDPEnd, from, at, "something follows the end of its direction")
	case from == dissect.Client && p.answer == nil && !p.early.seen && p.known():
		p.early = early{true, at, m.ack}
	}
}

// room judges whether a side leaves room for segments of DDP.
func (p *ddp) room(from dissect.Side) {
	d := &p.c.dirs[from]
	const minMULPDU = 128 // RFC 5041 §5.1
	if n := int(d.limits.size) - wire.IPLen - wire.FixedLen - llpwire.Overhead; d.syn && n < minMULPDU {
		p.c.r.Violate(ruleDDPRoom, from, p.c.last, "the %v takes segments of RDP with room for %d bytes of DDP; at least %d are needed", from, n, minMULPDU)
	}
}
