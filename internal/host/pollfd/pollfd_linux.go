package pollfd

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const socketFlags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK

// New returns a descriptor that is not readable, with O_NONBLOCK set.
func New() (*FD, error) {
	n, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pollfd: eventfd: %w", err)
	}
	e := eventFD(n)
	if _, err := e.read(); errors.Is(err, unix.EAGAIN) {
		return &FD{num: n, source: e}, nil
	}
	_ = unix.Close(n) // nobody has seen it
	return newPair()  // Linux before 5.8, or a sandbox
}

// An eventFD is an eventfd(2): a counter, which is readable unless it is 0.
type eventFD int

var one = binary.NativeEndian.AppendUint64(nil, 1)

func (e eventFD) signal() {
	for {
		if _, err := unix.Write(int(e), one); err != unix.EINTR {
			return // nothing else is expected: the counter does not overflow
		}
	}
}

// read sets the counter to 0. If it is 0, read fails with EAGAIN, though the program
// may have cleared O_NONBLOCK: then read(2) would wait until the next event.
func (e eventFD) read() (int, error) {
	var b [8]byte
	for {
		n, err := unix.Preadv2(int(e), [][]byte{b[:]}, -1, unix.RWF_NOWAIT)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (e eventFD) drain() {
	_, _ = e.read() // fails if the program has read it
}

func (e eventFD) close() error { return unix.Close(int(e)) }
