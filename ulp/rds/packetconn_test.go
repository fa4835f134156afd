package rds

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inNode runs a test on a fake clock, with a node that has no connections.
func inNode(t *testing.T, test func(t *testing.T, n *Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, err := Open(t.Context(), Config{Addr: victimAddr, Transports: []Transport{&TCP{Listener: noListener{make(chan struct{})}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		test(t, n)
	})
}

// noListener accepts nothing.
type noListener struct{ closed chan struct{} }

func (l noListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l noListener) Close() error {
	close(l.closed)
	return nil
}

func (noListener) Addr() net.Addr { return &net.TCPAddr{} }

func wantTimeout(t *testing.T, what string, err error) {
	t.Helper()
	var ne net.Error
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("%s: %v; want a time-out", what, err)
	}
}

func TestPacketConnDeadlines(t *testing.T) {
	inNode(t, func(t *testing.T, n *Node) {
		var c net.PacketConn = bind(t, n, 4000)
		read := func() error {
			_, _, err := c.ReadFrom(make([]byte, 10))
			return err
		}
		begun := time.Now()
		_ = c.SetReadDeadline(begun.Add(time.Second))
		wantTimeout(t, "a read", read())
		if waited := time.Since(begun); waited != time.Second {
			t.Errorf("it took %v", waited)
		}
		wantTimeout(t, "a read after the deadline", read())
		if _, err := c.WriteTo([]byte("x"), c.LocalAddr()); err != nil {
			t.Errorf("the deadline is that of reads alone: %v", err)
		}
		wantTimeout(t, "a read after the deadline, with a message", read())

		_ = c.SetReadDeadline(time.Time{})
		if err := read(); err != nil {
			t.Errorf("without deadline: %v", err)
		}

		// A deadline that is moved counts for calls that wait already.
		done := make(chan error, 1)
		begun = time.Now()
		_ = c.SetReadDeadline(begun.Add(time.Second))
		go func() { done <- read() }()
		synctest.Wait()
		_ = c.SetReadDeadline(begun.Add(time.Minute))
		wantTimeout(t, "a read whose deadline was moved", <-done)
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("it took %v", waited)
		}
		_ = c.SetReadDeadline(time.Time{})
		go func() { done <- read() }()
		synctest.Wait()
		_ = c.SetReadDeadline(time.Unix(1, 0))
		wantTimeout(t, "a read that waited for ever", <-done)

		_ = c.SetWriteDeadline(time.Unix(1, 0))
		_, err := c.WriteTo([]byte("x"), c.LocalAddr())
		wantTimeout(t, "a write", err)
		_ = c.SetDeadline(time.Time{})
		if _, err := c.WriteTo([]byte("x"), c.LocalAddr()); err != nil || read() != nil {
			t.Errorf("without deadlines: %v", err)
		}
	})
}

// A write waits while the destination is congested.
func TestPacketConnWriteWaits(t *testing.T) {
	inNode(t, func(t *testing.T, n *Node) {
		c := bind(t, n, 4000)
		d, err := n.Bind(4001, ReceiveBuffer(1000))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.WriteTo(make([]byte, 1000), d.Addr()); err != nil {
			t.Fatal(err)
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = c.WriteTo([]byte("more"), d.Addr())
		wantTimeout(t, "a write to a congested port", err)
		_ = c.SetWriteDeadline(time.Time{})
		done := make(chan error, 1)
		go func() {
			_, err := c.WriteTo([]byte("more"), d.Addr())
			done <- err
		}()
		synctest.Wait()
		if _, err := d.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if msg, err := d.Receive(t.Context()); err != nil || string(msg.Data) != "more" {
			t.Errorf("%v, %v", msg, err)
		}
	})
}

func TestPacketConnShortBuffer(t *testing.T) {
	inNode(t, func(t *testing.T, n *Node) {
		c := bind(t, n, 4000)
		for range 2 {
			if _, err := c.WriteTo([]byte("message"), c.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 4)
		if k, from, err := c.ReadFrom(b); k != 4 || from != net.Addr(c.Addr()) || err != nil || string(b) != "mess" {
			t.Errorf("ReadFrom: %d, %v, %v", k, from, err)
		}
		if k, from, err := c.RecvFrom(t.Context(), b); k != 4 || from != c.Addr() || !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("RecvFrom: %d, %v, %v", k, from, err)
		}
		if _, err := c.TryReceive(); !errors.Is(err, ErrEmpty) {
			t.Errorf("the rest of a message is lost: %v", err)
		}
	})
}

func TestPacketConnAddresses(t *testing.T) {
	inNode(t, func(t *testing.T, n *Node) {
		c := bind(t, n, 4000)
		for name, to := range map[string]net.Addr{
			"of another network": &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, "nil": nil, "of nobody": Addr{}, "of a group": Addr{Host: netip.MustParseAddr("224.0.0.1"), Port: 1},
			"of the other family": Addr{Host: netip.MustParseAddr("::1"), Port: 1},
		} {
			var op *net.OpError
			if k, err := c.WriteTo([]byte("x"), to); k != 0 || !errors.As(err, &op) {
				t.Errorf("to an address %s: %d, %v", name, k, err)
			}
		}
		if c.LocalAddr().Network() != "rds" || c.LocalAddr().String() != c.Addr().String() {
			t.Errorf("its own address is %v", c.LocalAddr())
		}
	})
}

// Close ends calls that wait, and those that come later, as package net has it.
func TestPacketConnClose(t *testing.T) {
	for name, end := range map[string]func(n *Node, s *Socket) error{
		"the socket": func(_ *Node, s *Socket) error { return s.Close() },
		"the node":   func(n *Node, _ *Socket) error { return n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inNode(t, func(t *testing.T, n *Node) {
				c := bind(t, n, 4000)
				full, err := n.Bind(4001, ReceiveBuffer(1))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.WriteTo([]byte("xx"), full.Addr()); err != nil {
					t.Fatal(err)
				}
				calls := map[string]func() error{
					"ReadFrom": func() error { _, _, err := c.ReadFrom(nil); return err },
					"WriteTo":  func() error { _, err := c.WriteTo([]byte("x"), full.Addr()); return err },
					"Receive":  func() error { _, err := c.Receive(context.Background()); return err },
					"SendTo":   func() error { return c.SendTo(context.Background(), []byte("x"), full.Addr()) },
				}
				var wg sync.WaitGroup
				check := func(what string, err error) {
					if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrNodeClosed) {
						t.Errorf("%s: %v", what, err)
					}
					if (what == "ReadFrom" || what == "WriteTo") && !errors.Is(err, net.ErrClosed) {
						t.Errorf("%s: %v; want net.ErrClosed", what, err)
					}
				}
				for what, call := range calls {
					wg.Go(func() { check(what, call()) })
				}
				synctest.Wait()
				if err := end(n, c); err != nil {
					t.Error(err)
				}
				wg.Wait()
				for what, call := range calls {
					check(what, call())
				}
				if err := c.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
					t.Errorf("SetDeadline: %v; want net.ErrClosed", err)
				}
				if err := end(n, c); err != nil {
					t.Errorf("twice: %v", err)
				}
			})
		})
	}
}

