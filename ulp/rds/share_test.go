package rds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/ulp/rds/wire"
)

// both makes the transports of a node that listens for both at one port.
func both(t testing.TB, addr netip.Addr) []Transport {
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, 26385).String() }
	return []Transport{
		&TCP{Port: 26385},
		newIWARP(t, &IWARP{Address: at(addr), PeerAddress: at}),
	}
}

func openBoth(t testing.TB, addr netip.Addr) *Node {
	t.Helper()
	n, err := Open(t.Context(), Config{
		Addr: addr, Transports: both(t, addr),
		times: times{handshake: time.Hour, firstByte: time.Hour, indecision: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// Two nodes exchange messages over both transports, each of which listens at the same port.
func TestBothTransportsAtOnePort(t *testing.T) {
	leakcheck.Check(t)
	ctx := within(t)
	a, b := openBoth(t, hostileAddr), openBoth(t, victimAddr)
	for _, from := range []*Node{a, b} {
		to := b
		if from == b {
			to = a
		}
		s, d := bind(t, from, 0), bind(t, to, 0)
		for i := range 20 {
			want := fmt.Sprintf("message %d", i)
			if err := s.SendTo(ctx, []byte(want), d.Addr(), Via(i%2)); err != nil {
				t.Fatal(err)
			}
			msg, err := d.Receive(ctx)
			if err != nil || string(msg.Data) != want {
				t.Fatalf("%v, %v; want %q", msg, err, want)
			}
		}
		if err := s.Flush(ctx); err != nil {
			t.Error(err)
		}
	}
	carriers := map[int]bool{}
	b.mu.Lock()
	for p := range b.links {
		carriers[p.Conn().Key().Carrier] = true
	}
	b.mu.Unlock()
	if len(carriers) != 2 {
		t.Errorf("the node has connections of %d transports", len(carriers))
	}
}

// A port that somebody else has is told of by the names of both transports; and nothing is left.
func TestSharedPortThatIsTaken(t *testing.T) {
	leakcheck.Check(t)
	l := listenAt(t, netip.AddrPortFrom(victimAddr, 26385).String())
	if _, err := Open(t.Context(), Config{Addr: victimAddr, Transports: both(t, victimAddr)}); err == nil {
		t.Error("the port is taken twice")
	}
	_ = l.Close()
	openBoth(t, victimAddr)
}

// The first bytes may come one at a time, and look like those of the other transport for a
// while.
func TestFirstBytesOneAtATime(t *testing.T) {
	leakcheck.Check(t)
	ctx := within(t)
	n := openBoth(t, victimAddr)
	s := bind(t, n, 4000)
	dial := func() net.Conn {
		c, err := dialBytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		return c.(byteConn).Conn
	}
	slowly := func(c net.Conn, b []byte) {
		for i := range b {
			if _, err := c.Write(b[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A sequence number that begins like a request of MPA.
	slowly(dial(), segment(wire.Header{Sequence: 0x4d504120_4944205f, Len: 4, SourcePort: 5000, DestPort: 4000}, []byte("good")))
	if msg, err := s.Receive(ctx); err != nil || string(msg.Data) != "good" {
		t.Fatalf("%v, %v", msg, err)
	}
	v := wire.Private{Source: hostileAddr, Dest: victimAddr, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask}
	private, err := v.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dial()
	slowly(c, mpaRequest(private))
	reply := make([]byte, len(mpaRequest(private)))
	if _, err := io.ReadFull(c, reply); err != nil || string(reply[:16]) != "MPA ID Rep Frame" {
		t.Errorf("the reply is %q, %v", reply, err)
	}
}

// sorts runs f with a shared listener of a network in memory, on a fake clock.
func sorts(t *testing.T, f func(t *testing.T, s *sharedListener, dial func(first string) net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := &simnet.Network{}
		l, err := network.Listen(t.Context(), "192.0.2.2:1")
		if err != nil {
			t.Fatal(err)
		}
		s := newSharedListener(l)
		s.wg.Go(s.run)
		var conns []net.Conn
		f(t, s, func(first string) net.Conn {
			c, err := network.Dial(t.Context(), "192.0.2.2:1")
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			if _, err := c.Write([]byte(first)); err != nil {
				t.Fatal(err)
			}
			return c
		})
		if err := s.end(); err != nil {
			t.Error(err)
		}
		for _, c := range conns {
			_ = c.Close()
		}
	})
}

// accepted reports what a half accepts now, if anything, and how long ago it was dialed.
func accepted(t *testing.T, h *half) net.Conn {
	t.Helper()
	got := make(chan net.Conn, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case c := <-h.conns:
			got <- c
		case <-ctx.Done():
			close(got)
		}
	}()
	synctest.Wait()
	cancel()
	return <-got
}

func TestConnectionsAreSortedByTheirFirstBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		first string
		after time.Duration
		mpa   bool
		rds   bool
	}{
		"a request":                  {first: mpaKey + "\x10\x02\x00\x00", mpa: true},
		"no more than the key":       {first: mpaKey, mpa: true},
		"a header":                   {first: string(segment(wire.Header{}, nil)), rds: true},
		"one byte of a header":       {first: "\x00", rds: true},
		"nearly a request":           {first: "MPA ID Req Frams", rds: true},
		"a reply":                    {first: "MPA ID Rep Frame", rds: true},
		"nothing for a moment":       {after: firstByte - 1},
		"nothing":                    {after: firstByte, rds: true},
		"a part of the key":          {first: mpaKey[:9], after: firstByte},
		"a part of the key for ever": {first: mpaKey[:15], after: 2 * indecision},
	} {
		t.Run(name, func(t *testing.T) {
			sorts(t, func(t *testing.T, s *sharedListener, dial func(string) net.Conn) {
				dial(tt.first)
				time.Sleep(tt.after)
				synctest.Wait()
				rds := accepted(t, s.tcp)
				mpa := accepted(t, s.iwarp)
				if (rds != nil) != tt.rds || (mpa != nil) != tt.mpa {
					t.Fatalf("RDS over TCP: %v; iWARP: %v", rds != nil, mpa != nil)
				}
				for _, c := range []net.Conn{rds, mpa} {
					if c == nil || tt.first == "" {
						continue
					}
					b := make([]byte, len(tt.first))
					if _, err := io.ReadFull(c, b); err != nil || string(b) != tt.first {
						t.Errorf("the transport reads %q, %v", b, err)
					}
					_ = c.Close()
				}
			})
		})
	}
}

// A node that only knocks has said nothing.
func TestKnockIsOfRDSOverTCP(t *testing.T) {
	sorts(t, func(t *testing.T, s *sharedListener, dial func(string) net.Conn) {
		_ = dial("").Close()
		if c := accepted(t, s.tcp); c == nil {
			t.Error("nobody is told")
		} else {
			_ = c.Close()
		}
	})
}

// However many connections say nothing, or begin to ask and do not continue, one that says what
// it is comes through, and each ends.
func TestConnectionsThatAreNotSortedAreBounded(t *testing.T) {
	sorts(t, func(t *testing.T, s *sharedListener, dial func(string) net.Conn) {
		var slow []net.Conn
		for range 5 * maxUnsorted {
			slow = append(slow, dial(mpaKey[:3]))
			synctest.Wait()
			s.mu.Lock()
			n := len(s.unsorted)
			s.mu.Unlock()
			if n > maxUnsorted {
				t.Fatalf("%d connections are not sorted", n)
			}
		}
		dial(mpaKey)
		if c := accepted(t, s.iwarp); c == nil {
			t.Error("a request does not come through")
		} else {
			_ = c.Close()
		}
		time.Sleep(indecision)
		for i, c := range slow {
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("connection %d: %v", i, err)
			}
		}
	})
}

// A transport that does not accept keeps no connections.
func TestConnectionsThatNobodyAcceptsEnd(t *testing.T) {
	sorts(t, func(t *testing.T, s *sharedListener, dial func(string) net.Conn) {
		c := dial(mpaKey)
		begun := time.Now()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("something is read")
		}
		if waited := time.Since(begun); waited > indecision {
			t.Errorf("it takes %v", waited)
		}
		if err := s.iwarp.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.iwarp.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// At a socket, a connection that says nothing is handed on as well.
func TestSilentConnectionAtASocket(t *testing.T) {
	leakcheck.Check(t)
	l := listenAt(t, netip.AddrPortFrom(victimAddr, 0).String())
	s := newSharedListener(l)
	s.firstByte = time.Millisecond
	s.wg.Go(s.run)
	defer func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := s.tcp.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if _, err := c.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(got, b); err != nil || string(b) != "late" {
		t.Errorf("%q, %v; a deadline must not be left", b, err)
	}
}
