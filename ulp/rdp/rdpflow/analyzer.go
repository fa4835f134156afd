package rdpflow

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"slices"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/wire"
)

// What an analysis remembers.
const (
	maxConns   = 1 << 13 // connections that have not been given up
	maxServers = 1 << 15 // UDP endpoints
	maxHashes  = 1 << 20 // segments whose content is remembered
)

// An Analyzer finds RDP in a capture, over UDP and over IP: dissect.IPULP.
type Analyzer struct {
	// All takes each UDP datagram for RDP.
	All bool
	// Ports are UDP ports of which all datagrams are RDP.
	Ports []uint16
	// Brief leaves segments out of the events: what is left is how connections begin and end, and
	// what is wrong.
	Brief bool
	// Complete says that the captures lack no packet.
	Complete bool

	seed    maphash.Seed
	made    bool // seed is
	servers map[netip.AddrPort]struct{}
	conns   map[connID]*conn
	pairs   map[pair]follower // what two endpoints had their last segment for
	order   list.List         // of followers, the longest silent first
	hashes  int
	waiting int                                                   // bytes of segments of DDP that wait for others
	open    func(client, server netip.AddrPort) *dissect.Reporter // during a call
	seg     Segment                                               // the one that is looked at
	message carried                                               // what it carries of DDP
}

// A pair is two endpoints of what carries RDP, in an order of their own. Those of IP have port 0.
type pair [2]netip.AddrPort

// An end is what names one end of a connection (RFC 908 §3.2).
type end struct {
	addr netip.AddrPort // of UDP, or with port 0 of IP
	port uint16         // of RDP
}

// A connID names a connection, or those between the same ends one after another.
type connID struct {
	version uint8
	ends    [2]end // in an order of their own
}

// A follower follows something that the analysis lists as a connection.
type follower interface {
	// segment takes a segment.
	segment(at capture.At, d *capture.Datagram, s *Segment)
	// end takes leave of it.
	end()
	// listed returns its place in the order.
	listed() *list.Element
}

func (l *line) listed() *list.Element { return l.place }

// New returns what follows a connection of iWARP: none carries RDP.
func (a *Analyzer) New(*dissect.Reporter) dissect.Upper { return none{} }

// none follows no connection.
type none struct{ dissect.Upper }

func (none) Frame(dissect.Side, capture.At, []byte) {}
func (none) Follows() bool                          { return false }

// Datagram takes a UDP datagram.
func (a *Analyzer) Datagram(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *dissect.Reporter) {
	s := a.decode(d, false)
	if a.speaks(d) || a.looksLike(d, s) {
		a.take(at, d, s, open)
	}
}

// IP takes a packet of IP protocol 27.
func (a *Analyzer) IP(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *dissect.Reporter) {
	a.take(at, d, a.decode(d, true), open)
}

// EndDatagrams takes leave of all connections.
func (a *Analyzer) EndDatagrams() {
	for e := a.order.Front(); e != nil; e = a.order.Front() {
		a.drop(e)
	}
}

// take hands a segment to the connection that it belongs to.
func (a *Analyzer) take(at capture.At, d *capture.Datagram, s *Segment, open func(client, server netip.AddrPort) *dissect.Reporter) {
	if !a.made {
		a.seed, a.made = maphash.MakeSeed(), true
	}
	a.open = open
	f := a.find(d, s)
	a.open = nil
	if f != nil {
		a.order.MoveToBack(f.listed())
		f.segment(at, d, s)
	}
}

// find returns what follows the connection of a segment. A segment whose form is wrong belongs to
// the connection that its ports name, if there is one, or else to the one that its endpoints had
// their last segment for.
func (a *Analyzer) find(d *capture.Datagram, s *Segment) follower {
	p := newPair(d)
	c := a.conns[newConnID(d, &s.Header)]
	if s.Fault != nil || s.cut {
		if c != nil && s.ported() {
			return c
		}
		if f := a.pairs[p]; f != nil {
			return f
		}
		if o := a.newOdd(d, p); o != nil {
			return a.remember(p, o)
		}
		return nil
	}
	if c != nil {
		if c = c.takes(d, &s.Header); c != nil {
			return a.remember(p, c)
		}
		c = a.conns[newConnID(d, &s.Header)] // an earlier one
	}
	next := a.newConn(d, &s.Header, c)
	if next == nil {
		return nil
	}
	return a.remember(p, next)
}

// remember remembers what two endpoints had a segment for.
func (a *Analyzer) remember(p pair, f follower) follower {
	if a.pairs == nil {
		a.pairs = map[pair]follower{}
	}
	a.pairs[p] = f
	return f
}

// reporter makes a connection of the analysis. If there are too many, it takes leave of the one
// that was silent for longest.
func (a *Analyzer) reporter(client, server netip.AddrPort) *dissect.Reporter {
	if a.order.Len() >= maxConns {
		a.drop(a.order.Front())
	}
	for {
		r := a.open(client, server)
		if r != nil || a.order.Len() == 0 {
			return r
		}
		a.drop(a.order.Front())
	}
}

// drop takes leave of a connection.
func (a *Analyzer) drop(e *list.Element) {
	a.order.Remove(e)
	e.Value.(follower).end()
}

// forgetPair forgets a follower that two endpoints had their last segment for.
func (a *Analyzer) forgetPair(p pair, f follower) {
	if a.pairs[p] == f {
		delete(a.pairs, p)
	}
}

// serve remembers that a UDP endpoint speaks RDP.
func (a *Analyzer) serve(p netip.AddrPort) {
	if p.Port() == 0 || len(a.servers) >= maxServers {
		return
	}
	if a.servers == nil {
		a.servers = map[netip.AddrPort]struct{}{}
	}
	a.servers[p] = struct{}{}
}

// serves reports whether all of an endpoint is known to be RDP.
func (a *Analyzer) serves(p netip.AddrPort) bool {
	_, known := a.servers[p]
	return known || slices.Contains(a.Ports, p.Port())
}

// speaks reports whether one of a datagram's endpoints is known to speak RDP. The port of a client
// may be another protocol's a moment later.
func (a *Analyzer) speaks(d *capture.Datagram) bool {
	return a.All || a.serves(d.Src) || a.serves(d.Dst)
}

// looksLike reports whether a datagram of endpoints that are not known is one of RDP.
func (a *Analyzer) looksLike(d *capture.Datagram, s *Segment) bool {
	if s.cut || s.Missing > 0 {
		return false
	}
	if d.Src.Port() == wire.UDPPort || d.Dst.Port() == wire.UDPPort {
		// The lengths agree. A wrong checksum is something to report.
		return s.Fault == nil || s.ported()
	}
	h := &s.Header
	return s.Fault == nil && h.Flags&^wire.ACK == wire.SYN && len(s.Raw) == wire.SYNLen &&
		h.MaxOutstanding > 0 && h.MaxSegment >= wire.MinSegment
}

func newPair(d *capture.Datagram) pair {
	p := pair{d.Src, d.Dst}
	if p[1].Compare(p[0]) < 0 {
		p[0], p[1] = p[1], p[0]
	}
	return p
}

func newConnID(d *capture.Datagram, h *wire.Header) connID {
	id := connID{h.Version, [2]end{{d.Src, h.Source}, {d.Dst, h.Dest}}}
	if e := &id.ends; e[1].compare(e[0]) < 0 {
		e[0], e[1] = e[1], e[0]
	}
	return id
}

func (e end) compare(o end) int {
	if n := e.addr.Compare(o.addr); n != 0 {
		return n
	}
	return int(e.port) - int(o.port)
}
