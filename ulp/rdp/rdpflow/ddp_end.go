package rdpflow

import (
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// An ending is the end of a direction.
type ending struct {
	number uint64 // of RDP
	total  uint64 // segments
}

// ending takes the end of a direction.
func (p *ddp) ending(from dissect.Side, at capture.At, m *carried, number uint64) {
	d, r := &p.dirs[from], p.c.r
	if len(m.body) > 0 {
		r.Violate(ruleDDPMessage, from, at, "an end with %s; it has none", count(uint64(len(m.body)), "byte"))
	}
	if d.end != nil {
		r.Violate(ruleDDPEnd, from, at, "the end comes twice")
		return
	}
	p.follows(from, at, number, m)
	d.end = &ending{number, d.segmentNumber(m.number)}
	if d.highest > number && !d.toldAfter {
		d.toldAfter = true
		r.Violate(ruleDDPEnd, from, at, "something was sent behind the end of its direction")
	}
}

// finish ends a direction if all of it was delivered or given up.
func (p *ddp) finish(from dissect.Side, at capture.At) {
	d := &p.dirs[from]
	if d.end == nil || d.ended || len(d.waiting) > 0 || d.end.number > d.done || p.held(from) {
		return
	}
	d.ended = true
	switch {
	case d.next == d.end.total || d.loose || d.toldAfter:
	case d.torn.within(d.last+1, d.end.number):
		p.lose(from)
	default:
		p.c.r.Violate(ruleDDPEnd, from, at, "the end says that there were %s; there were %d", count(uint64(uint32(d.end.total)), "segment"), uint32(d.next))
	}
	p.d.Close(from, at)
}

// closed takes notice that a side has closed the connection of RDP.
func (p *ddp) closed(from dissect.Side, at capture.At) {
	if p.shut {
		return
	}
	p.shut = true
	rejected := p.answer != nil && p.answer.kind == llpwire.Reject
	if !rejected && (p.dirs[0].end == nil || p.dirs[1].end == nil) {
		p.d.Reset(from, at)
	}
}

// leave takes leave of the connection: nothing more comes.
func (p *ddp) leave(at capture.At) {
	p.over = true
	for side := range p.dirs {
		p.giveUp(dissect.Side(side), at, true)
	}
	p.advance(at)
	for from, found := p.head(); found; from, found = p.head() { // it looks wrong, and the capture may lack what explains it
		w := &p.dirs[from].waiting[0]
		p.c.r.Note(from, w.at, "segment %d breaks a rule, unless the capture lacks what the %v has sent: it is not known to its end", uint32(w.segment), 1-from)
		p.lose(1 - from)
		p.advance(at)
	}
	p.unanswered()
}
