//go:build linux

package dropin

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// An endpoint is what struct sockaddr_in or sockaddr_in6 says: an IP address and
// a port. The zero endpoint is none.
type endpoint struct {
	ip    netip.Addr // without a zone
	port  uint16
	scope uint32 // index of the interface of a link-local address
}

// parseEndpoint reads a struct sockaddr. It returns EINVAL if it is cut short, and
// EAFNOSUPPORT for other families than those of IP.
func parseEndpoint(b []byte) (endpoint, Errno) {
	if len(b) < 2 {
		return endpoint{}, syscall.EINVAL
	}
	switch binary.NativeEndian.Uint16(b) {
	case unix.AF_INET:
		if len(b) < unix.SizeofSockaddrInet4 {
			return endpoint{}, syscall.EINVAL
		}
		return endpoint{ip: netip.AddrFrom4([4]byte(b[4:8])), port: binary.BigEndian.Uint16(b[2:])}, ok
	case unix.AF_INET6:
		if len(b) < unix.SizeofSockaddrInet6 {
			return endpoint{}, syscall.EINVAL
		}
		return endpoint{
			ip: netip.AddrFrom16([16]byte(b[8:24])), port: binary.BigEndian.Uint16(b[2:]), scope: binary.NativeEndian.Uint32(b[24:]),
		}, ok
	}
	return endpoint{}, syscall.EAFNOSUPPORT
}

// isNone reports whether a caller has given no address: nothing, or family 0.
func isNone(b []byte) bool { return len(b) < 2 || binary.NativeEndian.Uint16(b) == unix.AF_UNSPEC }

// put writes a struct sockaddr_storage, all zeros for no endpoint.
func (a endpoint) put(b *[128]byte) {
	*b = [128]byte{}
	switch {
	case a.ip.Is4():
		binary.NativeEndian.PutUint16(b[:], unix.AF_INET)
		copy(b[4:], a.ip.AsSlice())
	case a.ip.Is6():
		binary.NativeEndian.PutUint16(b[:], unix.AF_INET6)
		copy(b[8:], a.ip.AsSlice())
		binary.NativeEndian.PutUint32(b[24:], a.scope)
	default:
		return
	}
	binary.BigEndian.PutUint16(b[2:], a.port)
}

// family returns the address family.
func (a endpoint) family() int {
	if a.ip.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// sockaddr returns the endpoint for a system call.
func (a endpoint) sockaddr() unix.Sockaddr {
	if a.ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.port), Addr: a.ip.As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.port), Addr: a.ip.As16(), ZoneId: a.scope}
}

// endpointOf returns what a system call has said.
func endpointOf(s unix.Sockaddr) endpoint {
	switch s := s.(type) {
	case *unix.SockaddrInet4:
		return endpoint{ip: netip.AddrFrom4(s.Addr), port: uint16(s.Port)}
	case *unix.SockaddrInet6:
		return endpoint{ip: netip.AddrFrom16(s.Addr), port: uint16(s.Port), scope: s.ZoneId}
	}
	return endpoint{}
}

// endpointAt returns an address of a connection, in the family of its socket: one
// of IPv4 is mapped if that is of IPv6.
func endpointAt(n net.Addr, family int) endpoint {
	t, isTCP := n.(*net.TCPAddr)
	if !isTCP {
		return endpoint{}
	}
	a := endpoint{port: uint16(t.Port)}
	a.ip, _ = netip.AddrFromSlice(t.IP)
	if a.ip = a.ip.Unmap(); family == unix.AF_INET6 && a.ip.Is4() {
		a.ip = netip.AddrFrom16(a.ip.As16())
	}
	if t.Zone != "" {
		if i, err := net.InterfaceByName(t.Zone); err == nil {
			a.scope = uint32(i.Index)
		} else if n, err := strconv.ParseUint(t.Zone, 10, 32); err == nil {
			a.scope = uint32(n)
		}
	}
	return a
}

// isAny reports whether it stands for all addresses.
func (a endpoint) isAny() bool { return a.ip.IsUnspecified() || a.ip.Unmap().IsUnspecified() }

// wantsScope reports whether nobody can know which interface is meant.
func (a endpoint) wantsScope() bool { return a.ip.Is6() && a.ip.IsLinkLocalUnicast() && a.scope == 0 }

// String returns the endpoint in human-readable form.
func (a endpoint) String() string {
	ip := a.ip
	if a.scope != 0 && ip.Is6() {
		ip = ip.WithZone(strconv.FormatUint(uint64(a.scope), 10))
	}
	return netip.AddrPortFrom(ip, a.port).String()
}
