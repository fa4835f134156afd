package rdp

import (
	"net/netip"
	"time"
)

// A path is what is known of the way to a host.
type path struct {
	limit int // the largest segment for it
	until time.Time
}

const (
	maxPaths = 1024
	pathLife = time.Minute // how long that is believed
)

// limitFor returns the largest segment that fits one packet to a host, counted as RFC 908 §4.3.2 does: with 20 bytes for the
// header of IP. It is called with the lock held.
func (e *Endpoint) limitFor(host netip.AddrPort) int {
	now := time.Now()
	if p, ok := e.paths[host.Addr()]; ok && now.Before(p.until) {
		return p.limit
	}
	limit := e.most
	if mtu := e.carrier.mtu(host); mtu > 0 {
		limit = min(limit, mtu-e.carrier.headers(host)+ipHeader)
	}
	if e.paths == nil || len(e.paths) >= maxPaths {
		e.paths = map[netip.Addr]path{}
	}
	e.paths[host.Addr()] = path{limit, now.Add(pathLife)}
	return limit
}
