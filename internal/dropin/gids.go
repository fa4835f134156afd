//go:build linux

package dropin

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A gidTable lists the addresses of this host as GIDs: IPv4 addresses are mapped to
// IPv6 ones. Those that lead farthest come first: IPv4, IPv6, link-local ones, and
// at last those of the loopback interface.
type gidTable struct {
	mu    sync.Mutex
	gids  []GID
	until time.Time
}

// gidsKept is how long the table is not read anew, so that whoever walks through it
// sees one state.
const gidsKept = time.Second

func (t *gidTable) list() []GID {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.After(t.until) {
		t.gids, t.until = hostGIDs(), now.Add(gidsKept)
	}
	return t.gids
}

// forget makes the next list a new one.
func (t *gidTable) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Time{}
}

// addr returns the address that a GID stands for, with the zone of a link-local
// one.
func (g *GID) addr() netip.Addr {
	a := netip.AddrFrom16(g.Raw).Unmap()
	if a.IsLinkLocalUnicast() && a.Is6() {
		if i, err := net.InterfaceByIndex(int(g.IfIndex)); err == nil {
			a = a.WithZone(i.Name)
		}
	}
	return a
}

func hostGIDs() []GID {
	var gids []GID
	interfaces, _ := net.Interfaces() // none is none
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, _ := i.Addrs() // the interface may just have gone
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				gids = append(gids, GID{Raw: p.Addr().As16(), IfIndex: uint32(i.Index)})
			}
		}
	}
	slices.SortStableFunc(gids, func(a, b GID) int { return cmp.Compare(reach(&a), reach(&b)) })
	return gids
}

// reach orders addresses by how far they lead.
func reach(g *GID) int {
	switch a := netip.AddrFrom16(g.Raw).Unmap(); {
	case a.IsLoopback():
		return 3
	case a.IsLinkLocalUnicast():
		return 2
	case a.Is6():
		return 1
	}
	return 0
}
