package rdsstress

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"
)

// A pair is what a task knows of the messages between itself and one of the other side. It
// decides what is sent next, and whether what comes is what must come next.
type pair struct {
	params           *Params
	self, peer       netip.Addr // as headers have them
	selfPort, toPort uint16
	contents         []byte // behind the headers; nil: they are not verified

	sent, received uint32      // sequence numbers of the next messages
	next           uint32      // slot of the next request that is sent
	expected       uint32      // slot of the next request that comes
	pending        uint32      // requests that were sent and not acknowledged
	unacked        uint32      // requests that have come and were not acknowledged
	begun          []time.Time // when the request of each slot was sent
	buf            []byte      // the message that is being sent

	// With RDMA, by slot.
	asked     []Header // this side's requests
	requests  []Header // the peer's
	operation RDMAOp   // of this side's last request
}

func newPair(p *Params, self, peer netip.Addr, task, other int, contents []byte) *pair {
	q := &pair{
		params: p, self: self, peer: peer,
		selfPort: p.Port + 1 + uint16(task), toPort: p.Port + 1 + uint16(other),
		contents: contents, begun: make([]time.Time, p.Depth),
		buf: make([]byte, max(p.RequestSize, p.AckSize)),
	}
	if p.RDMASize > 0 {
		q.asked, q.requests = make([]Header, p.Depth), make([]Header, p.Depth)
		q.operation = Write // so that the first one is a Read
		if other%2 == 1 {
			q.operation = Read
		}
	}
	copy(q.buf[HeaderLen:], contents)
	return q
}

// compose returns the next message to be sent, if there is one: an acknowledgement, or a
// request if there may be more of them. It counts as sent. The acknowledgement of a slot that is
// blocked waits, and so do those behind it. Without a message, the operation is 0.
func (p *pair) compose(now time.Time, more bool, blocked func(slot uint32) bool) (h Header) {
	depth := p.params.Depth
	h = Header{
		Sequence: p.sent, From: p.self, To: p.peer, FromPort: p.selfPort, ToPort: p.toPort,
	}
	slot := (p.expected + depth - p.unacked) % depth
	switch {
	case p.unacked > 0 && !blocked(slot):
		h.Op, h.Index = Ack, uint16(slot)
		if p.requests != nil && p.requests[slot].RDMAOp != NoRDMA {
			h.mirror(&p.requests[slot])
		}
		p.unacked--
	case more && p.pending < depth:
		h.Op, h.Index = Request, uint16(p.next)
		p.plan(&h)
		if p.asked != nil {
			p.asked[p.next] = h
		}
		p.begun[p.next] = now
		p.next = (p.next + 1) % depth
		p.pending++
	default:
		return Header{}
	}
	p.sent++
	return h
}

// encode returns the message with a header, which is valid until the next call.
func (p *pair) encode(h *Header) []byte {
	h.AppendTo(p.buf[:0])
	if h.Op == Ack {
		return p.buf[:p.params.AckSize]
	}
	return p.buf[:p.params.RequestSize]
}

// A Mismatch is a message that is not the one that had to come next.
type Mismatch struct {
	From, To uint16 // ports
	Header   Header // what has come
	What     string
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("%v %d from port %d to port %d: %s", m.Header.Op, m.Header.Sequence, m.From, m.To, m.What)
}

// arrived takes a message, and the cookie that came with it. Of an acknowledgement it returns when its request was sent. The
// error is a *Mismatch, or says that there is no header.
func (p *pair) arrived(msg []byte, cookie uint64) (h Header, begun time.Time, err error) {
	h, err = ParseHeader(msg)
	if err != nil {
		return h, begun, err
	}
	if h.Op == Request && cookie != 0 {
		h.Key = cookie
	}
	wrong := func(format string, args ...any) (Header, time.Time, error) {
		return h, begun, &Mismatch{p.toPort, p.selfPort, h, fmt.Sprintf(format, args...)}
	}
	depth := p.params.Depth
	size, index := p.params.RequestSize, p.expected
	if h.Op == Ack {
		size, index = p.params.AckSize, (p.next+depth-p.pending)%depth
	}
	switch missing := int32(h.Sequence - p.received); {
	case missing > 0:
		return wrong("number %d had to be next: %d are missing", p.received, missing)
	case missing < 0:
		return wrong("number %d had to be next: this one came before", p.received)
	case h.From != p.peer || h.To != p.self || h.FromPort != p.toPort || h.ToPort != p.selfPort:
		return wrong("it says that it is from %v:%d to %v:%d", h.From, h.FromPort, h.To, h.ToPort)
	case uint32(len(msg)) != size:
		return wrong("it has %d bytes, and not %d", len(msg), size)
	case h.Op == Ack && p.pending == 0:
		return wrong("no request is outstanding")
	case h.Op == Request && p.unacked == depth:
		return wrong("more than %d requests are outstanding", depth)
	case h.Index != uint16(index):
		return wrong("it has slot %d, and not %d", h.Index, index)
	case p.contents != nil && !bytes.Equal(msg[HeaderLen:], p.contents[:size-HeaderLen]):
		at := 0
		for msg[HeaderLen+at] == p.contents[at] {
			at++
		}
		return wrong("byte %d is %#02x, and not %#02x", HeaderLen+at, msg[HeaderLen+at], p.contents[at])
	}
	if what := p.judgeRDMA(&h, index); what != "" {
		return wrong("%s", what)
	}
	p.received++
	if h.Op == Ack {
		p.pending--
		return h, p.begun[index], nil
	}
	if p.requests != nil {
		p.requests[p.expected] = h
	}
	p.expected = (p.expected + 1) % depth
	p.unacked++
	return h, begun, nil
}
