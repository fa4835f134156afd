package machine

import (
	"errors"
	"time"
)

// dial begins to make a link.
func (p *Path) dial() {
	m := p.conn.m
	p.link++
	p.state = Connecting
	if p.knock = p.conn.carrier.OrderedDial && !p.conn.lower(); p.knock {
		p.conn.probe()
	}
	m.set(p, never)
	m.emit(Effect{Kind: Dial, Path: p, Link: p.link})
}

// probe sends the probe on the links that there are, as path 0 has none, to an anonymous peer: it may
// have restarted. Then it does not know that there are several paths, and makes no other link.
func (c *Conn) probe() {
	for _, q := range c.paths {
		if q.state == Up && c.anonymous() {
			q.probeDue = true
			q.transmit()
		}
	}
}

// mayDial reports whether this node is the one that makes links for the path. With
// OrderedDial the node with the higher address only knocks: the other one resets what it
// gets, and dials itself.
func (p *Path) mayDial() bool {
	c := p.conn
	if c.anonymous() && c.lower() {
		return p.mayDialAnonymous()
	}
	if p.index > 0 {
		if !c.lower() || p.index >= c.agreed {
			return false
		}
		// The peer must know this node to know which path a connection is for. Linux takes
		// the first that is down itself: those before it must be up.
		first := c.paths[0]
		return c.generation == 0 && c.paths[p.index-1].state == Up || c.generation != 0 && first.state == Up && first.known
	}
	return !c.carrier.OrderedDial || c.lower() || c.busy()
}

// want sees to a link if there is none.
func (p *Path) want() {
	if p.state == Down && p.timer == never && p.mayDial() {
		p.dial()
	}
}

// crossing is how long a request of the peer may take that has crossed one of this node's.
const crossing = 100 * time.Millisecond

// retry sees to a new link after one was lost or could not be made: at once, and then
// after random delays with a bound that doubles.
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
		// The peer's own request is under way. One that meets it again would end the
		// connection that comes of it.
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

// giveUp reports all messages of the path as lost. The next message begins anew.
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
	if p.index == 0 {
		drop(&p.conn.waiting)
	}
}

// due does what the timer was for.
func (p *Path) due() {
	switch {
	case p.why == giveUpHandshake && p.state == Up:
		p.take()
		if !p.greeted || p.told {
			// The link is slow: a peer that tells its generation does so before anything
			// but its map. Or its pong was dropped in a flood of pings.
			p.conn.m.set(p, p.conn.m.now+p.conn.m.cfg.Handshake)
			if p.told && p.greeted && !p.paused {
				p.probeDue, p.greeted = true, false // not again before the peer has said something
				p.transmit()
			}
			return
		}
		p.answered(0)
		p.shake(nil)
		if m := p.conn.m; !p.conn.met && p.state == Up {
			p.why = giveUpSilent
			m.set(p, m.now+m.cfg.Silence)
		}
	case p.why == nudge && p.state == Up:
		p.nudge()
	case p.why == waitForRefusal && p.state == Up:
		p.take()
	case p.why == giveUpSilent && p.state == Up:
		if !p.conn.met {
			p.hangUp(errSilent)
		}
	case p.why == reconnect && p.state == Down:
		if p.mayDial() {
			p.dial()
		}
	}
}

// A Request is what a peer that connects says of itself.
type Request struct {
	Key  Key
	Path int // which path it is for, if the carrier can tell; else -1
}

// Request decides about a peer that connects. If it may, the result is the path and the
// link that the connection is: call Path.Up, or Path.Down if it is not completed. Else
// the connection is to be rejected; the error says why. With ErrPresent, there is a link already that has to
// end first, or to tell something: the owner asks again after a Reconsider effect for a path of the peer's.
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
	p := c.paths[c.which(r.Path)]
	switch {
	case p.state != Down && !p.knock && c.carrier.OrderedDial && !c.acks():
		// What has come on the link and was not read would be lost: TCP has acknowledged it.
		c.present(p)
		return p, 0, ErrPresent
	case p.state == Up:
		// The peer knows nothing of the link any more.
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

// present sees to the end of a link that may be the one that a request of the peer replaces. An anonymous peer
// may mean any of its paths. The one that it has lost shows when something is sent to it.
func (c *Conn) present(p *Path) {
	switch {
	case c.agreed == 0 || p.state != Up: // it may be for another path
	case c.anonymous():
		for _, q := range c.paths {
			if q.state == Up {
				q.mapDue = true
				q.transmit()
			}
		}
	case !p.ending:
		p.ending = true
		c.m.emit(Effect{Kind: Drain, Path: p, Link: p.link})
	}
}

// which returns the index of the path that a request is for. Linux does not tell, and
// takes the first that is down itself. A link that only knocks has had its effect with the request.
func (c *Conn) which(index int) int {
	n := max(c.agreed, 1)
	if index >= 0 && index < n && c.generation != 0 {
		c.path(index)
		return index
	}
	for i := range n {
		if p := c.path(i); p.state == Down || p.state == Connecting && p.knock {
			return i
		}
	}
	for i := range n {
		if c.paths[i].state == Connecting {
			return i
		}
	}
	return 0
}

func (m *Machine) refused(r Request, err error) error {
	m.report(Event{Kind: Refused, Peer: r.Key.Peer, TOS: r.Key.TOS, Err: err})
	return err
}
