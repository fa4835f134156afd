package rpcbind

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Network identifiers (RFC 5665 §5.1, RFC 8166 §10.2).
const (
	TCP   = "tcp"
	TCP6  = "tcp6"
	UDP   = "udp"
	UDP6  = "udp6"
	RDMA  = "rdma"
	RDMA6 = "rdma6"
)

// families says of the identifiers whose addresses are known whether they are of IPv6.
var families = map[string]bool{TCP: false, TCP6: true, UDP: false, UDP6: true, RDMA: false, RDMA6: true}

// maxAddr is the length of the longest universal address, in bytes: an address of IPv6 in
// its longest form, and a port.
const maxAddr = 64

// FormatAddr returns the universal address of a port (RFC 5665 §5.2.3.3, §5.2.3.4).
func FormatAddr(a netip.AddrPort) string {
	return fmt.Sprintf("%v.%d.%d", a.Addr().Unmap().WithZone(""), a.Port()>>8, a.Port()&0xff)
}

// An AddrError says that a universal address is none.
type AddrError struct{ Addr string }

func (e *AddrError) Error() string {
	return fmt.Sprintf("rpcbind: %.64q is no universal address: one is like 192.0.2.1.8.1 or 2001:db8::1.8.1", e.Addr)
}

// ParseAddr reads a universal address. It returns an *AddrError.
func ParseAddr(s string) (netip.AddrPort, error) {
	if len(s) > maxAddr {
		return netip.AddrPort{}, &AddrError{s}
	}
	rest, low, ok := cutLast(s)
	host, high, ok2 := cutLast(rest)
	addr, err := netip.ParseAddr(host)
	if !ok || !ok2 || err != nil || addr.Zone() != "" || addr.Is4In6() {
		return netip.AddrPort{}, &AddrError{s}
	}
	return netip.AddrPortFrom(addr, uint16(high)<<8|uint16(low)), nil
}

// cutLast cuts the byte behind the last dot off.
func cutLast(s string) (rest string, octet uint8, ok bool) {
	dot := strings.LastIndexByte(s, '.')
	if dot < 0 || dot+1 == len(s) || s[dot+1] == '+' {
		return "", 0, false
	}
	n, err := strconv.ParseUint(s[dot+1:], 10, 8)
	return s[:dot], uint8(n), err == nil
}
