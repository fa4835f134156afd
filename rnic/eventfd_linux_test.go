package rnic_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/rnic"
)

// A program that waits with EPOLLET and takes one event each time misses none.
func TestEventDescriptorWakesEdgeTriggeredWaits(t *testing.T) {
	l := newLab(t, rnic.Config{})
	srq := l.srq(l.domain(), rnic.SRQAttr{})
	fd, err := l.dev.EventFD()
	if err != nil {
		t.Fatal(err)
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ep)
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}); err != nil {
		t.Fatal(err)
	}
	edge := func() bool {
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
	l.raise(srq, 3)
	for i := range 3 {
		if !edge() {
			t.Fatalf("no edge for event %d", i)
		}
		nextEvent(t, l.dev, rnic.EventSRQLimit)
	}
	if edge() {
		t.Error("an edge though no event is left")
	}
}

// The descriptor is closed with the device. Events that are fetched later leave alone
// whoever has its number then.
func TestEventDescriptorEndsWithItsDevice(t *testing.T) {
	l := newLab(t, rnic.Config{})
	srq := l.srq(l.domain(), rnic.SRQAttr{})
	fd, err := l.dev.EventFD()
	if err != nil {
		t.Fatal(err)
	}
	l.raise(srq, 3)
	if err := l.dev.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
		t.Fatalf("the descriptor is open after Close: %v", err)
	}
	other, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	if other != fd {
		if err := unix.Dup3(other, fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	for range 3 {
		nextEvent(t, l.dev, rnic.EventSRQLimit)
		if readable(t, fd) {
			t.Fatal("an event was signalled to a descriptor of another owner")
		}
	}
}

func TestEventDescriptorFailsWithoutDescriptors(t *testing.T) {
	l := newLab(t, rnic.Config{})
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	fd, err := l.dev.EventFD()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "descriptor", err, unix.EMFILE)
	if fd != -1 {
		t.Errorf("the descriptor is %d", fd)
	}
	if fd, err := l.dev.EventFD(); err != nil || fd < 0 {
		t.Errorf("later, the descriptor is %d: %v", fd, err)
	}
}
