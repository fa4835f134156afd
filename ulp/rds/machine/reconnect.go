package machine

import (
	"errors"
	"time"

	"urnic/ulp/rds/wire"
)

// dial begins to set up a link.
func (p *Path) dial() {
	m := p.conn.m
	p.link++
	p.state = Connecting
	p.knock = p.conn.carrier.OrderedDial && !p.conn.lower()
	m.set(p, never)
	m.emit(Effect{Kind: Dial, Path: p, Link: p.link})
}

// mayDial reports whether this node is the one that makes links for the path. With
// OrderedDial the node with the higher address only knocks: the other one resets what it
// gets, and dials itself.
func (p *Path) mayDial() bool {
	c := p.conn
	if p.index > 0 {
		if !c.lower() || p.index >= c.agreed {
			return false
		}
		// The peer must know this node to know which path a connection is for.
		first := c.paths[0]
		return first.state == Up && first.known
	}
	return !c.carrier.OrderedDial || c.lower() || c.busy()
}

// want begins a link if there is none.
func (p *Path) want() {
	if p.state == Down && p.timer == never && p.mayDial() {
		p.dial()
	}
}

// crossing is how long a request of the peer may take that has crossed one of this node's.
const crossing = 100 * time.Millisecond

// retry begins a new link after one was lost or could not be set up: at once, and
// then after random delays with a bound that doubles.
func (p *Path) retry(why error) {
	m := p.conn.m
	p.why = reconnect
	if p.heard {
		p.tries, p.bound = 0, 0
	}
	p.heard = false
	if m.cfg.Attempts > 0 && p.tries >= m.cfg.Attempts {
		p.giveUp(why)
		return
	}
	rejected := errors.Is(why, ErrRejected)
	if rejected && !p.conn.lower() {
		// The peer's own request is outstanding. One that meets it again would end
		// the connection that comes of it.
		p.bound = max(p.bound, m.cfg.ReconnectMin)
		m.set(p, m.now+crossing/2+Time(m.rng.Int64N(int64(crossing))))
		return
	}
	if p.bound == 0 {
		p.bound = m.cfg.ReconnectMin
		if !rejected {
			m.set(p, m.now)
			return
		}
	}
	m.set(p, m.now+Time(m.rng.Int64N(int64(p.bound)+1)))
	p.bound = min(2*p.bound, m.cfg.ReconnectMax)
}

// giveUp reports all messages of the path as lost, and if it is the first one, those of the paths that are down
// with it. The next message starts again.
func (p *Path) giveUp(why error) {
	m := p.conn.m
	m.set(p, never)
	p.tries, p.bound = 0, 0
	drop := func(q *fifo[*message]) {
		for q.len() > 0 {
			msg := q.pop()
			m.lost(msg, &Unreachable{Peer: p.conn.key.Peer, Err: why})
			m.finish(msg)
		}
	}
	drop(&p.queue)
	if p.index > 0 {
		return
	}
	drop(&p.conn.waiting)
	p.conn.remote = wire.CongestionMap{} // whoever waits for a congested port may try again
	p.conn.free()
	for _, q := range p.conn.paths { // they are made after the first one
		if q.state == Down {
			drop(&q.queue)
		}
	}
}

// due does what the timer was for.
func (p *Path) due() {
	switch {
	case p.why == giveUpHandshake && p.state == Up:
		p.unanswered()
	case p.why == nudge && p.state == Up:
		p.nudge()
	case p.why == reconnect && p.state == Down:
		if p.mayDial() && !p.conn.abandoned() {
			p.dial()
		}
	}
}

// idleTries is how many tries in a row are made to reach a peer for which there is nothing to send.
const idleTries = 8

// abandoned reports whether it is not worth trying to reach the peer: there is nothing to send to it, and some tries
// have failed. The next message begins anew.
func (c *Conn) abandoned() bool { return !c.busy() && c.paths[0].tries >= idleTries }

