package machine

import (
	"errors"
	"time"
)

// dial begins to set up a link.
func (p *Path) dial() {
	m := p.conn.m
	p.link++
	p.state, p.ending = Connecting, false
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

// giveUp reports all messages of the path as lost. The next message starts
// again.
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
	case p.why == giveUpHandshake && p.state == Up && p.knock && !p.heard:
		// The peer's system has accepted the link; the peer itself is slow, and will reset it. TCP has
		// acknowledged by then what was sent here, and the peer has read none of it.
		m := p.conn.m
		if m.now-p.since >= m.cfg.Handshake+m.cfg.Silence {
			p.hangUp(errSilent)
			return
		}
		m.set(p, m.now+m.cfg.Handshake)
	case p.why == giveUpHandshake && p.state == Up:
		p.take()
		c := p.conn
		slow := !c.inOrder && c.agreed > 1 && c.m.now-p.since < c.m.cfg.Handshake+c.m.cfg.Silence
		if !p.greeted || p.told || slow {
			// The link is slow: a peer that tells its generation does so before anything
			// but its map. Or its pong was dropped in a flood of pings. Or its pong, behind which the data of
			// other paths may come, is being sent again by TCP.
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
	case p.why == giveUpTrial && p.state == Up:
		p.fails()
	case p.why == giveUpEnd && p.state == Up:
		p.conn.m.emit(Effect{Kind: Drain, Path: p, Link: p.link})
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

// A Request describes a peer that connects.
type Request struct {
	Key  Key
	Path int // which path it is for, if the carrier knows; else -1
}

// Request decides about a peer that connects. If it is accepted, Request returns the path and the link of
// the connection: call Path.Up, or Path.Down if the connection is not completed. Else reject the connection;
// the error says why. With ErrPresent, there is already a link that has to end first, or to receive
// something: the owner calls Request again after a Reconsider effect for a path of the peer.
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
		// The peer no longer knows the link.
		p.hangUp(ErrReplaced)
	case p.state == Connecting && !c.carrier.OrderedDial && c.lower():
		return nil, 0, m.refused(r, ErrBusy)
	case p.state == Connecting:
		m.emit(Effect{Kind: Hangup, Path: p, Link: p.link, Err: ErrReplaced})
	}
	p.link++
	p.state, p.knock, p.ending = Connecting, false, false
	m.set(p, never)
	return p, p.link, nil
}

// present makes sure that a link ends that a request of the peer may replace. An anonymous peer may mean any
// of its paths. The one that it has lost shows when something is sent to it.
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
		if p := c.path(i); p.state == Down || p.knock {
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
