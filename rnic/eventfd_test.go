//go:build unix

package rnic_test

import (
	"testing"

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
