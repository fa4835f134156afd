package rdsflow

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// What an analysis remembers of nodes.
const (
	maxPairs       = 1 << 14
	maxSent        = 256 // messages of each node
	maxSentTotal   = 1 << 18
	maxPings       = 1024 // of each node
	maxPingsTotal  = 1 << 16
	maxDests       = 1024 // keys of each node
	maxDestsTotal  = 1 << 16
	maxGenerations = 8
)

// A pairKey names two nodes and the type of service between them.
type pairKey struct {
	nodes     [2]netip.Addr // the lower one first
	transport dissect.Transport
	tos       uint8
}

// A pair is what is known of two nodes that have connections.
type pair struct {
	nodes [2]node // as in the key
	open  int     // connections that have not ended
	multi bool    // there was more than one at a time
}

// A node is what is known of one of two nodes.
type node struct {
	begun bool // a message with a number was seen
	// known reports that all that the node has sent was captured: the first number was 1.
	known bool
	urnic bool // it says so, and acknowledges in headers over TCP as well

	generations []uint32 // the last ones, the present one at the end
	told        int      // the number of the last connection that tells one
	sent        []sent   // the last messages, as a ring
	next        int      // in the ring
	pings       map[uint16]ping
	dests       map[uint32]dest
}

// A sent is a message that was seen.
type sent struct {
	sequence, hash uint64
	life           *life
}

// A life is what is remembered of a connection when it has ended.
type life struct {
	number int // in the order in which connections were opened
	ended  bool
}

// A ping is one that waits for its pong, or several from the same port.
type ping struct {
	n  int
	at time.Time // of the last one
}

// A dest is what a message has said of a key.
type dest struct {
	offset   uint32
	sequence uint64
}

// pair returns what is known of two nodes. Those that have one address, and those of which
// there are too many, are strangers each time.
func (a *Analyzer) pair(x, y netip.Addr, t dissect.Transport, tos uint8) *pair {
	x, y = x.Unmap(), y.Unmap()
	if y.Less(x) {
		x, y = y, x
	}
	if x == y {
		return &pair{}
	}
	k := pairKey{[2]netip.Addr{x, y}, t, tos}
	p := a.pairs[k]
	if p == nil {
		p = &pair{}
		if len(a.pairs) >= maxPairs {
			return p
		}
		if a.pairs == nil {
			a.pairs = map[pairKey]*pair{}
		}
		a.pairs[k] = p
	}
	return p
}

// attach tells the pair of a connection.
func (p *pair) attach() {
	p.open++
	p.multi = p.multi || p.open > 1
}

// remember adds a message to those that were seen.
func (n *node) remember(a *Analyzer, s sent) {
	switch {
	case len(n.sent) < maxSent && a.sent < maxSentTotal:
		a.sent++
		n.sent = append(n.sent, s)
	case len(n.sent) > 0:
		n.sent[n.next%len(n.sent)] = s
		n.next++
	}
}

// before reports whether a message was seen on a connection before c. What a node records
// itself of an older connection may come after that.
func (n *node) before(c *conn, sequence, hash uint64) bool {
	return slices.ContainsFunc(n.sent, func(s sent) bool {
		return s.sequence == sequence && s.hash == hash && s.life.number < c.life.number && (s.life.ended || c.transport != dissect.TCP)
	})
}

// pinged remembers a ping.
func (n *node) pinged(a *Analyzer, port uint16, at time.Time) {
	p, ok := n.pings[port]
	if !ok && (len(n.pings) >= maxPings || a.pings >= maxPingsTotal) {
		n.known = false
		return
	}
	if n.pings == nil {
		n.pings = map[uint16]ping{}
	}
	if !ok {
		a.pings++
	}
	n.pings[port] = ping{p.n + 1, at}
}

// ponged takes a ping off that was answered. It reports false if there is none.
func (n *node) ponged(a *Analyzer, port uint16) (ping, bool) {
	p, ok := n.pings[port]
	if !ok {
		return p, false
	}
	if p.n--; p.n > 0 {
		n.pings[port] = p
	} else {
		delete(n.pings, port)
		a.pings--
	}
	return p, true
}

// offered remembers a key that the other node may use.
func (n *node) offered(a *Analyzer, key wire.Cookie, sequence uint64) {
	if _, ok := n.dests[key.RKey()]; !ok {
		if len(n.dests) >= maxDests || a.dests >= maxDestsTotal {
			return
		}
		a.dests++
	}
	if n.dests == nil {
		n.dests = map[uint32]dest{}
	}
	n.dests[key.RKey()] = dest{key.Offset(), sequence}
}

// introduced takes the generation that a node reports of itself. It reports whether the node is
// known to have none of what it had before, and whether it goes back to an old one.
func (n *node) introduced(g uint32) (restarted, old bool) {
	last := len(n.generations) - 1
	switch {
	case last >= 0 && n.generations[last] == g:
		return false, false
	case slices.Contains(n.generations, g):
		return false, true
	}
	n.generations = append(n.generations, g)
	if len(n.generations) > maxGenerations {
		n.generations = slices.Delete(n.generations, 0, 1)
	}
	return last >= 0, false
}

// forget lets go of what a node has sent in an earlier life.
func (n *node) forget(a *Analyzer) {
	a.sent -= len(n.sent)
	a.dests -= len(n.dests)
	n.sent, n.next, n.dests = nil, 0, nil
}

// use says what memory of the node was offered for.
func (n *node) use(key uint32) string {
	d, ok := n.dests[key]
	if !ok {
		return ""
	}
	return fmt.Sprintf("RDMA_DEST of message %d", d.sequence)
}
