//go:build unix && !linux

package pollfd

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// fd is a pipe.
type fd struct{ r, w int }

// New returns a descriptor that is not readable.
func New() (*FD, error) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return nil, fmt.Errorf("pollfd: pipe: %w", err)
	}
	for _, n := range p {
		unix.CloseOnExec(n)
		if err := unix.SetNonblock(n, true); err != nil {
			return nil, errors.Join(fmt.Errorf("pollfd: pipe: %w", err), unix.Close(p[0]), unix.Close(p[1]))
		}
	}
	return &FD{num: p[0], fd: fd{p[0], p[1]}}, nil
}

func (f fd) signal() {
	_, _ = unix.Write(f.w, []byte{0}) // can fail only if it is readable already
}

func (f fd) drain() {
	var b [8]byte
	_, _ = unix.Read(f.r, b[:]) // can fail only if there is nothing
}

// Close closes the descriptor.
func (f *FD) Close() error { return errors.Join(unix.Close(f.r), unix.Close(f.w)) }
