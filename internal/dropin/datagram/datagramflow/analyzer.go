package datagramflow

import (
	"container/list"
	"encoding/binary"
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/dropin/datagram"
	"urnic/internal/program/dissect"
)

// What an analysis remembers.
const (
	maxPairs = 1 << 13 // connections of the analysis
	maxKeys  = 1 << 15 // Q_Keys of queue pairs
)

const magic = 'u'<<24 | 'R'<<16 | 'D'<<8 | 'G'

// An Analyzer finds datagrams of UD and UC queue pairs in a capture: dissect.DatagramULP. The zero Analyzer is
// ready.
type Analyzer struct {
	pairs map[ends]*pair
	order list.List // of pairs, the longest silent first
	keys  map[queuePair]uint32
}

// Ends are the endpoints of two processes, or of one and a group, in an order of their own.
type ends [2]netip.AddrPort

// A queuePair is where rdma_cm has said that one is.
type queuePair struct {
	addr netip.Addr
	qpn  uint32
}

// New returns what follows a connection of iWARP: none carries datagrams.
func (a *Analyzer) New(*dissect.Reporter) dissect.Upper { return none{} }

// none follows no connection.
type none struct{ dissect.Upper }

func (none) Frame(dissect.Side, capture.At, []byte) {}
func (none) Follows() bool                          { return false }

// Datagram takes a UDP datagram.
func (a *Analyzer) Datagram(at capture.At, d *capture.Datagram, open func(client, server netip.AddrPort) *dissect.Reporter) {
	service := datagram.IsService(d.Data)
	if !service && (len(d.Data) < 4 || binary.BigEndian.Uint32(d.Data) != magic) {
		return
	}
	p := a.find(d, service, open)
	if p == nil {
		return
	}
	a.order.MoveToBack(p.place)
	if service {
		p.service(at, d)
		return
	}
	p.datagram(at, d)
}

// EndDatagrams takes leave of all connections.
func (a *Analyzer) EndDatagrams() {
	for e := a.order.Front(); e != nil; e = a.order.Front() {
		a.drop(e)
	}
	a.keys = nil
}

func (a *Analyzer) find(d *capture.Datagram, service bool, open func(client, server netip.AddrPort) *dissect.Reporter) *pair {
	id := ends{d.Src, d.Dst}
	if id[1].Compare(id[0]) < 0 {
		id[0], id[1] = id[1], id[0]
	}
	if p := a.pairs[id]; p != nil {
		return p
	}
	for len(a.pairs) >= maxPairs {
		a.drop(a.order.Front())
	}
	client, server := d.Src, d.Dst
	if service && len(d.Data) > 5 && datagram.ServiceKind(d.Data[5]) == datagram.ServiceReply { // the request was not captured
		client, server = server, client
	}
	r := open(client, server)
	for r == nil && a.order.Len() > 0 {
		a.drop(a.order.Front())
		r = open(client, server)
	}
	if r == nil {
		return nil
	}
	p := &pair{a: a, id: id, r: r, client: client, sum: &Summary{Service: service}}
	r.Connection().Upper = p.sum
	p.place = a.order.PushBack(p)
	if a.pairs == nil {
		a.pairs = make(map[ends]*pair)
	}
	a.pairs[id] = p
	return p
}

// drop takes leave of a connection.
func (a *Analyzer) drop(e *list.Element) {
	p, _ := a.order.Remove(e).(*pair)
	delete(a.pairs, p.id)
	p.r.End()
}

// learn notes the Q_Key of a queue pair.
func (a *Analyzer) learn(q queuePair, key uint32) {
	if len(a.keys) >= maxKeys {
		return
	}
	if a.keys == nil {
		a.keys = make(map[queuePair]uint32)
	}
	a.keys[q] = key
}
