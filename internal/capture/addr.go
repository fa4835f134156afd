package capture

import (
	"hash/fnv"
	"net"
	"net/netip"
)

// AddrPort returns the address under which a recording shows a: its own, if it
// is an IP address with a port. Any other address (of an in-memory network, a
// Unix socket) gets one in 198.18.0.0/15, the range of RFC 2544 for test
// networks, which depends on its network and name alone.
func AddrPort(a net.Addr) netip.AddrPort {
	if a == nil {
		return netip.AddrPort{}
	}
	if t, ok := a.(*net.TCPAddr); ok {
		if ap := t.AddrPort(); ap.IsValid() {
			return plain(ap)
		}
	}
	name := a.String()
	if ap, err := netip.ParseAddrPort(name); err == nil {
		return plain(ap)
	}
	return synthetic(a.Network() + " " + name)
}

// plain returns ap without a zone, and as IPv4 where it is IPv4 within IPv6.
func plain(ap netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// synthetic returns the stand-in for an endpoint that has no IP address.
func synthetic(name string) netip.AddrPort {
	h := fnv.New64a()
	h.Write([]byte(name))
	s := h.Sum64()
	addr := netip.AddrFrom4([4]byte{198, 18 | byte(s>>40)&1, byte(s >> 32), byte(s >> 24)})
	return netip.AddrPortFrom(addr, 1024+uint16(s)%(1<<16-1024))
}
