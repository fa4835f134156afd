//go:build unix

package pollfd

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// A pair is two datagram sockets that are connected to each other: the program's is
// readable while there is a datagram in it. Unlike a pipe, it can be read without
// waiting, whether the program has cleared O_NONBLOCK or not, and each datagram wakes.
type pair struct{ theirs, ours int }

var datagram = []byte{0}

// newPair returns a descriptor that is not readable, with O_NONBLOCK set.
func newPair() (*FD, error) {
	syscall.ForkLock.RLock() // until they are closed on exec
	defer syscall.ForkLock.RUnlock()
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|socketFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("pollfd: socketpair: %w", err)
	}
	for _, n := range s {
		unix.CloseOnExec(n)
		if err := unix.SetNonblock(n, true); err != nil {
			return nil, errors.Join(fmt.Errorf("pollfd: socketpair: %w", err), unix.Close(s[0]), unix.Close(s[1]))
		}
	}
	return &FD{num: s[0], source: pair{theirs: s[0], ours: s[1]}}, nil
}

func (p pair) signal() {
	if p.send() == nil {
		return
	}
	p.drain() // it is full
	_ = p.send()
}

func (p pair) send() error {
	for {
		if _, err := unix.Write(p.ours, datagram); err != unix.EINTR {
			return err
		}
	}
}

func (p pair) drain() {
	var b [1]byte
	for {
		if _, _, err := unix.Recvfrom(p.theirs, b[:], unix.MSG_DONTWAIT); err != nil && err != unix.EINTR {
			return
		}
	}
}

func (p pair) close() error { return errors.Join(unix.Close(p.theirs), unix.Close(p.ours)) }
