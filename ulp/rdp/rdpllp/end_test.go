package rdpllp

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// After a message that is damaged, what follows is dropped until the peer's end: the connection is not given up before, so
// that a Terminate arrives.
func TestDiscardGoesOnBehindADamagedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := rdp.NewNetwork(1, rdp.Faults{Delay: time.Millisecond})
		l, err := on(n, Config{}).Listen(t.Context(), "192.0.2.1:7174")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		accepted := make(chan rnic.LLPConn, 1)
		go func() {
			defer close(accepted)
			a, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			r, err := a.Receive(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			c, err := r.Accept(t.Context(), rnic.Offer{})
			if err != nil {
				t.Error(err)
				return
			}
			accepted <- c
		}()

		carrier, err := n.Carrier(netip.MustParseAddrPort("192.0.2.2:1"))
		if err != nil {
			t.Fatal(err)
		}
		e, err := rdp.Open(t.Context(), rdp.Config{Carrier: carrier})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		peer, err := e.Dial(t.Context(), rdp.DialConfig{Host: netip.MustParseAddrPort("192.0.2.1:7174"), Port: llpwire.Port})
		if err != nil {
			t.Fatal(err)
		}
		send := func(b []byte) {
			t.Helper()
			if err := peer.Send(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		numbered := func(k llpwire.Kind, number uint32) []byte {
			b := make([]byte, llpwire.HeaderLen)
			llpwire.PutHeader(b, k, number)
			return llpwire.Seal(b)
		}
		send((&llpwire.Offer{}).Message(llpwire.Request))
		c, ok := <-accepted
		if !ok {
			t.Fatal("the request is not accepted")
		}
		damaged := numbered(llpwire.Segment, 0)
		damaged[len(damaged)-1] ^= 1
		send(damaged)
		place := func([]byte, uint64) error { return nil }
		var broken *mpa.Error
		if err := c.Receive(place); !errors.As(err, &broken) || broken.Code != mpa.CodeCRC {
			t.Fatalf("a damaged message is taken: %v", err)
		}

		discarded := make(chan error, 1)
		go func() { discarded <- c.Discard() }()
		synctest.Wait()
		c.Interrupt() // a program that polls
		synctest.Wait()
		send(numbered(llpwire.Segment, 2))
		send(numbered(llpwire.End, 3))
		synctest.Wait()
		time.Sleep(time.Second) // of the fake clock
		select {
		case err := <-discarded:
			t.Fatalf("it ends before segment 1 is there: %v", err)
		default:
		}
		send(numbered(llpwire.Segment, 1))
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		if err := <-discarded; err != nil {
			t.Errorf("the peer's end is %v", err)
		}
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			m, err := peer.Receive(ctx)
			cancel()
			if err != nil {
				t.Fatalf("no end comes: %v", err)
			}
			if k, _, _, err := llpwire.Parse(m.Data); err != nil || k == llpwire.End {
				break
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A connection that is closed while the end of its half waits for room sends all that was posted, and nothing twice.
func TestCloseBesideAnEndThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := on(rdp.NewNetwork(1, rdp.Faults{Delay: time.Millisecond}), Config{})
		listener, err := l.Listen(t.Context(), "192.0.2.1:7174")
		if err != nil {
			t.Fatal(err)
		}
		received := make(chan int, 1)
		go func() {
			n := 0
			defer func() { received <- n }()
			a, err := listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			r, err := a.Receive(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			c, err := r.Accept(t.Context(), rnic.Offer{})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second) // of the fake clock: the sender's window is full
			for err == nil {
				err = c.Receive(func([]byte, uint64) error { n++; return nil })
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("the peer's end is %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		dialed, err := l.Dial(t.Context(), "192.0.2.1:7174", rnic.Offer{})
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for done := true; done; {
			posted, err := dialed.Post([]byte{0xc1, 0x40}, [][]byte{make([]byte, 1000)}, false)
			if err != nil {
				t.Fatal(err)
			}
			if posted {
				sent++
			}
			if done, err = dialed.Flush(false); err != nil {
				t.Fatal(err)
			}
		}
		if err := dialed.CloseWrite(); err != nil {
			t.Error(err)
		}
		if err := dialed.Close(); err != nil {
			t.Error(err)
		}
		if got := <-received; got != sent {
			t.Errorf("%d of %d segments are received", got, sent)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
}