// Contexts that have ended, and none, end calls that could continue.
func TestContexts(t *testing.T) {
	inNode(t, func(t *testing.T, n *Node) {
		c := bind(t, n, 4000)
		why := errors.New("enough")
		over, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		if err := c.SendTo(t.Context(), []byte("kept"), c.Addr()); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			ctx  context.Context
			want error
		}{{over, why}, {nil, ErrNoContext}} {
			if err := c.SendTo(tt.ctx, []byte("x"), c.Addr()); !errors.Is(err, tt.want) {
				t.Errorf("SendTo: %v; want %v", err, tt.want)
			}
			if _, err := c.Receive(tt.ctx); !errors.Is(err, tt.want) {
				t.Errorf("Receive: %v; want %v", err, tt.want)
			}
			if _, _, err := c.RecvFrom(tt.ctx, nil); !errors.Is(err, tt.want) {
				t.Errorf("RecvFrom: %v; want %v", err, tt.want)
			}
			if err := c.Flush(tt.ctx); !errors.Is(err, tt.want) {
				t.Errorf("Flush: %v; want %v", err, tt.want)
			}
		}
		if msg, err := c.Receive(t.Context()); err != nil || string(msg.Data) != "kept" {
			t.Errorf("%v, %v", msg, err)
		}
		if _, err := c.TryReceive(); !errors.Is(err, ErrEmpty) {
			t.Errorf("a call whose context had ended has sent: %v", err)
		}
		ctx, cancelWait := context.WithTimeout(t.Context(), time.Second)
		defer cancelWait()
		if _, err := c.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that ends meanwhile: %v", err)
		}
	})
}
