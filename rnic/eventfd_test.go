//go:build unix

package rnic_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/rnic"
)

func TestEventDescriptorIsReadableWhileThereAreEvents(t *testing.T) {
	l := newLab(t, rnic.Config{})
	srq := l.srq(l.domain(), rnic.SRQAttr{})
	l.raise(srq, 1) // before anybody has asked for the descriptor
	fd, err := l.dev.EventFD()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.dev.EventFD(); again != fd || err != nil {
		t.Errorf("a second descriptor: %d, %v", again, err)
	}
	for range 3 {
		l.raise(srq, 2)
		for readable(t, fd) {
			if _, ok := l.dev.PollEvent(); !ok {
				t.Fatal("readable, but there is no event")
			}
		}
		wantNoEvent(t, l.dev)
	}
}

// The descriptor belongs to the device, which notices that a program has closed it.
func TestDeviceTellsThatItsDescriptorWasClosed(t *testing.T) {
	d, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	fd, err := d.EventFD()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); !errors.Is(err, unix.EBADF) {
		t.Errorf("%v; want %v", err, unix.EBADF)
	}
}
