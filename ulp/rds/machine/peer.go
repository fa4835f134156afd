package machine

import (
	"net/netip"
	"slices"
)

// A peer is the state of a peer address, over all carriers and types of service.
type peer struct {
	conns int
	held  int  // bytes of its messages that are not read
	tight bool // they have filled the memory but for a quarter, and not much was read since
}

// forget drops the connection if nothing has to be sent, no message of a socket has gone either way, and it is down: a
// host that only connects, or does not support RDS, must not use the slot of a peer. With messages it is kept: the
// peer may send again what has arrived already, and acknowledge later what has not.
func (c *Conn) forget() {
	if !c.numbered && !c.delivered && c.idle() {
		c.drop()
	}
}

// idle reports whether the connection is down, with nothing to send and nothing unread.
func (c *Conn) idle() bool {
	if c.busy() || c.held > 0 || c.m.conns[c.key] != c {
		return false
	}
	return !slices.ContainsFunc(c.paths, func(p *Path) bool { return p.state != Down })
}

// drop gives up the connection, which is idle. A new one to the peer begins with higher numbers: it would
// take lower ones for those that it has.
func (c *Conn) drop() {
	m := c.m
	for _, p := range c.paths {
		m.set(p, never)
		m.first = max(m.first, p.next)
	}
	delete(m.conns, c.key)
	m.order = slices.DeleteFunc(m.order, func(o *Conn) bool { return o == c })
	if c.peer.conns--; c.peer.conns == 0 {
		delete(m.peers, c.key.Peer)
	}
}

// evict makes room for another connection: it drops the one that has been idle for longest, if that is some time. Its
// peer may return, and send again what it has not known to be acknowledged. That would be delivered again; an
// event says that the peer is forgotten.
func (m *Machine) evict() bool {
	var oldest *Conn
	for _, c := range m.order {
		if c.idle() && m.now-c.since >= m.cfg.Silence && (oldest == nil || c.since < oldest.since) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	m.report(Event{Kind: Forgotten, Peer: oldest.key.Peer, TOS: oldest.key.TOS, Err: ErrTooMany})
	oldest.drop()
	return true
}

// Misconnected notes that a peer has broken a rule during the setup of a connection, which
// has failed. It returns the violation.
func (m *Machine) Misconnected(now Time, peer netip.Addr, rule Rule, err error) *Violation {
	m.at(now)
	v := &Violation{Peer: peer, Rule: rule, Err: err}
	m.counters.Violations++
	m.report(Event{Kind: PeerViolation, Peer: peer, Err: v})
	return v
}
