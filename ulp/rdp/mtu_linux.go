package rdp

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// pathMTU returns how large a packet to a host may be, as far as the system knows: the MTU of the interface, or less where it
// has learned of it (RFC 1191, RFC 8201). 0: it does not know.
func pathMTU(remote netip.AddrPort) int {
	if remote.Port() == 0 {
		remote = netip.AddrPortFrom(remote.Addr(), 9)
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(remote)) // nothing is sent
	if err != nil {
		return 0
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	mtu := 0
	err = raw.Control(func(fd uintptr) {
		level, option := unix.IPPROTO_IP, unix.IP_MTU
		if remote.Addr().Is6() {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
		}
		mtu, _ = unix.GetsockoptInt(int(fd), level, option) // 0 if it does not know
	})
	if err != nil {
		return 0
	}
	return mtu
}
