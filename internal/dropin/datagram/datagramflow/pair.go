package datagramflow

import (
	"container/list"
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/rendezvous"
	"urnic/internal/program/dissect"
)

// The rules of datagrams: docs/datagrams.md has them.
var (
	ruleHeader  = dissect.Rule{ID: "datagram-header", Clause: "docs/datagrams.md, What crosses the wire"}
	ruleCRC     = dissect.Rule{ID: "datagram-crc", Clause: "docs/datagrams.md, What is checked, 5"}
	ruleSource  = dissect.Rule{ID: "datagram-source", Clause: "docs/datagrams.md, What is checked, 4"}
	ruleKey     = dissect.Rule{ID: "datagram-qkey", Clause: "docs/datagrams.md, What is checked, 3"}
	ruleAck     = dissect.Rule{ID: "datagram-ack", Clause: "docs/datagrams.md, What is lost"}
	ruleService = dissect.Rule{ID: "datagram-service", Clause: "docs/datagrams.md, rdma_cm"}
)

// A pair is what two processes send each other.
type pair struct {
	a      *Analyzer
	id     ends
	place  *list.Element
	r      *dissect.Reporter
	client netip.AddrPort
	sum    *Summary
	sent   [2]progress // by dissect.Side
}

// progress is what a side has sent.
type progress struct {
	some    bool
	highest uint32
}

// side returns who has sent a datagram.
func (p *pair) side(d *capture.Datagram) dissect.Side {
	if d.Src == p.client {
		return dissect.Client
	}
	return dissect.Server
}

// datagram takes a datagram of a queue pair.
func (p *pair) datagram(at capture.At, d *capture.Datagram) {
	from := p.side(d)
	n := p.sum.side(from)
	n.Datagrams++
	if d.Missing > 0 {
		p.r.Lacks(d.Missing)
		return
	}
	h, payload, err := datagram.Parse(d.Data)
	m := &Message{Header: h, Payload: len(payload), group: d.Dst.Addr().IsMulticast()}
	switch {
	case err != nil:
		m.fault = "malformed"
	case !datagram.Intact(d.Data):
		m.fault = "CRC wrong"
	}
	if m.fault == "" {
		m.next, m.gap = p.sent[from].next(&h)
	}
	p.r.Emit(from, at, m)
	switch m.fault {
	case "malformed":
		n.Malformed++
		p.r.Violate(ruleHeader, from, at, "%d bytes with the magic of a datagram have no header that is valid", len(d.Data))
		return
	case "CRC wrong":
		n.Corrupt++
		p.r.Violate(ruleCRC, from, at, "the CRC32c of %d bytes for QP 0x%x is wrong", len(d.Data), h.Dest)
		return
	}
	if h.Op == datagram.Ack {
		n.Acks++
		p.judgeAck(at, from, &h)
		return
	}
	n.count(&h, payload, m)
	p.judge(at, from, d, &h)
}

// next notes a datagram, and reports whether it has the number that is due, and how many are missing before it.
func (s *progress) next(h *datagram.Header) (next bool, gap uint32) {
	if h.Op == datagram.Ack {
		return true, 0
	}
	d := h.Sequence - s.highest
	next = !s.some || d == 1
	if s.some && int32(d) > 1 {
		gap = d - 1
	}
	if !s.some || int32(d) > 0 {
		s.some, s.highest = true, h.Sequence
	}
	return next, gap
}

// judge looks whether the datagram may come from where it comes, and has the Q_Key that was told.
func (p *pair) judge(at capture.At, from dissect.Side, d *capture.Datagram, h *datagram.Header) {
	first := int(d.Src.Port()) - int(rendezvous.SlotOf(h.Source))
	group := d.Dst.Addr().IsMulticast()
	switch {
	case group && h.Dest != datagram.Multicast, !group && h.Dest == datagram.Multicast:
		p.r.Violate(ruleHeader, from, at, "QP 0x%x at %v: 0xffffff is the number of a group, and of nothing else", h.Dest, d.Dst.Addr())
	case rendezvous.SlotOf(h.Source) == 0, group && first != int(d.Dst.Port()), !group && first != int(d.Dst.Port())-int(rendezvous.SlotOf(h.Dest)):
		p.r.Violate(ruleSource, from, at, "QP 0x%x can't send from port %d: its number says slot %d", h.Source, d.Src.Port(), rendezvous.SlotOf(h.Source))
	}
	if key, known := p.a.keys[queuePair{d.Dst.Addr(), h.Dest}]; known && h.Op == datagram.Send && key != h.Key {
		p.r.Violate(ruleKey, from, at, "Q_Key 0x%x for QP 0x%x, whose Q_Key is 0x%x: it is dropped", h.Key, h.Dest, key)
	}
}

// judgeAck looks whether what is acknowledged was sent.
func (p *pair) judgeAck(at capture.At, from dissect.Side, h *datagram.Header) {
	if s := p.sent[1-from]; s.some && int32(h.Sequence-s.highest) > 0 {
		p.r.Violate(ruleAck, from, at, "datagram %d is acknowledged, and %d is the last one that was sent", h.Sequence, s.highest)
	}
}

// service takes a message of service resolution.
func (p *pair) service(at capture.At, d *capture.Datagram) {
	from := p.side(d)
	n := p.sum.side(from)
	n.Datagrams++
	if d.Missing > 0 {
		p.r.Lacks(d.Missing)
		return
	}
	s, err := datagram.ParseService(d.Data)
	if err != nil {
		n.Malformed++
		p.r.Violate(ruleService, from, at, "%d bytes with the magic of service resolution: the form or the CRC32c is wrong", len(d.Data))
		return
	}
	m := &Resolution{Service: s}
	m.Data = append([]byte(nil), s.Data...)
	p.r.Emit(from, at, m)
	if s.Kind == datagram.ServiceReply && s.Status == datagram.ServiceOK {
		p.a.learn(queuePair{d.Src.Addr(), s.QPN}, s.Key)
	}
}
