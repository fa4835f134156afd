package pollfd

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Each Set is an edge for epoll(7), whether the one before was cleared or not.
func TestEachSetIsAnEdge(t *testing.T) {
	each(t, func(t *testing.T, f *FD) {
		ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(ep)
		want := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: 77}
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, f.Num(), &want); err != nil {
			t.Fatal(err)
		}
		edge := func() bool {
			t.Helper()
			for {
				n, err := unix.EpollWait(ep, make([]unix.EpollEvent, 1), 0)
				if err == nil {
					return n == 1
				}
				if !errors.Is(err, unix.EINTR) {
					t.Fatal(err)
				}
			}
		}
		if edge() {
			t.Error("an edge before Set")
		}
		for i := range 1000 { // more than a pair has room for
			f.Set()
			if !edge() {
				t.Fatalf("no edge for Set %d", i)
			}
			if edge() {
				t.Fatalf("two edges for Set %d", i)
			}
		}
		f.Set()
		f.Clear()
		if edge() {
			t.Error("an edge though nothing is left")
		}
		f.Set()
		if !edge() {
			t.Error("no edge after Clear")
		}
	})
}
