package rdp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/loopback"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/wire"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// twoOn returns two endpoints on carriers, which the test's end closes.
func twoOn(t *testing.T, a, b Carrier, c machine.Config) (*Endpoint, *Endpoint) {
	t.Helper()
	var es [2]*Endpoint
	for i, carrier := range []Carrier{a, b} {
		e, err := Open(t.Context(), Config{Carrier: carrier, Protocol: c})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		es[i] = e
	}
	return es[0], es[1]
}

// inMemory returns two endpoints on a network with faults.
func inMemory(t *testing.T, f Faults) (*Endpoint, *Endpoint, *Network) {
	t.Helper()
	return inMemoryWith(t, f, machine.Config{})
}

// inMemoryWith is inMemory with settings.
func inMemoryWith(t *testing.T, f Faults, c machine.Config) (*Endpoint, *Endpoint, *Network) {
	t.Helper()
	n := NewNetwork(1, f)
	var cs [2]Carrier
	for i := range cs {
		var err error
		if cs[i], err = n.Carrier(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)}), DefaultPort)); err != nil {
			t.Fatal(err)
		}
	}
	a, b := twoOn(t, cs[0], cs[1], c)
	return a, b, n
}

// carriers are those that the suite runs on.
var carriers = map[string]func(t *testing.T) (a, b Carrier){
	"udp4": func(t *testing.T) (a, b Carrier) { return onUDP(t, "127.0.0.1:0"), onUDP(t, "127.0.0.1:0") },
	"udp6": func(t *testing.T) (a, b Carrier) { return onUDP(t, "[::1]:0"), onUDP(t, "[::1]:0") },
	"ip": func(t *testing.T) (a, b Carrier) {
		net := loopback.Of(t)
		return onIP(t, net.Addr(1)), onIP(t, net.Addr(2))
	},
	"memory": func(t *testing.T) (a, b Carrier) {
		n := NewNetwork(1, Faults{})
		var err [2]error
		a, err[0] = n.Carrier(netip.MustParseAddrPort("[2001:db8::1]:1"))
		b, err[1] = n.Carrier(netip.MustParseAddrPort("[2001:db8::2]:1"))
		if err := errors.Join(err[:]...); err != nil {
			t.Fatal(err)
		}
		return a, b
	},
}

