package pollfd

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// fd is an eventfd.
type fd struct{ event int }

// New returns a descriptor that is not readable.
func New() (*FD, error) {
	n, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pollfd: eventfd: %w", err)
	}
	return &FD{num: n, fd: fd{n}}, nil
}

func (f fd) signal() {
	_, _ = unix.Write(f.event, binary.NativeEndian.AppendUint64(nil, 1)) // can fail only if it is readable already
}

func (f fd) drain() {
	var b [8]byte
	_, _ = unix.Read(f.event, b[:]) // can fail only if there is nothing
}

// Close closes the descriptor.
func (f *FD) Close() error { return unix.Close(f.event) }
