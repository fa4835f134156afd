package rds

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged returns how many written bytes the peer's TCP has not acknowledged: none, if
// the connection is not one of the kernel's.
func unacknowledged(c net.Conn) (uint64, error) {
	n, err := ask(c, unix.SIOCOUTQ)
	return uint64(n), err
}

func ask(c net.Conn, what uint) (n int, err error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return 0, nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, err
	}
	if e := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), what) }); e != nil {
		return 0, e
	}
	return n, err
}