// unanswered does what is due if the peer has not answered the probe of a link in time. Each peer sends
// its map of congested ports first on a link, and answers the probe. While it has sent nothing, it may be that
// nobody has accepted the connection: the peer's TCP acknowledges for a listener that never does.
func (p *Path) unanswered() {
	m := p.conn.m
	waited := m.now - p.since
	switch {
	case !p.heard && waited >= m.cfg.Handshake+m.cfg.Silence:
		p.hangUp(errSilent)
		return
	case p.told && p.greeted && !p.paused:
		// The pong was dropped in a flood of pings.
		p.probeDue, p.greeted = true, false // not again before the peer has said something
		p.transmit()
	case !p.told && !p.paused && (p.greeted || p.heard && p.conn.generation == 0 && waited >= m.cfg.Handshake+m.cfg.Silence):
		// A peer that tells its generation does so before anything but its map. It may be slow.
		p.answered(0)
		p.shake(nil)
		return
	}
	m.set(p, m.now+m.cfg.Handshake)
}

// A Request describes a peer that connects.
type Request struct {
	Key  Key
	Port int // of the peer, from which it has connected, if that says which path it is for; else -1
}

// Request decides about a peer that connects. If it is accepted, Request returns the path and the link of
// the connection: call Path.Up, or Path.Down if the connection is not completed. Else reject the connection;
// the error says why. Call Replaces before.
func (m *Machine) Request(now Time, r Request) (*Path, Link, error) {
	m.at(now)
	if err := m.checkPeer(r.Key.Peer); err != nil || r.Key.Peer == m.cfg.Addr {
		return nil, 0, m.refused(r, ErrAddress)
	}
	if of := m.peers[r.Key.Peer]; of != nil && of.conns >= m.cfg.MaxPerPeer && m.conns[r.Key] == nil {
		return nil, 0, m.refused(r, ErrTooMany)
	}
	c, err := m.conn(r.Key)
	if err != nil {
		return nil, 0, m.refused(r, err)
	}
	if c.carrier.OrderedDial && c.lower() {
		// The peer only knocks: this node dials.
		c.paths[0].want()
		return nil, 0, m.refused(r, errKnock)
	}
	p := c.paths[c.which(r.Port)]
	switch {
	case p.state == Up:
		// The peer no longer knows the link.
		p.hangUp(ErrReplaced)
	case p.state == Connecting && !c.carrier.OrderedDial && c.lower():
		return nil, 0, m.refused(r, ErrBusy)
	case p.state == Connecting:
		m.emit(Effect{Kind: Hangup, Path: p, Link: p.link, Err: ErrReplaced})
	}
	p.link++
	p.state, p.knock = Connecting, false
	m.set(p, never)
	return p, p.link, nil
}

// Replaces returns the path whose link a request would replace, though the peer takes for delivered what has
// arrived there and is not read: one that does not acknowledge in headers. Have that read first, and the link end.
// It is nil if there is none.
func (m *Machine) Replaces(r Request) *Path {
	c := m.conns[r.Key]
	if c == nil || c.acks() || c.carrier.OrderedDial && c.lower() {
		return nil
	}
	if p := c.paths[c.which(r.Port)]; p.state != Down && !p.knock {
		return p
	}
	return nil
}

// which returns the index of the path that a request is for. The port from which a peer with several paths
// dials tells: Linux with SPORT_IDX encodes the index modulo the number of paths, urnic modulo 8 as well, as
// it need not know yet how many paths there are.
func (c *Conn) which(port int) int {
	modulo, paths := c.agreed, c.agreed
	switch {
	case c.software == urnic:
		modulo, paths = MaxPaths, c.carrier.Paths
	case paths == 0: // the peer is told already, and this node not yet
		modulo, paths = min(c.told, c.said), min(c.told, c.said)
	}
	if port < 0 || modulo == 0 || port%modulo >= paths {
		return 0
	}
	c.path(port % modulo)
	return port % modulo
}

func (m *Machine) refused(r Request, err error) error {
	m.report(Event{Kind: Refused, Peer: r.Key.Peer, TOS: r.Key.TOS, Err: err})
	return err
}
