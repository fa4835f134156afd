package machine

import "urnic/ulp/rds/wire"

// A Conn is the connection of a node with a peer, over one carrier and with one type of
// service.
type Conn struct {
	m       *Machine
	key     Key
	carrier *Carrier
	paths   []*Path

	agreed     int      // paths that both sides have told each other; 0: not known yet
	said       int      // paths that the peer has told
	told       int      // paths that the peer was told
	used       int      // of them, those that messages are spread over
	acquainted bool     // the peer knows this life of the node: what it acknowledges is of this life
	generation uint32   // the peer's; 0: not known
	software   software // what the peer says that it is
	former     []uint32 // generations of the peer's earlier lives, the latest last
	waiting    fifo[*message]
	gone       int // messages that were lost while they waited
	pongs      int // in the queues of paths

	remote    wire.CongestionMap // the peer's congested ports
	congested waiters            // sockets that have found a port congested
	held      int                // bytes of the connection's messages that are not read
	peer      *peer
	live      int  // messages of sockets that are neither acknowledged nor lost
	since     Time // when the last path went down, or an attempt failed
	met       bool // a segment has come from the peer
	numbered  bool // messages of sockets have numbers, which the peer may have received
	delivered bool // messages of the peer have reached sockets

	inOrder bool // the peer sends nothing more on path 0 that it chose before it knew of others
}

// software is what the handshake tells of a peer's.
type software uint8

const (
	untold       software = iota // it tells no generation, as Linux 6.1; or nothing yet
	generational                 // it tells its generation
	indexed                      // also that it dials from ports that tell the path, as later Linux
	urnic                        // also that it acknowledges in headers over any carrier
)

// Key returns what names the connection.
func (c *Conn) Key() Key { return c.key }

// Paths returns the paths that there are, at least one.
func (c *Conn) Paths() []*Path { return c.paths }

// Agreed returns how many paths there may be, at least 1.
func (c *Conn) Agreed() int { return max(c.agreed, 1) }

// Generation returns the peer's generation number; 0 if it is not known.
func (c *Conn) Generation() uint32 { return c.generation }

// lower reports whether this node has the lower address, which dials if the order of
// addresses decides.
func (c *Conn) lower() bool { return c.m.cfg.Addr.Less(c.key.Peer) }

// Acknowledges reports whether the peer acknowledges in headers. Else the owner must call
// Path.Acked.
func (c *Conn) Acknowledges() bool { return c.acks() }

// acks reports whether messages are acknowledged in headers. urnic does so over any carrier, and says so in the
// handshake: that a lower layer has accepted data does not say that the node has (RDS 3.1, "Sequence numbers and
// acknowledgements"). Linux over TCP knows TCP's acknowledgements only, whatever else it tells.
func (c *Conn) acks() bool { return c.carrier.Acks || c.software == urnic }

// several reports whether there may be several paths to the peer. It tells its generation, so that both sides know
// of a restart, and for which path a connection is. To any other peer, there is one path: a connection that takes the
// place of a lost one could be for another path, of which the peer judges the sequence numbers.
func (c *Conn) several() bool { return c.software >= indexed }

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

// mapChanged makes the first path send the map of congested ports, always the same one: on another path, it could be
// overtaken by an older map, which the peer would take for the newer.
func (c *Conn) mapChanged() {
	if p := c.paths[0]; p.state == Up {
		p.mapDue = true
		p.transmit()
	}
}

// took notes the peer's map of congested ports.
func (c *Conn) took(data []byte) {
	c.m.counters.MapsTaken++
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

// busy reports whether sockets have something to send to the peer, or wait to.
func (c *Conn) busy() bool { return c.live > 0 || len(c.congested.sockets) > 0 }
