package profile

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// segmentSize returns what has a socket tell its peer how large TCP segments it
// takes, or nil if that is left to TCP.
func segmentSize(n int) func(network, address string, c syscall.RawConn) error {
	if n == 0 {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var setErr error
		err := c.Control(func(fd uintptr) {
			setErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, n)
		})
		return errors.Join(err, setErr)
	}
}
