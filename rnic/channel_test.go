//go:build unix

package rnic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rnic"
)

// readable reports whether a program that polls fd would find it readable.
func readable(t testing.TB, fd int) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if err == nil {
			return n == 1
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

// fire makes an armed queue fire, by a receive that is flushed.
func (l lab) fire(p *rnic.PD, cq *rnic.CQ) {
	l.Helper()
	if err := cq.Arm(rnic.NextCompletion); err != nil {
		l.Fatal(err)
	}
	q := l.qpOn(p, cq)
	if err := q.PostRecv(receives(1, 1)...); err != nil {
		l.Fatal(err)
	}
	if err := q.Close(); err != nil {
		l.Fatal(err)
	}
}

func TestCompletionChannelTellsWhichQueuesHaveFired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		p, ch := l.domain(), l.channel()
		first, second := l.cq(rnic.CQAttr{Channel: ch}), l.cq(rnic.CQAttr{Channel: ch})
		fd, err := ch.FD()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ch.FD(); again != fd || err != nil {
			t.Errorf("a second descriptor: %d, %v", again, err)
		}
		if readable(t, fd) || ch.Poll() != nil {
			t.Error("something has fired already")
		}
		l.fire(p, second)
		l.fire(p, first)
		for _, want := range []*rnic.CQ{second, first} {
			if !readable(t, fd) {
				t.Error("the descriptor is not readable")
			}
			if got := ch.Poll(); got != want {
				t.Errorf("fired: %v; want CQ %d", got, want.Num())
			}
		}
		if readable(t, fd) || ch.Poll() != nil {
			t.Error("more has fired")
		}

		got := make(chan *rnic.CQ)
		go func() {
			cq, err := ch.Wait(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- cq
		}()
		synctest.Wait()
		l.fire(p, first)
		if cq := <-got; cq != first {
			t.Errorf("waited for CQ %d", cq.Num())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = ch.Wait(ctx)
		wantRefused(t, "wait", err, context.DeadlineExceeded)
	})
}

func TestDescriptorTellsOfWhatFiredBefore(t *testing.T) {
	l := newLab(t, rnic.Config{})
	ch := l.channel()
	l.fire(l.domain(), l.cq(rnic.CQAttr{Channel: ch}))
	fd, err := ch.FD()
	if err != nil {
		t.Fatal(err)
	}
	if !readable(t, fd) {
		t.Error("the descriptor is not readable")
	}
}

// A channel holds each queue once, so that it stays small and loses nobody.
func TestQueueThatFiresTwiceIsFetchedOnce(t *testing.T) {
	l := newLab(t, rnic.Config{})
	p, ch := l.domain(), l.channel()
	noisy, quiet := l.cq(rnic.CQAttr{Channel: ch, Entries: 10_000}), l.cq(rnic.CQAttr{Channel: ch})
	l.fire(p, quiet)
	for range 5000 {
		l.fire(p, noisy)
	}
	for _, want := range []*rnic.CQ{quiet, noisy, nil} {
		if got := ch.Poll(); got != want {
			t.Errorf("fired: %v; want %v", got, want)
		}
	}
	l.fire(p, noisy)
	if got := ch.Poll(); got != noisy {
		t.Errorf("after it was fetched, it fires in vain: %v", got)
	}
}

func TestClosedQueueLeavesItsChannel(t *testing.T) {
	l := newLab(t, rnic.Config{})
	ch := l.channel()
	fd, err := ch.FD()
	if err != nil {
		t.Fatal(err)
	}
	cq := l.cq(rnic.CQAttr{Channel: ch})
	l.fire(l.domain(), cq)
	if err := cq.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ch.Poll(); got != nil || readable(t, fd) {
		t.Errorf("CQ %v is closed and there; readable: %v", got, readable(t, fd))
	}
}

func TestClosedChannelTellsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		p, ch := l.domain(), l.channel()
		cq := l.cq(rnic.CQAttr{Channel: ch})
		waited := make(chan error)
		go func() {
			_, err := ch.Wait(context.Background())
			waited <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := ch.Close(); err != nil {
				t.Error(err)
			}
		}
		wantRefused(t, "wait", <-waited, rnic.ErrClosed)
		_, err := ch.Wait(t.Context())
		wantRefused(t, "wait", err, rnic.ErrClosed)
		fd, err := ch.FD()
		wantRefused(t, "descriptor", err, rnic.ErrClosed)
		if fd != -1 { // 0 is the standard input
			t.Errorf("the descriptor of a closed channel is %d", fd)
		}
		l.fire(p, cq) // still works for those who poll
		if got := ch.Poll(); got != nil {
			t.Errorf("CQ %d", got.Num())
		}
		var wcs [1]rnic.WC
		if cq.Poll(wcs[:]) != 1 {
			t.Error("no completion")
		}
	})
}

// Nobody is told of what has fired before either.
func TestClosedChannelForgetsWhatHasFired(t *testing.T) {
	l := newLab(t, rnic.Config{})
	ch := l.channel()
	l.fire(l.domain(), l.cq(rnic.CQAttr{Channel: ch}))
	if err := ch.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ch.Poll(); got != nil {
		t.Errorf("CQ %d", got.Num())
	}
}

// The descriptor belongs to the channel: Close tells a program that has closed it.
func TestChannelTellsThatItsDescriptorWasClosed(t *testing.T) {
	l := newLab(t, rnic.Config{})
	ch := l.channel()
	fd, err := ch.FD()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "close", ch.Close(), unix.EBADF)
}

// A closed queue fires no more, though it was armed.
func TestClosedQueueDoesNotFire(t *testing.T) {
	l := newLab(t, rnic.Config{})
	ch := l.channel()
	cq := l.cq(rnic.CQAttr{Channel: ch})
	if err := cq.Arm(rnic.NextCompletion); err != nil {
		t.Fatal(err)
	}
	if err := cq.Close(); err != nil {
		t.Fatal(err)
	}
	door.Fire(cq)
	if got := ch.Poll(); got != nil || len(cq.Fired()) > 0 {
		t.Error("it has fired")
	}
}

// With TellEach, a queue comes from its channel once for each time that it has fired.
// Fire is one, if it is armed.
func TestQueueThatTellsEachFiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, rnic.Config{})
		p, ch := l.domain(), l.channel()
		cq := l.cq(departingCQ(rnic.CQAttr{Channel: ch}, policy.NotifyEach))
		l.fire(p, cq)
		l.fire(p, cq)
		door.Fire(cq) // it is not armed
		if err := cq.Arm(rnic.NextSolicited); err != nil {
			t.Fatal(err)
		}
		door.Fire(cq)
		door.Fire(cq)
		for i := range 3 {
			if ch.Poll() != cq {
				t.Errorf("%d events; want 3", i)
			}
		}
		if ch.Poll() != nil {
			t.Error("4 events; want 3")
		}
	})
}
