package machine

import "urnic/ulp/rds/wire"

// A Conn is the connection of a node with a peer, over one carrier and with one type of
// service.
type Conn struct {
	m       *Machine
	key     Key
	carrier *Carrier
	paths   []*Path

	agreed     int      // paths that both sides support; 0: not known yet
	used       int      // of them, those that messages are spread over
	acquainted bool     // the peer knows this life of the node: what it acknowledges is of this life
	generation uint32   // the peer's; 0: not known
	former     []uint32 // generations of the peer's earlier lives, the latest last
	waiting    fifo[*message]
	pongs      int // in the queues of paths

	remote    wire.CongestionMap // the peer's congested ports
	congested waiters            // sockets that have found a port congested
	doubt     doubt              // whether they still are
	held      int                // bytes of the connection's messages that are not read
	peer      *peer
	met       bool // a segment has come from the peer
	numbered  bool // messages of sockets have numbers, which the peer may have received

	inOrder  bool     // the peer sends nothing more on path 0 that it chose before it knew of others
	contents contents // of messages of the peer, if it is anonymous
	ports    recent   // of the peer, if it is anonymous

	firstPorts   recent // the same, on path 0, if this node makes the links
	trials       int    // of links, that have failed in a row
	proved       bool   // a link has passed its trial
	renumberings int    // how often they have failed maxTrials times
}

// Key returns what names the connection.
func (c *Conn) Key() Key { return c.key }

// Paths returns the paths that there are, at least one.
func (c *Conn) Paths() []*Path { return c.paths }

// Generation returns the peer's generation number; 0 if it is not known.
func (c *Conn) Generation() uint32 { return c.generation }

// lower reports whether this node has the lower address, which dials if the order of
// addresses decides.
func (c *Conn) lower() bool { return c.m.cfg.Addr.Less(c.key.Peer) }

// Acknowledges reports whether the peer acknowledges in headers. Else the owner must call
// Path.Acked.
func (c *Conn) Acknowledges() bool { return c.acks() }

// acks reports whether messages are acknowledged in headers. A peer that sends its
// generation does so over any carrier: that a lower layer has accepted data does not say
// that the node has (RDS 3.1, "Sequence numbers and acknowledgements").
func (c *Conn) acks() bool { return c.carrier.Acks || c.generation != 0 }

// path returns the path with an index, and creates those up to it.
func (c *Conn) path(i int) *Path {
	for len(c.paths) <= i {
		c.paths = append(c.paths, newPath(c, len(c.paths)))
	}
	return c.paths[i]
}

// pathOf returns the path of a port's messages. The peer need not know how it is chosen
// (RDS 3.1, "Multipath RDS").
func (c *Conn) pathOf(port uint16) *Path {
	h := uint32(port) * 0x9e3779b1
	return c.path(int(uint64(h) * uint64(c.used) >> 32))
}

// mapChanged makes each path that is up send the map of congested ports: on only one of
// them, it could be overtaken by an older map, which the peer would take for the newer.
func (c *Conn) mapChanged() {
	for _, p := range c.paths {
		if p.state == Up {
			p.mapDue = true
			p.transmit()
		}
	}
}

// took notes the peer's map of congested ports.
func (c *Conn) took(data []byte) {
	c.m.counters.MapsTaken++
	c.doubt.news()
	if !c.remote.Take(data) {
		return
	}
	c.free()
}

// free notifies the sockets that wait for congested ports that some may be
// free.
func (c *Conn) free() {
	c.m.report(Event{Kind: Uncongested, Peer: c.key.Peer, TOS: c.key.TOS})
	c.congested.wake(c.m)
}

// busy reports whether there is anything to send.
func (c *Conn) busy() bool {
	if c.waiting.len() > 0 {
		return true
	}
	for _, p := range c.paths {
		if p.busy() {
			return true
		}
	}
	return false
}
