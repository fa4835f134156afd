//go:build unix

package pollfd

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func readable(t *testing.T, f *FD) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Num()), Events: unix.POLLIN}}, 0)
		if err == nil {
			return n == 1
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

func TestDescriptorIsReadableWhileSet(t *testing.T) {
	f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if readable(t, f) {
			t.Error("readable before Set")
		}
		f.Set()
		f.Set()
		for range 2 { // looking does not change it
			if !readable(t, f) {
				t.Error("not readable after Set")
			}
		}
		f.Clear()
		f.Clear()
	}
	if readable(t, f) {
		t.Error("readable after Clear")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
