package oncrpc

import (
	"net"
	"net/netip"
	"sync"
)

// Admit decides about a connection before it takes one of a server's places. An error
// refuses it. Transports ask once for each connection, while it is open, and one after
// the other: it should not wait for long.
type Admit func(local, remote net.Addr) (Admission, error)

// An Admission is what was found out of the peer of a connection.
type Admission struct {
	// Peer is what calls of the connection have as Exchange.Peer.
	Peer any

	// Account is whom the connection counts for where a server bounds how many one
	// host may have. "" stands for the address: all of IPv6's with the same first 64
	// bits are one host, and so are all loopback addresses.
	Account string
}

// admitted asks Admit, if there is one, and fills in the account.
func (admit Admit) admitted(local, remote net.Addr) (a Admission, err error) {
	if admit != nil {
		if a, err = admit(local, remote); err != nil {
			return a, err
		}
	}
	if a.Account == "" {
		a.Account = account(remote)
	}
	return a, nil
}

// account is the host that an address belongs to.
func account(remote net.Addr) string {
	ip, other := host(remote)
	switch {
	case !ip.IsValid():
		return other
	case ip.IsLoopback():
		return "loopback"
	case ip.Is4():
		return ip.String()
	}
	p, _ := ip.WithZone("").Prefix(64)
	return netip.PrefixFrom(p.Addr(), 64).String()
}

// Places counts the connections of a server, and of each host among them. It is for
// transports. Its zero value has no places.
type Places struct {
	mu     sync.Mutex
	taken  int
	most   int
	each   int
	counts map[string]int
}

// NewPlaces returns places for most connections, each of them for one host.
func NewPlaces(most, each int) *Places {
	return &Places{most: most, each: min(each, most), counts: make(map[string]int)}
}

// A FullError says that a connection has no place.
type FullError struct {
	Account string // whose places are taken; "" if all are
	Most    int    // how many there are
}

func (e *FullError) Error() string {
	if e.Account == "" {
		return "oncrpc: there are as many connections as there may be"
	}
	return "oncrpc: " + e.Account + " has as many connections as one host may have"
}

// Take asks Admit about a connection and takes a place for it. The place is given back by
// Give. An error is that of Admit, or a *FullError.
func (p *Places) Take(admit Admit, local, remote net.Addr) (Admission, error) {
	a, err := admit.admitted(local, remote)
	if err != nil {
		return a, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.most:
		return a, &FullError{Most: p.most}
	case p.counts[a.Account] >= p.each:
		return a, &FullError{a.Account, p.each}
	}
	p.taken++
	p.counts[a.Account]++
	return a, nil
}

// Give gives the place of a connection back.
func (p *Places) Give(a Admission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.counts[a.Account]--; p.counts[a.Account] <= 0 {
		delete(p.counts, a.Account)
	}
}
