//go:build unix

package pollfd

import (
	"errors"
	"sync"
	"sync/atomic"
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

// each runs a test with what New returns, and with what it returns on systems that have
// nothing better.
func each(t *testing.T, test func(t *testing.T, f *FD)) {
	t.Helper()
	for name, make := range map[string]func() (*FD, error){"New": New, "pair": newPair} {
		t.Run(name, func(t *testing.T) {
			f, err := make()
			if err != nil {
				t.Fatal(err)
			}
			test(t, f)
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDescriptorIsReadableWhileSet(t *testing.T) {
	each(t, func(t *testing.T, f *FD) {
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
	})
}

func TestNewDescriptorIsNonblocking(t *testing.T) {
	each(t, func(t *testing.T, f *FD) {
		flags, err := unix.FcntlInt(uintptr(f.Num()), unix.F_GETFL, 0)
		if err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Errorf("flags %#x: %v", flags, err)
		}
		if flags, err = unix.FcntlInt(uintptr(f.Num()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x: %v", flags, err)
		}
	})
}

// More calls of Set than the descriptor has room for are as good as one.
func TestDescriptorIsNeverFull(t *testing.T) {
	each(t, func(t *testing.T, f *FD) {
		for range 10_000 {
			f.Set()
		}
		if !readable(t, f) {
			t.Error("not readable after Set")
		}
		f.Clear()
		if readable(t, f) {
			t.Error("readable after Clear")
		}
	})
}

// A program that has cleared O_NONBLOCK, and has read the descriptor, does not block
// Clear. That would not return without the next Set.
func TestClearDoesNotWaitForAProgramThatReads(t *testing.T) {
	each(t, func(t *testing.T, f *FD) {
		if err := unix.SetNonblock(f.Num(), false); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f.Set()
			if _, err := unix.Read(f.Num(), make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			if readable(t, f) {
				t.Error("readable after it was read")
			}
			f.Clear()
		}
		f.Set()
		if !readable(t, f) {
			t.Error("not readable after Set")
		}
	})
}

// Nor does one that is about to read it.
func TestClearDoesNotWaitForAProgramThatWaits(t *testing.T) {
	each(t, func(t *testing.T, f *FD) {
		if err := unix.SetNonblock(f.Num(), false); err != nil {
			t.Fatal(err)
		}
		var reader sync.WaitGroup
		var ended atomic.Bool
		ends := make(chan struct{})
		reader.Go(func() {
			defer close(ends)
			for b := make([]byte, 8); !ended.Load(); {
				if _, err := unix.Read(f.Num(), b); err != nil && !errors.Is(err, unix.EINTR) {
					t.Error(err)
				}
			}
		})
		for range 10_000 {
			f.Set()
			f.Clear()
		}
		for ended.Store(true); ; { // the reader may wait, and a Clear may have been first
			f.Set()
			select {
			case <-ends:
				reader.Wait()
				return
			default:
			}
		}
	})
}
