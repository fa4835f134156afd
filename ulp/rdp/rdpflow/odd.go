package rdpflow

import (
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
)

// An odd follows the segments of two endpoints that belong to no connection: their form is wrong, or
// too little of them was captured.
type odd struct {
	line
	pair   pair
	client end
}

// newOdd begins one with its first segment.
func (a *Analyzer) newOdd(d *capture.Datagram, p pair) follower {
	client, server := end{addr: d.Src}, end{addr: d.Dst}
	if a.serves(d.Src) && !a.serves(d.Dst) {
		client, server = server, client
	}
	r := a.reporter(client.shown(), server.shown())
	if r == nil {
		return nil
	}
	o := &odd{line: line{a: a, r: r, sum: newSummary("malformed", 0, 0, 0)}, pair: p, client: client}
	r.Connection().Upper = o.sum
	o.place = a.order.PushBack(o)
	return o
}

// end takes leave of it.
func (o *odd) end() {
	o.a.forgetPair(o.pair, o)
	o.r.End()
}

// segment takes a segment.
func (o *odd) segment(at capture.At, d *capture.Datagram, s *Segment) {
	from := dissect.Server
	if o.client.addr == d.Src {
		from = dissect.Client
	}
	n := o.sum.side(from)
	n.carried(s)
	if at.BadChecksum {
		o.r.Note(from, at, "the UDP checksum is wrong, so that this has not arrived: %v", s)
		return
	}
	if s.Missing > 0 {
		o.r.Lacks(s.Missing)
	}
	n.segment(s)
	if s.Fault != nil {
		o.blame(formRule(s.Fault), from, at, "%s: %s", s.Fault.Fault, s.Fault.Reason())
	}
	o.flush(from, at, s)
}
