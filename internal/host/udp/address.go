package udp

import (
	"fmt"
	"net"
	"net/netip"
)

// Network returns what Open needs to know of an address, so that one of one family means that family.
func Network(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "udp"
	case a.Unmap().Is4():
		return "udp4"
	default:
		return "udp6"
	}
}

// Address returns an address as Open takes it; one that is not valid means all of the machine's.
func Address(a netip.AddrPort) string {
	if !a.Addr().IsValid() {
		return net.JoinHostPort("", fmt.Sprint(a.Port()))
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
}

// Local returns the address that the socket has.
func (s *Socket) Local() netip.AddrPort { return s.local }

// IPv6 reports whether the socket's addresses are those of IPv6, which have room for those of IPv4.
func (s *Socket) IPv6() bool { return s.six }

// Joins reports whether the system takes several datagrams of a size as one message: what Outbox.Add is given.
func (s *Socket) Joins() bool { return s.join }
