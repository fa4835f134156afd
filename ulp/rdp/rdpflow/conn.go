package rdpflow

import (
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// A conn follows a connection of RDP.
type conn struct {
	line
	id     connID
	pair   pair
	client end
	dirs   [2]direction // by sender
	prev   *conn        // the one before it between the same ends
	opened bool         // both sides have acknowledged each other's SYN
	closed bool         // a side has ended it
	ended  bool         // its End was told
	loop   loop
	start  capture.At
	ddp    *ddp // what it carries, if that is DDP
	tried  int  // messages that don't look like that
}

// A direction is what one side has sent.
type direction struct {
	placed bool   // ref is a number of this side, as far as the other side has said
	ref    uint64 // a number that is in use
	any    bool   // this side has sent a number
	low    uint64 // the lowest number of this side
	next   uint64 // no number from here on is known to be used
	seen   set    // numbers of SYN, NUL and data
	recent recent

	syn       bool // its SYN was seen
	iss       uint64
	limits    limits
	cur       uint64 // the highest number of the other side that it has acknowledged, if acked
	acked     bool
	eacked    set // numbers of the other side behind cur that it has acknowledged
	bare      stair
	rst       bool // it has ended the connection
	rstNumber uint64
	aged      aged
	doubts    []doubt // that segments of this side settle

	toldIgnored, toldPseudo, toldNUL bool
}

// limits are what a SYN says of its sender.
type limits struct {
	most      uint16 // segments that may be unacknowledged
	size      uint16 // of the largest segment, with 20 bytes for IP
	sequenced bool
}

// newConn begins a connection with its first segment. Prev is the one before it between the same
// ends, or nil.
func (a *Analyzer) newConn(d *capture.Datagram, h *wire.Header, prev *conn) *conn {
	id := newConnID(d, h)
	client, server := end{d.Src, h.Source}, end{d.Dst, h.Dest}
	if !a.opens(d, h, prev) {
		client, server = server, client
	}
	r := a.reporter(client.shown(), server.shown())
	if r == nil {
		return nil
	}
	prev = a.conns[id] // unless it had to go
	c := &conn{line: line{a: a, r: r}, id: id, pair: newPair(d), client: client}
	c.sum = newSummary("connection", h.Version, client.port, server.port)
	r.Connection().Upper = c.sum
	c.place = a.order.PushBack(c)
	if prev != nil {
		if prev.prev != nil {
			a.drop(prev.prev.place)
		}
		c.prev = prev
	}
	if a.conns == nil {
		a.conns = map[connID]*conn{}
	}
	a.conns[id] = c
	a.serve(server.addr)
	return c
}

// shown is how the analysis shows an end: that of IP with the port of RDP.
func (e end) shown() netip.AddrPort {
	if e.addr.Port() == 0 {
		return netip.AddrPortFrom(e.addr.Addr(), e.port)
	}
	return e.addr
}

// opens reports whether the sender of a connection's first segment is its client. If the capture
// lacks the SYN, that is a guess.
func (a *Analyzer) opens(d *capture.Datagram, h *wire.Header, prev *conn) bool {
	switch {
	case h.Flags&wire.SYN != 0:
		return h.Flags&wire.ACK == 0
	case refusal(h):
		return false
	case prev != nil:
		return prev.client == end{d.Src, h.Source}
	case a.serves(d.Dst) != a.serves(d.Src):
		return a.serves(d.Dst)
	case (d.Dst.Port() == wire.UDPPort) != (d.Src.Port() == wire.UDPPort):
		return d.Dst.Port() == wire.UDPPort
	}
	return h.Dest <= h.Source
}

// refusal reports whether a segment is the answer of a side that has no connection to one that
// acknowledges nothing: its sequence number says nothing (RFC 908 §3.7.2).
func refusal(h *wire.Header) bool {
	return h.Flags&(wire.RST|wire.ACK) == wire.RST|wire.ACK && h.Seq == 0
}

// from says which side has sent a datagram with the ports of h.
func (c *conn) from(d *capture.Datagram, h *wire.Header) dissect.Side {
	if c.client == (end{d.Src, h.Source}) {
		return dissect.Client
	}
	return dissect.Server
}

// takes returns the connection that a segment belongs to: c, the one before it, or nil if it
// begins the next. A segment that fits neither belongs to c.
func (c *conn) takes(d *capture.Datagram, h *wire.Header) *conn {
	from := c.from(d, h)
	switch {
	case c.fits(from, h):
		return c
	case c.prev != nil && c.prev.fits(from, h):
		return c.prev
	case h.Flags&wire.SYN != 0, c.closed && h.Flags&wire.RST == 0: // the capture may lack the SYN
		return nil
	}
	return c
}

// few is how many numbers the capture may have of a side in front of its SYN, or lack at its end.
const few = 1 << 10

// fits reports whether a segment may belong to the connection.
func (c *conn) fits(from dissect.Side, h *wire.Header) bool {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	acks := h.Flags&wire.ACK == 0 || !peer.placed
	if !acks {
		n := extend(peer.ref, h.Ack)
		acks = near(n, peer.ref) && (!peer.syn || n >= peer.iss)
	}
	number := extend(d.ref, h.Seq)
	switch {
	case refusal(h):
		return acks
	case h.Flags&wire.SYN != 0 && d.syn:
		return number == d.iss
	case h.Flags&wire.SYN != 0 && d.any: // behind its time
		return number < d.low && d.low-number <= few && acks
	case h.Flags&wire.SYN != 0 && d.placed: // the capture has the answer first
		return number <= d.ref && d.ref-number <= few && acks
	case h.Flags&wire.SYN != 0:
		return acks
	case d.placed && c.closed && number > c.lastNumber(from):
		return false
	case d.placed:
		return near(number, d.ref) && (!d.syn || number > d.iss)
	}
	return acks
}

// lastNumber is the highest number that a side may use after the connection is closed, of what it had
// outstanding. If the other side's window is not known, that is a guess.
func (c *conn) lastNumber(from dissect.Side) uint64 {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	if peer.syn && peer.acked {
		return peer.cur + 2*uint64(peer.limits.most) + 1
	}
	return d.ref + few
}

// end takes leave of the connection.
func (c *conn) end() {
	c.settleAll()
	if c.ddp != nil {
		c.ddp.leave(c.last)
	}
	c.finish(dissect.Client, c.last, "")
	for i := range c.dirs {
		c.a.hashes -= len(c.dirs[i].recent.slots)
	}
	if c.a.conns[c.id] == c {
		delete(c.a.conns, c.id)
	} else if next := c.a.conns[c.id]; next != nil && next.prev == c {
		next.prev = nil
	}
	c.prev = nil
	c.a.forgetPair(c.pair, c)
	c.r.End()
}

// segment takes a segment of the connection.
func (c *conn) segment(at capture.At, d *capture.Datagram, s *Segment) {
	from := c.from(d, &s.Header)
	if s.Fault != nil || s.cut {
		from = c.sender(d)
	}
	if c.number == 0 {
		c.start = at
	}
	c.number++
	c.last = at
	c.sum.side(from).carried(s)
	if at.BadChecksum {
		c.r.Note(from, at, "the UDP checksum is wrong, so that this has not arrived: %v", s)
		return
	}
	if s.Missing > 0 {
		c.r.Lacks(s.Missing)
	}
	if s.cut || s.Fault != nil {
		c.sum.side(from).segment(s)
		if s.Fault != nil {
			c.blame(formRule(s.Fault), from, at, "%s: %s", s.Fault.Fault, s.Fault.Reason())
		}
		c.flush(from, at, s)
		return
	}
	number := c.judge(from, at, s)
	c.sum.side(from).segment(s)
	if !s.Stray {
		c.settle(from, at, s, number)
	}
	c.carries(s)
	c.flush(from, at, s)
	if c.ddp != nil && !s.Stray {
		c.ddp.take(from, at, s, number)
	}
	c.progress(from, at, s)
}

// sender says which side has sent a datagram whose ports of RDP are not to be believed.
func (c *conn) sender(d *capture.Datagram) dissect.Side {
	if c.client.addr == d.Src {
		return dissect.Client
	}
	return dissect.Server
}

// progress reports how the connection begins and ends.
func (c *conn) progress(from dissect.Side, at capture.At, s *Segment) {
	cl, sv := &c.dirs[dissect.Client], &c.dirs[dissect.Server]
	if !c.opened && cl.syn && sv.syn && cl.acked && sv.acked && cl.cur >= sv.iss && sv.cur >= cl.iss {
		c.opened = true
		c.sum.State = "open"
		o := &Open{
			Version: c.id.version, Ports: c.sum.Ports, Client: newLimits(cl), Server: newLimits(sv),
			Sequenced: cl.limits.sequenced || sv.limits.sequenced, Duration: at.Time.Sub(c.start.Time),
		}
		c.r.Emit(from, at, o)
	}
	if s.has(wire.RST) && c.ends(from, s) {
		peer := &c.dirs[1-from]
		switch {
		case c.opened || !c.dirs[from].syn && !peer.syn: // without a SYN, it was open before the capture
			c.finish(from, at, "closed")
		case c.dirs[from].syn:
			c.finish(from, at, "reset")
		default:
			c.finish(from, at, "refused")
		}
	}
}

// ends reports whether the receiver of a RST takes it: its number lies in the window, or it refuses
// what was just sent to open the connection (RFC 908 §3.7.2).
func (c *conn) ends(from dissect.Side, s *Segment) bool {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	switch {
	case s.Stray:
		return false
	case refusal(&s.Header):
		return !c.opened && s.Header.Ack == uint32(peer.ref)
	case !peer.syn || !peer.acked:
		return true
	}
	number := extend(d.ref, s.Header.Seq)
	return peer.cur < number && number <= peer.cur+2*uint64(peer.limits.most)
}

// finish reports how the connection has ended. Without how, the capture has no more of it.
func (c *conn) finish(from dissect.Side, at capture.At, how string) {
	if c.ended {
		return
	}
	c.ended = true
	e := &End{How: how, By: from, Opened: c.opened, Duration: at.Time.Sub(c.start.Time), Client: c.sum.Client.clone(), Server: c.sum.Server.clone()}
	if how != "" {
		c.closed, c.sum.State = true, how
	}
	if c.ddp != nil && how == "closed" {
		c.ddp.closed(from, at)
	}
	c.r.Emit(from, at, e)
}
