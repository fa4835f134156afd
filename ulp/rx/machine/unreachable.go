package machine

import (
	"errors"
	"net/netip"

	"urnic/ulp/rx/wire"
)

var errUnreachable = errors.New("nobody is at the peer's port")

// Unreachable reports that the network has said that an address has no program. Calls to it
// without any packet from there fail with -1. Others continue: the report may be forged, and
// a peer that was there may come back.
func (m *Machine) Unreachable(now Time, to netip.AddrPort) {
	m.tick(now)
	p := m.peers[to]
	if p == nil {
		return
	}
	for _, c := range m.list {
		if c.peer != p || !c.key.client {
			continue
		}
		for _, k := range c.calls {
			if k != nil && k.err == nil && k.out.next > 1 && k.heard == k.asked {
				m.stats.Unreachable++
				k.fail(&AbortError{Code: wire.CallDead, Cause: errUnreachable})
				k.rearm()
			}
		}
	}
}

// Unfinished is how many calls of clients are served, or wait for their reply to be
// acknowledged.
func (m *Machine) Unfinished() int {
	n := 0
	for _, c := range m.list {
		if !c.key.client && c.active() {
			n++
		}
	}
	return n
}
