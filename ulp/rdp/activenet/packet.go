package activenet

import "urnic/ulp/rdp/congestion"

// A Packet is in transit. It is used again when it has arrived or was dropped: a program must not
// keep it.
type Packet struct {
	Flow    *Flow  // that it is of; nil for cross traffic
	Forward bool   // it goes from the flow's sender to its receiver
	Bytes   int    // on the wire, with all headers
	Segment []byte // the RDP segment, if it is one
	Data    bool   // the segment has data
	State   State  // what it reports about its sender
	Marked  bool   // a program has marked it
	Report  *congestion.Report

	path []*Link // that are still before it; the first one is that it is on
	buf  []byte  // of Segment
}

// State is what an active packet carries for the programs on its way: RDP's header says nothing of
// the congestion window.
type State struct {
	Control  string // the congestion control of the sender, by name
	Window   int    // its window when the packet was sent, in segments
	InFlight int    // what was in flight then, with this packet
}

// reportBytes is the size of a report on the wire: IP and UDP headers, and 20 bytes.
const reportBytes = 48

// packet returns a packet with a copy of a segment.
func (n *Network) packet(p Packet) *Packet {
	if len(n.free) == 0 {
		n.free = append(n.free, new(Packet))
	}
	last := len(n.free) - 1
	q := n.free[last]
	n.free = n.free[:last]
	p.buf = append(q.buf[:0], p.Segment...)
	if p.Segment != nil {
		p.Segment = p.buf
	}
	*q = p
	return q
}

// release takes a packet back.
func (n *Network) release(p *Packet) { n.free = append(n.free, p) }
