package simnet

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
)

func TestDialReachesTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		l, err := n.Listen(t.Context(), "192.0.2.9:7174")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a, err := n.Dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if a.RemoteAddr().String() != "192.0.2.9:7174" || b.LocalAddr().String() != "192.0.2.9:7174" || a.LocalAddr().String() != b.RemoteAddr().String() {
			t.Errorf("%v to %v, %v to %v", a.LocalAddr(), a.RemoteAddr(), b.RemoteAddr(), b.LocalAddr())
		}
		go func() {
			_, _ = a.Write([]byte("hello"))
			_ = a.Close()
		}()
		if got, err := io.ReadAll(b); string(got) != "hello" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

func TestListenersHavePortsOfTheirOwn(t *testing.T) {
	var n Network
	l1, err1 := n.Listen(t.Context(), ":0")
	l2, err2 := n.Listen(t.Context(), "0.0.0.0:0")
	if err1 != nil || err2 != nil || l1.Addr().String() == l2.Addr().String() {
		t.Fatalf("%v, %v; %v, %v", l1, err1, l2, err2)
	}
	if ip := l2.Addr().(*net.TCPAddr).IP; ip.IsUnspecified() {
		t.Errorf("the address of a listener is %v", ip)
	}
	if _, err := n.Listen(t.Context(), l1.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listener at %v: %v", l1.Addr(), err)
	}
	if err := l1.Close(); err != nil {
		t.Error(err)
	}
	if _, err := n.Listen(t.Context(), l1.Addr().String()); err != nil {
		t.Errorf("listening again: %v", err)
	}
	for _, bad := range []string{"nowhere", "[::1]:port"} {
		if _, err := n.Listen(t.Context(), bad); err == nil {
			t.Errorf("listens at %q", bad)
		}
	}
}

func TestDialWithoutListenerIsRefused(t *testing.T) {
	var n Network
	if _, err := n.Dial(t.Context(), "192.0.2.2:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("no listener: %v", err)
	}
	if _, err := n.Dial(t.Context(), "nowhere"); err == nil {
		t.Error("dialled without a port")
	}
	l, err := n.Listen(t.Context(), ":7174")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_ = l.Close()
	if _, err := n.Dial(t.Context(), "192.0.2.2:7174"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("closed listener: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting: %v", err)
	}
}

func TestDialWaitsWhileTheListenersQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		l, _ := n.Listen(t.Context(), ":7174")
		var queued []net.Conn
		for range 128 {
			c, err := n.Dial(t.Context(), ":7174")
			if err != nil {
				t.Fatal(err)
			}
			queued = append(queued, c)
		}
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() {
			_, err := n.Dial(ctx, ":7174")
			errs <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		go func() {
			_, err := n.Dial(t.Context(), ":7174")
			errs <- err
		}()
		synctest.Wait()
		_ = l.Close()
		if err := <-errs; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("listener closed: %v", err)
		}
		for _, c := range queued {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("a stream that nobody will accept: %v", err)
			}
		}
	})
}

func TestListenerClosedDuringADialRefuses(t *testing.T) {
	for range 50 { // the listener's queue has room as well: what is chosen is left to chance
		var l net.Listener
		n := Network{Options: func(int) Options {
			_ = l.Close()
			return Options{}
		}}
		l, _ = n.Listen(t.Context(), ":7174")
		if c, err := n.Dial(t.Context(), ":7174"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dialled %v, %v", c, err)
		}
	}
}

func TestOptionsAreAskedForEachStream(t *testing.T) {
	var asked []int
	n := Network{Options: func(i int) Options {
		asked = append(asked, i)
		return Options{MSS: 1000 + i}
	}}
	l, _ := n.Listen(t.Context(), ":7174")
	defer l.Close()
	for i := range 3 {
		c, err := n.Dial(t.Context(), ":7174")
		if err != nil || c.(*Conn).MSS() != 1000+i {
			t.Errorf("stream %d: %+v, %v", i, c, err)
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked for %v", asked)
	}
}
