package rds

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// newPeeker returns one that leaves the bytes in the socket, so that the connection can be
// handed on as it is.
func newPeeker(c net.Conn) peeker {
	if t, ok := c.(*net.TCPConn); ok {
		if raw, err := t.SyscallConn(); err == nil {
			return &socketPeeker{TCPConn: t, raw: raw}
		}
	}
	return &aheadPeeker{Conn: c}
}

// socketPeeker peeks at a socket.
type socketPeeker struct {
	*net.TCPConn
	raw  syscall.RawConn
	head [len(mpaKey)]byte
	n    int
}

func (p *socketPeeker) peek(n int) ([]byte, error) {
	var failure error
	err := p.raw.Read(func(fd uintptr) bool {
		for {
			k, _, err := unix.Recvfrom(int(fd), p.head[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil:
				failure = err
				return true
			}
			p.n = k
			if k == 0 {
				failure = io.EOF
			}
			return k == 0 || k >= n // what comes next makes the socket readable anew
		}
	})
	if err == nil {
		err = failure
	}
	return p.head[:p.n], err
}

func (p *socketPeeker) conn() net.Conn { return p.TCPConn }
