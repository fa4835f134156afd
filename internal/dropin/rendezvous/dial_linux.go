package rendezvous

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// bindLate makes a bound socket get its port only when it is connected, so that the
// ports of one address suffice for more than so many peers.
func bindLate(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) // it works without, too
	})
}
