package machine

import (
	"slices"
	"time"
)

// Linux 6.1 has several paths over TCP, and does not say for which of them a connection is: it assigns each one
// that it accepts to the first of its paths that is down, and names none when it dials. When several connections
// are lost, the next one on a path of this node may be on another one of the peer's than before. Sequence
// numbers are a path's of the peer's, so what was sent before must not be judged by the numbers of this node's
// path:
//
//   - What is received twice is found by the numbers of its source port. Linux sends all
//     messages of a port on the same path, once it knows how many there are.
//   - The node with the lower address, if it is this one, ends all connections when one is
//     lost, and makes them again one after the other. Then the peer's paths are the same as before, which
//     a trial of each shows.
//   - The other one can't know them. It reports as lost what is sent and not acknowledged: sent
//     again, the peer might take it for a duplicate. A new connection waits until what has come on the others is
//     received: one of them is the same path's, and comes first.

// anonymous reports whether the peer has several paths, and does not say for which
// one a connection is.
func (c *Conn) anonymous() bool { return c.agreed > 1 && c.generation == 0 && !c.carrier.Acks }

// regather is how long after the last connection was lost the first one is made again. Linux
// must know that all are lost, or it takes the connection for another path.
const regather = 100 * time.Millisecond

// follow makes a new link wait for those that are up. Some of them may already be lost on the peer's side. The
// peer considers delivered what has arrived on those, as TCP has acknowledged it, and continues behind it on the
// new link.
func (p *Path) follow() {
	c := p.conn
	p.after = nil
	if !c.anonymous() || c.lower() || !c.inOrder {
		return
	}
	for _, q := range c.paths {
		if q != p && q.state == Up {
			p.after = append(p.after, q)
			c.m.emit(Effect{Kind: CatchUp, Path: q, Link: q.link})
		}
	}
}

// CaughtUp says that all is received that had come over a link when CatchUp was last emitted for it.
func (p *Path) CaughtUp(now Time, link Link) {
	p.conn.m.at(now)
	if link == p.link && p.state == Up {
		p.passed()
	}
}

// passed lets the links continue that have waited for this one.
func (p *Path) passed() {
	for _, q := range p.conn.paths {
		if i := slices.Index(q.after, p); i >= 0 {
			if q.after = slices.Delete(q.after, i, i+1); len(q.after) == 0 && q.paused {
				q.paused = false
				q.conn.m.emit(Effect{Kind: Resume, Path: q, Link: q.link})
			}
		}
	}
}

// refusal is how long a peer may take to refuse a link. One that has accepted it mostly sends its map
// of congested ports, but not on each path if several links come up at once.
const refusal = 100 * time.Millisecond

// take notes that the peer has not refused the link: data may be sent, and it is the next path's turn.
func (p *Path) take() {
	c := p.conn
	if p.taken {
		return
	}
	p.taken = true
	if !c.anonymous() {
		return
	}
	p.transmit()
	if i := p.index + 1; c.lower() && i < c.agreed {
		c.path(i).want()
	}
}

// gather ends the other connections to an anonymous peer, as one is lost. What has arrived on
// them is read to the end, as TCP has acknowledged it to the peer. When all have ended, path 0
// is connected again, and each of the others when the peer has accepted the one before it.
func (c *Conn) gather() {
	down := true
	for _, p := range c.paths {
		switch {
		case p.state == Connecting:
			p.ending = true // when it is up: the peer may have accepted it already, and sent something
		case p.state == Up && !p.ending:
			p.end()
		}
		down = down && p.state == Down
	}
	if first := c.paths[0]; down {
		first.why, first.bound = reconnect, c.m.cfg.ReconnectMin
		c.m.set(first, c.m.now+regather)
	}
}

// end ends a link in order. Linux 6.1 does not see the end of a connection that it has not accepted yet,
// and keeps it: after a while, this side does not wait for it any more.
func (p *Path) end() {
	m := p.conn.m
	p.ending = true
	m.emit(Effect{Kind: Finish, Path: p, Link: p.link})
	p.why = giveUpEnd
	m.set(p, m.now+m.cfg.Handshake)
}

// mayDialAnonymous reports whether it is a path's turn.
func (p *Path) mayDialAnonymous() bool {
	c := p.conn
	if p.index == 0 {
		return !slices.ContainsFunc(c.paths, func(q *Path) bool { return q.state != Down })
	}
	before := c.paths[p.index-1]
	return c.lower() && p.index < c.agreed && c.inOrder && before.state == Up && before.taken && !before.ending
}

// recent are the last sequence numbers of a peer's ports, of those at least that have sent something
// lately: what comes twice was sent shortly before a connection was lost.
type recent struct{ young, old map[uint16]uint64 }

// recentPorts is how many ports recent remembers for certain.
const recentPorts = 4096

// last returns the last number of a port; 0 if it is not known.
func (r *recent) last(port uint16) uint64 {
	if n, ok := r.young[port]; ok {
		return n
	}
	return r.old[port]
}

// note remembers a number.
func (r *recent) note(port uint16, n uint64) {
	if _, ok := r.young[port]; !ok && len(r.young) >= recentPorts {
		r.old, r.young = r.young, nil
	}
	if r.young == nil {
		r.young = map[uint16]uint64{}
	}
	r.young[port] = n
}
