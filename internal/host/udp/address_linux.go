package udp

import (
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// addrOf returns a socket address that the kernel has filled in.
func addrOf(r *unix.RawSockaddrInet6) netip.AddrPort {
	if r.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(r))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), port(v4.Port))
	}
	a := netip.AddrFrom16(r.Addr).Unmap()
	if r.Scope_id != 0 && a.Is6() {
		a = a.WithZone(zoneName(r.Scope_id))
	}
	return netip.AddrPortFrom(a, port(r.Port))
}

// port turns a port over, to and from the order of bytes in the network.
func port(n uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&n))
	return uint16(b[0])<<8 | uint16(b[1])
}

// put fills in a socket address for the kernel, and returns its length.
func (s *Socket) put(r *unix.RawSockaddrInet6, to netip.AddrPort) uint32 {
	if !s.six {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(r))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port(to.Port()), Addr: to.Addr().Unmap().As4()}
		return unix.SizeofSockaddrInet4
	}
	*r = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port(to.Port()), Addr: to.Addr().As16()}
	if z := to.Addr().Zone(); z != "" {
		r.Scope_id = zoneID(z)
	}
	return unix.SizeofSockaddrInet6
}

// zoneName and zoneID turn the zones of link-local addresses to and from what the kernel
// calls them.
func zoneName(id uint32) string {
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return ""
}

func zoneID(name string) uint32 {
	if i, err := net.InterfaceByName(name); err == nil {
		return uint32(i.Index)
	}
	return 0
}
