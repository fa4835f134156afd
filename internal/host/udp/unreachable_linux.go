package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusedBytes is how much of a datagram that did not arrive is told: a header, with options.
const refusedBytes = 128

// errors reads what the network has said of datagrams that did not arrive.
func (s *Socket) errors(unreachable func(to netip.AddrPort, datagram []byte)) error {
	return s.control(func(fd uintptr) {
		var data [refusedBytes]byte
		var oob [256]byte
		for range batch {
			got, n, _, to, err := unix.Recvmsg(int(fd), data[:], oob[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			if !refusal(oob[:n]) {
				continue
			}
			switch a := to.(type) {
			case *unix.SockaddrInet4:
				unreachable(netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), data[:got])
			case *unix.SockaddrInet6:
				unreachable(netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)), data[:got])
			}
		}
	})
}

// refusal reports whether the network says that nobody is at a destination.
func refusal(oob []byte) bool {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return false
	}
	for _, m := range messages {
		four := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		six := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !four && !six || len(m.Data) < int(unsafe.Sizeof(unix.SockExtendedErr{})) {
			continue
		}
		e := (*unix.SockExtendedErr)(unsafe.Pointer(&m.Data[0]))
		if unix.Errno(e.Errno) == unix.ECONNREFUSED {
			return true
		}
	}
	return false
}
