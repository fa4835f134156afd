package machine

import (
	"slices"

	"urnic/ulp/rds/wire"
)

// A trial shows whether a new link is of the same path of an anonymous peer as the path's links before. The peer may have
// missed that a connection has ended; then it takes the next one for another path, and would drop what is sent
// again there, or deliver it twice.
//
// Linux drops a message that claims to be sent again and has a lower number than the path has received. So each path has a range of
// numbers of its own, higher than those of the paths before it. What is sent again goes first, and a ping behind it that claims to
// be sent again: on a path with a higher range, it gets no pong. It can't be on one with a lower range, as links are tried one after
// the other, each when the one before has passed. Only then TCP's acknowledgements count.
type trial struct {
	passed bool
	failed bool // the peer has not answered
	ping   message

	undecided []arrival // in the order in which they came

	// What has come on a link that passes for path 0, by the port that sent it: the highest numbers. If the link does not
	// pass the trial, they may be of the port's own path.
	doubtful map[uint16]uint64
}

// An arrival is a message that has come.
type arrival struct {
	h    wire.Header
	data []byte
}

// tried reports whether links need a trial: if this node makes them, to an anonymous peer.
func (c *Conn) tried() bool { return c.anonymous() && c.lower() }

// pathNumbers is how many numbers a path has, and ranges how many such ranges a connection uses at a time.
const (
	pathNumbers = 1 << 40
	ranges      = MaxPaths
)

// renumber gives a path the numbers of its range.
func (p *Path) renumber() {
	p.next = uint64(p.conn.renumberings*ranges+p.index)*pathNumbers + 1
	p.acked = p.next - 1
}

// maxTrials is after how many failures in a row what was sent is dropped, and the ranges change: then the peer's
// paths can be in any order.
const maxTrials = 4

// beginTrial selects the next message that a link in its trial sends.
func (p *Path) beginTrial() bool {
	t, c, m := &p.trial, p.conn, p.conn.m
	if t.passed || p.index > 0 && !c.paths[p.index-1].trial.passed {
		return false
	}
	for p.queue.len() > 0 && p.queue.first().h.Sequence != 0 {
		msg := p.queue.pop()
		if msg.gone {
			m.finish(msg)
			continue
		}
		m.counters.Retransmitted++
		p.current = msg
		return true
	}
	if t.ping.h.Sequence != 0 {
		return false
	}
	port, err := m.freePort()
	if err != nil {
		port = wire.ProbePort
	}
	t.ping.h = wire.Header{Sequence: p.next, SourcePort: port, DestPort: wire.PingPort, Flags: wire.Retransmitted | wire.AckRequired}
	p.next++
	c.numbered = true
	p.current = &t.ping
	p.why = giveUpTrial
	m.set(p, m.now+m.cfg.Handshake<<c.trials)
	return true
}

// pong processes the answer to the ping, and so to what was sent before. It reports whether h is
// that answer.
func (p *Path) pong(h *wire.Header) bool {
	c, t := p.conn, &p.trial
	if t.passed || t.ping.h.Sequence == 0 || h.DestPort != t.ping.h.SourcePort {
		return false
	}
	if !p.ending {
		t.passed, t.doubtful, c.trials = true, nil, 0
		c.proved = true
		c.m.set(p, never)
		p.acknowledged(t.ping.h.Sequence)
		p.decide()
		p.transmit()
		if i := p.index + 1; i < len(c.paths) {
			c.paths[i].transmit() // it is its turn
		}
	}
	return true
}

// fails ends all links, as the peer has not answered the ping in time.
func (p *Path) fails() {
	c := p.conn
	p.trial.failed = true
	if c.trials++; c.trials < maxTrials {
		p.end()
		return
	}
	c.trials = 0
	c.renumberings++
	for _, q := range c.paths {
		for q.queue.len() > 0 && q.queue.first().h.Sequence != 0 {
			q.unacked.push(q.queue.pop())
		}
		q.disown()
		q.renumber()
	}
	p.end()
}

// receivedBefore checks a message of an anonymous peer that claims to be sent again. Before Linux knew of other paths, it
// has sent on path 0 what would have gone over them, with the numbers of path 0. Where it is known which of the peer's
// paths a link is, those are told apart.
func (p *Path) receivedBefore(h *wire.Header, data []byte) bool {
	c := p.conn
	if c.contents.has(h, data) {
		return true
	}
	if c.lower() && p.index == 0 {
		return h.Sequence <= c.firstPorts.last(h.SourcePort)
	}
	return h.Sequence <= c.ports.last(h.SourcePort)
}

// undecided reports whether a message can't be judged before the end of the link's trial, and keeps it then.
func (p *Path) undecided(h *wire.Header, data []byte) bool {
	c, t := p.conn, &p.trial
	if t.passed || h.Kind() != wire.Data || h.Sequence <= p.last {
		return false
	}
	first := c.firstPorts.last(h.SourcePort)
	doubt := h.Flags&wire.Retransmitted != 0 && first > 0 && (h.Sequence <= first) != (h.Sequence <= c.ports.last(h.SourcePort))
	if !doubt && !slices.ContainsFunc(t.undecided, func(a arrival) bool { return a.h.SourcePort == h.SourcePort }) {
		return false
	}
	p.last, p.expected = h.Sequence, h.Sequence+1
	t.undecided = append(t.undecided, arrival{*h, data})
	return true
}

// noted remembers a message of an anonymous peer.
func (p *Path) noted(h *wire.Header, data []byte) {
	c, t := p.conn, &p.trial
	c.contents.note(h, data)
	if !c.lower() || p.index > 0 {
		c.ports.note(h.SourcePort, h.Sequence)
		return
	}
	c.firstPorts.note(h.SourcePort, h.Sequence)
	if !t.passed && c.proved { // the first link of all is path 0
		if t.doubtful == nil {
			t.doubtful = map[uint16]uint64{}
		}
		t.doubtful[h.SourcePort] = h.Sequence
	}
}

// doubt remembers what came on a link that did not pass its trial as if it were of the ports' own paths, too. There it may
// come again.
func (p *Path) doubt() {
	ports := &p.conn.ports
	for port, n := range p.trial.doubtful {
		ports.note(port, max(n, ports.last(port)))
	}
	p.trial.doubtful = nil
}

// decide handles what could not be judged during the trial. If that has failed, the link may have been another path's; if it has not
// ended, that is unlikely.
func (p *Path) decide() {
	all := p.trial.undecided
	p.trial.undecided = nil
	for _, a := range all {
		again := a.h.Flags&wire.Retransmitted != 0
		seen := again && p.receivedBefore(&a.h, a.data)
		if c := p.conn; again && p.trial.failed {
			seen = a.h.Sequence <= max(c.firstPorts.last(a.h.SourcePort), c.ports.last(a.h.SourcePort))
		}
		if seen {
			p.conn.m.counters.Duplicates++
		} else {
			p.noted(&a.h, a.data)
		}
		if seen || !p.dispatch(wire.Data, &a.h, a.data) {
			p.drop(a.data)
		}
	}
}
