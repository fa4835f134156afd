package peeruid

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

var (
	// ErrRemote says that the connection comes from another host.
	ErrRemote = errors.New("the peer is at another host")

	// ErrGone says that no process has the other end: it was closed, or it
	// is in another network namespace.
	ErrGone = errors.New("no process of this host has the other end open")

	// ErrUnmapped says that the owner has no ID in this user namespace.
	ErrUnmapped = errors.New("the owner has no ID in this user namespace")
)

// Of returns the ID of the user that owns the other end of a connection, which
// the caller has open. Each error means that the user is not known.
func Of(c net.Conn) (uint32, error) { return Between(c.LocalAddr(), c.RemoteAddr()) }

// Between is [Of] for a connection of which the addresses are known. They must
// be those of a connection that the caller has open: else the port could be
// somebody else's by now.
func Between(local, remote net.Addr) (uint32, error) {
	return between(local, remote, SameHost)
}

// Within is [Between] for two addresses that the caller knows to be this host's. They
// may be different ones.
func Within(local, remote net.Addr) (uint32, error) {
	return between(local, remote, func(_, _ netip.Addr) bool { return true })
}

func between(local, remote net.Addr, sameHost func(local, remote netip.Addr) bool) (uint32, error) {
	l, lok := local.(*net.TCPAddr)
	r, rok := remote.(*net.TCPAddr)
	if !lok || !rok {
		return 0, fmt.Errorf("the user of the peer at %v: not a TCP connection", remote)
	}
	lp, rp := plain(l), plain(r)
	if !sameHost(lp.Addr(), rp.Addr()) {
		return 0, fmt.Errorf("the user of the peer at %v: %w", remote, ErrRemote)
	}
	uid, err := owner(rp, lp)
	if err != nil {
		return 0, fmt.Errorf("the user of the peer at %v: %w", remote, err)
	}
	return uid, nil
}

// SameHost reports whether the peer of a connection is at this host: either end
// has a loopback address, or the peer has one of the host's own.
func SameHost(local, remote netip.Addr) bool {
	local, remote = local.Unmap(), remote.Unmap()
	if !local.IsValid() || !remote.IsValid() || remote.IsUnspecified() {
		return false
	}
	return local.IsLoopback() || remote.IsLoopback() || local == remote || own(remote)
}

// own reports whether an address is one of this host's.
func own(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(i net.Addr) bool {
		n, ok := i.(*net.IPNet)
		if !ok {
			return false
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		return ok && ip.Unmap() == a.WithZone("")
	})
}

// plain is an address as an IPv4 one if it is one that is written as IPv6.
func plain(a *net.TCPAddr) netip.AddrPort {
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
