package rdpflow

import (
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// A start is a message of start-up.
type start struct {
	kind   llpwire.Kind
	offer  llpwire.Offer
	number uint64 // of RDP
	at     capture.At
}

// An early is what the client has sent without having seen an answer.
type early struct {
	seen bool
	at   capture.At
	ack  uint32 // what it acknowledges
}

// started returns what a side has sent of start-up, or nil.
func (p *ddp) started(from dissect.Side) *start {
	if from == dissect.Client {
		return p.request
	}
	return p.answer
}

// offer takes a message of start-up.
func (p *ddp) offer(from dissect.Side, at capture.At, s *Segment, number uint64) {
	m, r := s.message, p.c.r
	if m.number != 0 {
		r.Violate(ruleDDPMessage, from, at, "a message of start-up with the number %d; it has 0", m.number)
	}
	o, err := llpwire.ParseOffer(m.body)
	if err != nil {
		p.dirs[from].tear(number)
		r.Violate(ruleDDPOffer, from, at, "%s", reason(err))
		return
	}
	switch before := p.started(from); {
	case (m.kind == llpwire.Request) != (from == dissect.Client):
		r.Violate(ruleDDPRole, from, at, "the %v sends %v", from, name(m.kind))
		return
	case before != nil:
		r.Violate(ruleDDPRole, from, at, "the %v sends %v, and has sent %v before", from, name(m.kind), name(before.kind))
		return
	}
	st := &start{m.kind, o, number, at}
	if from == dissect.Client {
		p.request = st
	} else {
		p.answer = st
	}
	p.d.Offer(from, at, &dissect.Offer{Kind: m.kind.String(), IRD: o.IRD, ORD: o.ORD, Private: o.Private}, s.Data)
	p.checkFirst(from, at)
	if p.request != nil && p.answer != nil {
		p.depths()
		p.settleEarly()
	}
}

// name is the name of a message of start-up.
func name(k llpwire.Kind) string {
	if k == llpwire.Accept {
		return "an accept"
	}
	return "a " + k.String()
}

// depths judges IRD and ORD of an accept (RFC 6581 §9.1), and takes what is settled.
func (p *ddp) depths() {
	ask, answer := &p.request.offer, &p.answer.offer
	if p.answer.kind == llpwire.Reject {
		return
	}
	if answer.IRD > ask.ORD {
		p.c.r.Violate(ruleDDPDepths, dissect.Server, p.answer.at, "the accept has IRD %d, above the ORD %d of the request", answer.IRD, ask.ORD)
	}
	if answer.ORD > ask.IRD {
		p.c.r.Violate(ruleDDPDepths, dissect.Server, p.answer.at, "the accept has ORD %d, above the IRD %d of the request", answer.ORD, ask.IRD)
	}
	p.d.Limit(dissect.Client, int(min(ask.ORD, answer.IRD)))
	p.d.Limit(dissect.Server, int(answer.ORD))
}

// checkFirst judges whether a side has sent something before its message of start-up.
func (p *ddp) checkFirst(from dissect.Side, at capture.At) {
	d, st := &p.dirs[from], p.started(from)
	if st != nil && d.begins && d.first < st.number && !d.toldOrder && p.known() {
		d.toldOrder = true
		p.c.r.Violate(ruleDDPOrder, from, at, "the %v has sent something before its %v", from, st.kind)
	}
}

// settleEarly judges what the client sent before the capture has an answer. If it had one, it would have acknowledged it.
func (p *ddp) settleEarly() {
	e := &p.early
	if !e.seen || p.dirs[dissect.Client].toldOrder {
		return
	}
	unread := extend(p.answer.number, e.ack) < p.answer.number
	if late := p.answer.at.Time.Sub(e.at.Time); unread && (p.c.a.Complete || late >= settleAfter) {
		p.c.r.Violate(ruleDDPOrder, dissect.Client, e.at, "the client has sent something before it could have the answer to its request")
	}
}

// unanswered judges the same at the end of a connection that the capture has no answer of.
func (p *ddp) unanswered() {
	switch {
	case !p.early.seen || p.answer != nil || p.dirs[dissect.Client].toldOrder || p.dirs[dissect.Server].lacks:
	case p.c.a.Complete:
		p.c.r.Violate(ruleDDPOrder, dissect.Client, p.early.at, "the client has sent something, and its request was never answered")
	default:
		p.c.r.Note(dissect.Client, p.early.at, "perhaps a violation of %s, unless the capture lacks packets: the client has sent something, and there is no answer to its request", ruleDDPOrder.Clause)
	}
}
