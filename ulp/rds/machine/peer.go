package machine

import (
	"net/netip"
	"slices"
)

// A peer is the state of a peer address, over all carriers and types of service.
type peer struct {
	conns int
	held  int // bytes of its messages that are not read
}

// forget drops the connection if its peer has never sent a segment, and nothing has to be sent: a
// host that only connects, or does not support RDS, must not use the slot of a peer. A host to which
// messages were sent may have received them, and acknowledge them later: their numbers are not
// reused.
func (c *Conn) forget() {
	m := c.m
	if c.met || c.numbered || c.busy() || m.conns[c.key] != c {
		return
	}
	for _, p := range c.paths {
		if p.state != Down {
			return
		}
	}
	for _, p := range c.paths {
		m.set(p, never)
	}
	delete(m.conns, c.key)
	m.order = slices.DeleteFunc(m.order, func(o *Conn) bool { return o == c })
	if c.peer.conns--; c.peer.conns == 0 {
		delete(m.peers, c.key.Peer)
	}
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
