package rxflow

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"slices"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// What an analysis remembers.
const (
	maxConns     = 1 << 13 // connections that have not ended
	maxEndpoints = 1 << 15
	maxSealed    = 1 << 24 // bytes of packets that wait for what opens them
	maxHashes    = 1 << 20 // packets of calls whose content is remembered
)

// The ports of AFS: its servers, its clients, and the reference peer of Rx.
const (
	firstPort  = 7000
	lastPort   = 7009
	backupPort = 7021
	peerPort   = 7077
)

// An Analyzer finds Rx in a capture, over UDP and over iWARP: dissect.DatagramULP.
type Analyzer struct {
	// All takes each UDP datagram for Rx that has a header.
	All bool
	// Ports are ports of which all datagrams are Rx.
	Ports []uint16
	// Calls leaves packets out of the events: what is left are calls, and what is wrong.
	Calls bool
	// Security opens what security classes protect.
	Security []Security

	seed      maphash.Seed
	made      bool // seed is
	endpoints map[netip.AddrPort]*endpoint
	conns     map[connID]*conn
	byID      map[uint64]*conn // connections of any address
	queries   map[[2]netip.AddrPort]*query
	order     list.List // of *conn and *queries, the longest silent first
	sealed    int       // bytes
	hashes    int
}

// An endpoint is a UDP socket that speaks Rx.
type endpoint struct {
	serves bool   // it is a server's: what comes there is Rx
	limits bool   // it has sent an acknowledgement
	mtu    uint32 // the largest packet that it has announced; 0 if it has not
	jumbo  uint32 // the most packets in a jumbogram that it has announced
}

// A connID is what names a connection (draft §3).
type connID struct {
	epoch, id      uint32
	client, server netip.AddrPort // client is left out if the epoch's high bit is set
}

// A follower follows something that the analysis lists as a connection.
type follower interface {
	// end takes leave of it.
	end()
}

// Datagram takes a UDP datagram.
func (a *Analyzer) Datagram(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *dissect.Reporter) {
	if !a.made {
		a.seed, a.made = maphash.MakeSeed(), true
	}
	h, err := wire.ParseHeader(d.Data)
	body := []byte(nil)
	if err == nil {
		body = d.Data[wire.HeaderLen:]
	}
	if !a.speaks(d) && !a.given(d) && (err != nil || !a.looksLike(d, &h, body)) {
		return
	}
	if err != nil || h.Type == wire.TypeDebug || h.Type == wire.TypeVersion {
		if q := a.query(d, &h, open); q != nil {
			q.datagram(at, d, &h, body, err)
		}
		return
	}
	if c := a.conn(d, &h, open); c != nil {
		c.datagram(at, d, &h, body)
	}
}

// EndDatagrams takes leave of all connections.
func (a *Analyzer) EndDatagrams() {
	for e := a.order.Front(); e != nil; e = a.order.Front() {
		a.drop(e)
	}
}

// speaks reports whether one of a datagram's endpoints is known to be a server of Rx. The port
// of a client may be another protocol's a moment later.
func (a *Analyzer) speaks(d *capture.Datagram) bool {
	src, dst := a.endpoints[d.Src], a.endpoints[d.Dst]
	return src != nil && src.serves || dst != nil && dst.serves
}

// port reports whether a datagram has a port of Rx.
func (a *Analyzer) port(d *capture.Datagram) bool {
	for _, p := range []uint16{d.Src.Port(), d.Dst.Port()} {
		if firstPort <= p && p <= lastPort || p == backupPort || p == peerPort {
			return true
		}
	}
	return false
}

// given reports whether a datagram has a port that is known to be one of Rx.
func (a *Analyzer) given(d *capture.Datagram) bool {
	return slices.Contains(a.Ports, d.Src.Port()) || slices.Contains(a.Ports, d.Dst.Port())
}

// endpoint returns what is known of an endpoint that speaks Rx.
func (a *Analyzer) endpoint(p netip.AddrPort) *endpoint {
	e := a.endpoints[p]
	if e == nil {
		e = &endpoint{}
		if len(a.endpoints) >= maxEndpoints {
			return e
		}
		if a.endpoints == nil {
			a.endpoints = map[netip.AddrPort]*endpoint{}
		}
		a.endpoints[p] = e
	}
	return e
}

// conn returns the connection of a packet.
func (a *Analyzer) conn(d *capture.Datagram, h *wire.Header, open func(client, server netip.AddrPort) *dissect.Reporter) *conn {
	client, server := d.Src, d.Dst
	if !h.FromClient() {
		client, server = server, client
	}
	id := connID{epoch: h.Epoch, id: h.ConnID(), client: client, server: server}
	if h.AnyAddress() {
		id.client = netip.AddrPort{}
	}
	any64 := uint64(h.Epoch)<<32 | uint64(h.ConnID())
	c := a.conns[id]
	if c == nil && h.AnyAddress() && !h.FromClient() {
		c = a.byID[any64] // a server may answer from another address
	}
	if c != nil {
		a.order.MoveToBack(c.place)
		return c
	}
	r := a.open(client, server, open)
	if r == nil {
		return nil
	}
	c = newConn(a, r, id, h)
	c.ends = [2]*endpoint{a.endpoint(client), a.endpoint(server)}
	c.ends[dissect.Server].serves = true
	c.place = a.order.PushBack(c)
	if a.conns == nil {
		a.conns, a.byID = map[connID]*conn{}, map[uint64]*conn{}
	}
	a.conns[id] = c
	if h.AnyAddress() {
		a.byID[any64] = c
	}
	return c
}

// query returns what follows the debug and version packets of two endpoints.
func (a *Analyzer) query(d *capture.Datagram, h *wire.Header, open func(client, server netip.AddrPort) *dissect.Reporter) *query {
	key := [2]netip.AddrPort{d.Src, d.Dst}
	if key[1].Compare(key[0]) < 0 {
		key[0], key[1] = key[1], key[0]
	}
	if q := a.queries[key]; q != nil {
		a.order.MoveToBack(q.place)
		return q
	}
	client, server := d.Src, d.Dst
	if !h.FromClient() && len(d.Data) >= wire.HeaderLen {
		client, server = server, client
	}
	r := a.open(client, server, open)
	if r == nil {
		return nil
	}
	q := &query{line: line{a: a, r: r, sum: &Summary{Kind: "queries"}}, key: key, client: client}
	r.Connection().Upper = q.sum
	a.endpoint(server).serves = true
	q.place = a.order.PushBack(q)
	if a.queries == nil {
		a.queries = map[[2]netip.AddrPort]*query{}
	}
	a.queries[key] = q
	return q
}

// open makes a connection of the analysis. If there are too many, it takes leave of the one
// that was silent for longest.
func (a *Analyzer) open(client, server netip.AddrPort, open func(client, server netip.AddrPort) *dissect.Reporter) *dissect.Reporter {
	if a.order.Len() >= maxConns {
		a.drop(a.order.Front())
	}
	for {
		r := open(client, server)
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
