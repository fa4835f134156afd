package perf

import (
	"net"

	"golang.org/x/sys/unix"
)

// segmentSize returns the bytes of a TCP segment, or 0 if the system does not
// tell.
func segmentSize(c *net.TCPConn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) {
		n, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	})
	if err != nil {
		return 0
	}
	return n
}