func onUDP(t *testing.T, addr string) Carrier {
	t.Helper()
	c, err := UDP(t.Context(), netip.MustParseAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func onIP(t *testing.T, addr netip.Addr) Carrier {
	t.Helper()
	c, err := RawIP(t.Context(), addr)
	if errors.Is(err, os.ErrPermission) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens a connection from a to b, where a listener is made for it.
func open(t *testing.T, a, b *Endpoint, version uint8, p Params) (*Conn, *Conn) {
	t.Helper()
	l, err := b.Listen(ListenConfig{Port: 77, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	from, err := a.Dial(t.Context(), DialConfig{Host: b.LocalAddr(), Port: 77, Version: version, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	to, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return from, to
}

// message is the i-th message of a test: its number, and bytes that follow from it.
func message(i, n int) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, n), uint32(i))
	for j := len(b); j < n; j++ {
		b = append(b, byte(i+j))
	}
	return b
}

// moves sends messages from one end to the other and checks that each arrives once, in order if the connection is
// sequenced.
func moves(t *testing.T, from, to *Conn, count, size int) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		for i := range count {
			if err := from.Send(t.Context(), message(i, size)); err != nil {
				sent <- err
				return
			}
		}
		sent <- from.Flush(t.Context())
	}()
	got := map[uint32]bool{}
	for i := range count {
		msg, err := to.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k := binary.BigEndian.Uint32(msg.Data)
		if !bytes.Equal(msg.Data, message(int(k), size)) || got[k] || to.Sequenced() && int(k) != i {
			t.Fatalf("message %d is number %d, %d bytes, seen before: %v", i, k, len(msg.Data), got[k])
		}
		got[k] = true
		to.Free(msg)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func TestMessagesMoveOverEachCarrier(t *testing.T) {
	for name, carrier := range carriers {
		for _, version := range []uint8{1, 2} {
			for _, sequenced := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, version %d, sequenced %v", name, version, sequenced), func(t *testing.T) {
					ca, cb := carrier(t)
					a, b := twoOn(t, ca, cb, machine.Config{})
					from, to := open(t, a, b, version, Params{Sequenced: sequenced})
					moves(t, from, to, 300, 1000)
					moves(t, to, from, 300, 5)
					if err := from.Close(); err != nil {
						t.Error(err)
					}
					if _, err := to.Receive(t.Context()); !errors.Is(err, machine.ErrReset) {
						t.Errorf("after the peer's Close: %v", err)
					}
					if _, err := from.Receive(t.Context()); !errors.Is(err, io.EOF) {
						t.Errorf("after Close: %v", err)
					}
				})
			}
		}
	}
}

func TestLargeSegmentsFitTheCarrier(t *testing.T) {
	for name, carrier := range carriers {
		t.Run(name, func(t *testing.T) {
			ca, cb := carrier(t)
			a, b := twoOn(t, ca, cb, machine.Config{})
			from, to := open(t, a, b, 2, Params{MaxSegment: 65535, Window: 16})
			room := from.Status().Room
			if room < 65_000 {
				t.Fatalf("a message has %d bytes at most", room)
			}
			moves(t, from, to, 50, room)
			if err := from.Send(t.Context(), make([]byte, room+1)); !errors.Is(err, machine.ErrTooLong) {
				t.Errorf("a message of one byte more: %v", err)
			}
		})
	}
}

func TestMessagesMoveThroughFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, Faults{Delay: 10 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.2, Duplicate: 0.1, Corrupt: 0.05})
		from, to := open(t, a, b, 2, Params{})
		moves(t, from, to, 1000, 100)
		if n.Sent() < 1000 {
			t.Errorf("%d segments", n.Sent())
		}
	})
}

// That nobody is where a segment of another connection went does not end an attempt to connect: the host may be there
// again, with the same port.
func TestDialOutlivesWhatIsSaidOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := inMemory(t, Faults{Delay: time.Second})
		l, err := b.Listen(ListenConfig{Port: 7})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		opened := make(chan error, 1)
		go func() {
			c, err := a.Dial(t.Context(), DialConfig{Host: b.LocalAddr(), Port: 7})
			if err == nil {
				err = c.Close()
			}
			opened <- err
		}()
		synctest.Wait()
		for _, h := range []wire.Header{
			{Version: 2, Flags: wire.SYN, Source: 9999, Dest: 7},
			{Version: 2, Flags: wire.RST, Source: 9999, Dest: 7},
		} {
			a.unreachable(b.LocalAddr(), h.AppendTo(nil, nil, nil))
		}
		a.unreachable(b.LocalAddr(), nil)
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
}

func TestDialEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, n := inMemory(t, Faults{})
		_, err := a.Dial(t.Context(), DialConfig{Host: b.LocalAddr(), Port: 7})
		if !errors.Is(err, machine.ErrRefused) {
			t.Errorf("where nobody listens: %v", err)
		}
		n.SetFaults(Faults{Loss: 1})
		if _, err = a.Dial(t.Context(), DialConfig{Host: b.LocalAddr(), Port: 7}); !errors.Is(err, machine.ErrUnreachable) {
			t.Errorf("where nobody answers: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err = a.Dial(ctx, DialConfig{Host: b.LocalAddr(), Port: 7}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("until the context ends: %v", err)
		}
		if n := a.Conns(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Who waits goes on when the connection, the listener or the endpoint is closed.
func TestWaitsEnd(t *testing.T) {
	for name, close := range map[string]func(c *Conn, l *Listener, e *Endpoint) error{
		"connection": func(c *Conn, l *Listener, _ *Endpoint) error { return errors.Join(c.Close(), l.Close()) },
		"endpoint":   func(_ *Conn, _ *Listener, e *Endpoint) error { return e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, n := inMemory(t, Faults{})
				from, _ := open(t, a, b, 2, Params{Window: 2})
				l, err := a.Listen(ListenConfig{Port: 78})
				if err != nil {
					t.Fatal(err)
				}
				n.SetFaults(Faults{Loss: 1})
				ends := make(chan error, 4)
				go func() {
					_, err := from.Receive(t.Context())
					ends <- err
				}()
				go func() {
					var err error
					for err == nil {
						err = from.Send(t.Context(), []byte("x"))
					}
					ends <- err
				}()
				synctest.Wait() // until what was sent fills the window: there is something to flush
				go func() { ends <- from.Flush(t.Context()) }()
				go func() {
					_, err := l.Accept(t.Context())
					ends <- err
				}()
				synctest.Wait()
				if len(ends) != 0 {
					t.Fatalf("%d do not wait: %v", len(ends), <-ends)
				}
				if err := close(from, l, a); err != nil {
					t.Error(err)
				}
				for range 4 {
					if err := <-ends; err == nil {
						t.Error("a wait ends without an error")
					}
				}
				if _, err := l.Accept(t.Context()); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Accept after that: %v", err)
				}
			})
		})
	}
}

// A connection can be watched for any change.
func TestStatusIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := inMemory(t, Faults{Delay: time.Millisecond})
		from, to := open(t, a, b, 2, Params{})
		go func() {
			for i := range 3 {
				if err := from.Send(t.Context(), message(i, 10)); err != nil {
					t.Error(err)
				}
			}
		}()
		if err := to.Wait(t.Context(), func(s Status) bool { return s.Queued == 3 }); err != nil {
			t.Fatal(err)
		}
		if err := from.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := from.Status(); s.Unacknowledged != 0 || s.State != machine.Open {
			t.Errorf("%+v", s)
		}
		go from.Close() // its error is not the test's
		if err := to.Wait(t.Context(), func(s Status) bool { return s.State == machine.CloseWait }); err != nil {
			t.Fatal(err)
		}
		for range 3 { // what was accepted can still be read
			if _, err := to.Receive(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Segments fit a packet on the path: on loopback they are large. A limit that is given holds if it is lower.
func TestSegmentsFitThePath(t *testing.T) {
	a, b := twoOn(t, onUDP(t, "127.0.0.1:0"), onUDP(t, "127.0.0.1:0"), machine.Config{})
	p := Params{MaxSegment: 65535}
	from, to := open(t, a, b, 2, p)
	want := udpLargest + ipHeader
	if mtu := pathMTU(b.LocalAddr()); mtu > 0 {
		want = min(want, mtu-8)
	}
	for _, c := range []*Conn{from, to} {
		if got := c.Status().SendMax; got != want {
			t.Errorf("segments have up to %d bytes; want %d", got, want)
		}
	}
	p.SendLimit = 1000
	l, err := b.Listen(ListenConfig{Port: 78, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	from, err = a.Dial(t.Context(), DialConfig{Host: b.LocalAddr(), Port: 78, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	if to, err = l.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Conn{from, to} {
		if got := c.Status().SendMax; got != 1000 {
			t.Errorf("segments have up to %d bytes; want 1000", got)
		}
	}
	// What the system knows of another path is believed for a while.
	e := &Endpoint{carrier: a.carrier, most: a.most, paths: map[netip.Addr]path{}}
	host := netip.MustParseAddrPort("127.0.0.9:1")
	if got := e.limitFor(host); got != want || e.paths[host.Addr()].limit != want {
		t.Errorf("%d, %v", got, e.paths)
	}
	e.paths[host.Addr()] = path{1472 + ipHeader, time.Now().Add(time.Minute)}
	if got := e.limitFor(host); got != 1472+ipHeader {
		t.Errorf("%d bytes; want those that are known", got)
	}
}
