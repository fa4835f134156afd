package activenet

import (
	"time"

	"urnic/ulp/rdp/congestion"
)

// A Program is the code that a node runs for the packets that are to take one of its links.
type Program interface {
	// Arrive is called for each packet, before it is queued, and says what becomes of it. The
	// program may call methods of the link: see how long the queue is, or send reports.
	Arrive(l *Link, p *Packet) Action
}

// An Action says what becomes of a packet. The zero value passes it.
type Action struct {
	Drop  bool
	Mark  bool          // the receiver tells the sender of it
	Delay time.Duration // before it is queued
}

// Pass is the zero Action.
var Pass = Action{}

// DropTail is the program that does nothing: the queue drops what it has no room for.
type DropTail struct{}

// Arrive implements [Program].
func (DropTail) Arrive(*Link, *Packet) Action { return Pass }

// Report sends a report from the link's node to the sender of a flow, over the links that the
// flow's acknowledgements take from there. If those don't pass the node, nothing is sent,
// and it returns false.
func (l *Link) Report(f *Flow, r congestion.Report) bool {
	if f == nil {
		return false
	}
	for i, back := range f.back {
		if back.from == l.from {
			l.Stats.Reports++
			r.From = l.from.name
			l.net.inject(Packet{Flow: f, Bytes: reportBytes, Report: &r}, f.back[i:])
			return true
		}
	}
	return false
}

// Answer sends a segment from the link's node back to where a packet came from, in the name of
// the other end. It returns false if the way back does not pass the node.
func (l *Link) Answer(to *Packet, segment []byte) bool {
	if to.Flow == nil {
		return false
	}
	path := to.Flow.back
	if !to.Forward {
		path = to.Flow.path
	}
	for i, back := range path {
		if back.from == l.from {
			l.net.inject(Packet{Flow: to.Flow, Forward: !to.Forward, Bytes: carrierBytes + len(segment), Segment: segment}, path[i:])
			return true
		}
	}
	return false
}
