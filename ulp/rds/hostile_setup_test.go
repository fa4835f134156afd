package rds

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// Private data that no peer sends are refused, and reported under the address that the
// request comes from.
func TestPrivateDataThatLies(t *testing.T) {
	for name, lie := range map[string]func(v *wire.Private){
		"an unknown version":       func(v *wire.Private) { v.Major = 9 },
		"no minor version":         func(v *wire.Private) { v.Major, v.MinorMask = 4, 0 },
		"another peer's address":   func(v *wire.Private) { v.Source = goodAddr },
		"the node's own address":   func(v *wire.Private) { v.Source = victimAddr },
		"for another node":         func(v *wire.Private) { v.Dest = goodAddr },
		"the address of all hosts": func(v *wire.Private) { v.Source = netip.MustParseAddr("224.0.0.1") },
		"no address":               func(v *wire.Private) { v.Dest = netip.MustParseAddr("0.0.0.0") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "iwarp", nil)
			if _, err := s.tryDial(lie); err == nil {
				t.Error("the connection is accepted")
			}
			if v := s.events.violation(s.ctx, t, hostileAddr); v.Rule != machine.RuleSetUp {
				t.Errorf("the rule is %q; want %q", v.Rule, machine.RuleSetUp)
			}
			s.echoes()
			s.dial().message("good") // the host may still be a peer
			s.wantOnly("good")
		})
	}
	t.Run("too few", func(t *testing.T) {
		s := newScene(t, "iwarp", nil)
		for n := range wire.PrivateLen4 - 4 {
			if c, err := dialPrivate(s.ctx, s.device, make([]byte, n)); err == nil {
				c.close()
				t.Errorf("%d bytes are accepted", n)
			}
			if v := s.events.violation(s.ctx, t, hostileAddr); v.Rule != machine.RuleSetUp {
				t.Errorf("%d bytes break the rule %q", n, v.Rule)
			}
		}
		s.echoes()
	})
}

// A generation that the peer had before its last restart ends the connection.
func TestPeerWithAnOlderGeneration(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		for _, generation := range []uint32{7, 8} {
			p := s.dial()
			p.hello(generation)
			p.message("of a life") // else the peer is forgotten
			s.wantOnly("of a life")
			p.conn.close()
		}
		p := s.dial()
		p.probe(wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: 7})
		if v := s.events.violation(s.ctx, t, hostileAddr); v.Rule != machine.RuleGeneration {
			t.Errorf("the node says that %q is broken", v.Rule)
		}
		p.wantReset()
		if s.over == "iwarp" {
			p, err := s.tryDial(func(v *wire.Private) { v.Generation = 7 })
			if err != nil {
				t.Fatal(err)
			}
			if v := s.events.violation(s.ctx, t, hostileAddr); v.Rule != machine.RuleGeneration {
				t.Errorf("with an older generation in private data, %q is broken", v.Rule)
			}
			p.wantReset()
		}
		p = s.dial()
		p.hello(8)
		p.message("as before")
		s.wantOnly("as before")
		s.echoes()
	})
}

// Addresses that are not allowed can't connect, and nobody sends to them.
func TestPeersThatAreNotAllowed(t *testing.T) {
	inScene(t, func(c *Config) { c.Allow = []netip.Prefix{netip.PrefixFrom(goodAddr, 32)} }, func(t *testing.T, s *scene) {
		for range 10 {
			p, err := s.tryDial(nil)
			if err == nil { // over TCP, it is the system that accepts
				p.says(p.data(6), []byte("nobody"))
				p.wantReset()
			}
			e := s.events.wait(s.ctx, t, "refused", func(e *Event) bool { return e.Kind == Refused && e.Peer == hostileAddr })
			if !errors.Is(e.Err, ErrNotAllowed) {
				t.Errorf("refused: %v", e.Err)
			}
		}
		s.echoes()
		s.wantOnly()
		if err := s.socket.SendTo(s.ctx, nil, Addr{Host: hostileAddr, Port: 1}); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("to an address that is not allowed: %v", err)
		}
		s.victim.mu.Lock()
		defer s.victim.mu.Unlock()
		for p := range s.victim.links {
			if p.Conn().Key().Peer == hostileAddr {
				t.Error("there is a connection")
			}
		}
	})
}

// A peer that connects a thousand times has one connection; and what it said over each is
// delivered.
func TestPeerThatConnectsAThousandTimes(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		n := 1000
		if s.over == "iwarp" || testing.Short() {
			n = 200 // each takes several round trips
		}
		var last *hostilePeer
		for i := range n {
			p := s.dial()
			p.next = uint64(i)
			p.message("again")
			s.wantOnly("again")
			last = p
			if i%2 == 0 {
				p.conn.close()
			}
		}
		s.echoes()
		s.victim.mu.Lock()
		links := len(s.victim.links)
		s.victim.mu.Unlock()
		if links > 2 {
			t.Errorf("the node has %d connections, with two peers", links)
		}
		last.message("and again")
		s.wantOnly("and again")
	})
}

// Connections on which not even a request comes do not keep others out.
func TestManyConnectionsThatSayNothing(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		port := map[string]uint16{"tcp": 26385, "iwarp": RDMAPort4}[s.over]
		for i := range 300 {
			from := ownAddr(byte(2 + i%200)) // lower than the node's
			d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
			c, err := d.DialContext(s.ctx, "tcp", netip.AddrPortFrom(victimAddr, port).String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		s.echoes()
		s.dial().message("good")
		s.wantOnly("good")
	})
}

// Over TCP, a host that connects and says nothing is a peer's place and no more, and that only for a
// while.
func TestHalfOpenConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &simnet.Network{}
		l, err := network.Listen(t.Context(), "192.0.2.2:1")
		if err != nil {
			t.Fatal(err)
		}
		events := newEventLog()
		// Each connection is of another host, whose address is lower than the node's.
		var mu sync.Mutex
		hosts := byte(0)
		n, err := Open(t.Context(), Config{
			Addr: netip.MustParseAddr("10.9.0.1"), Events: events.add, MaxPeers: 8,
			Transports: []Transport{&TCP{Listener: l, PeerOf: func(net.Addr) (netip.Addr, error) {
				mu.Lock()
				defer mu.Unlock()
				hosts++
				return netip.AddrFrom4([4]byte{10, 1, 0, hosts}), nil
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		var conns []net.Conn
		dial := func() net.Conn {
			c, err := network.Dial(t.Context(), "192.0.2.2:1")
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			return c
		}
		for range 8 {
			dial()
		}
		synctest.Wait()                                  // requests of different peers are decided about at once
		_, _ = dial().Write(segment(wire.Header{}, nil)) // there is no place for it
		synctest.Wait()
		if e := events.wait(t.Context(), t, "refused", func(e *Event) bool { return e.Kind == Refused }); !errors.Is(e.Err, machine.ErrTooMany) {
			t.Errorf("the ninth host is refused: %v", e.Err)
		}
		_, _ = conns[3].Write(segment(wire.Header{}, nil)[:40]) // half a header
		_, _ = conns[4].Write(segment(wire.Header{}, nil))      // this one speaks RDS
		time.Sleep(12 * time.Second)
		synctest.Wait()
		for i, c := range conns {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			buf := make([]byte, 1<<16)
			var err error
			for err == nil {
				_, err = c.Read(buf)
			}
			var timeout net.Error
			if open := errors.As(err, &timeout) && timeout.Timeout(); open != (i == 4) {
				t.Errorf("connection %d after 12 s: %v", i, err)
			}
		}
		// There is room for others, and the one that spoke may be silent.
		for range 7 {
			_, _ = dial().Write(segment(wire.Header{}, nil))
		}
		synctest.Wait()
		n.mu.Lock()
		if n.m.Counters().Violations != 0 {
			t.Error("saying nothing breaks no rule")
		}
		if len(n.links) != 8 {
			t.Errorf("the node has %d connections; want 8", len(n.links))
		}
		n.mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
}

// mpaRequest is a request of MPA as Linux sends it for RDS: revision 2, peer-to-peer, with IRD
// and ORD in front of the private data (RFC 6581 §4).
func mpaRequest(private []byte) []byte {
	b := append([]byte("MPA ID Req Frame"), 0x10, 2, 0, byte(4+len(private)))
	b = append(b, 0x80, 0x80, 0xc0, 0x80)
	return append(b, private...)
}

// A peer that asks for connections again and again, and completes none, has one that waits:
// the others end at once, with their memory.
func TestRequestsThatAreNotCompleted(t *testing.T) {
	v := wire.Private{Source: simHostile, Dest: simNode, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask}
	private, err := v.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.Source = simGood
	goodPrivate, err := v.AppendTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	inSandbox(t, (*sandbox).iwarp, func(s *sandbox) hostileConn { return s.verbs(goodPrivate) }, func(s *sandbox) {
		begun := time.Now()
		var last net.Conn
		for range 50 {
			c, err := s.open(s.t.Context())
			if err != nil {
				s.t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(mpaRequest(private)); err != nil {
				s.t.Fatal(err)
			}
			// The reply; its sender waits for the first FPDU now.
			if _, err := io.ReadFull(c, make([]byte, len(mpaRequest(private)))); err != nil {
				s.t.Fatal(err)
			}
			if last != nil {
				if _, err := last.Read(make([]byte, 1)); err == nil {
					s.t.Error("the connection before goes on")
				}
			}
			last = c
		}
		if waited := time.Since(begun); waited > 0 {
			s.t.Errorf("it took %v until the connections before had ended", waited)
		}
	})
}

// The end of a connection to a peer that acknowledges in headers is noticed while the node waits for
// memory for what comes over it, and though nobody reads what has come: the peer sends the rest again.
func TestEndWhileTheNodeWaitsForMemory(t *testing.T) {
	inSandbox(t, (*sandbox).tcp, (*sandbox).bytes, func(s *sandbox) {
		stop := s.endInWait(true)
		defer stop()
		for i := range 20 {
			if time.Sleep(time.Second); s.links() == 0 {
				break
			}
			if i == 19 {
				s.t.Error("the connection is still there")
			}
		}
		s.wantMessages(50_000)
	})
}

// What a peer has sent that knows TCP's acknowledgements only, as Linux does, is not lost if the connection
// ends while the node waits for memory for it: TCP has acknowledged it, and the peer does not send it again.
func TestNothingIsLostAtTheEndWhileTheNodeWaitsForMemory(t *testing.T) {
	inSandbox(t, (*sandbox).tcp, (*sandbox).bytes, func(s *sandbox) {
		stop := s.endInWait(false)
		defer stop()
		time.Sleep(time.Minute)
		s.wantMessages(50_000, 50_001)
		synctest.Wait()
		if n := s.links(); n != 0 {
			s.t.Errorf("%d connections are still there", n)
		}
	})
}

// endInWait has a peer send two messages, of which the node takes the first only for want of
// memory, and end the connection. The peer is urnic, or does as Linux.
func (s *sandbox) endInWait(urnic bool) (stop func()) {
	c := s.bytes()
	stop = s.bound(c)
	first, next := wire.Header{}, uint64(1)
	if urnic {
		x := wire.Extensions{Has: 1<<wire.ExtGeneration | 1<<wire.ExtUrnic, Generation: 7}
		raw, err := x.Encode()
		if err != nil {
			s.t.Fatal(err)
		}
		_ = c.write(segment(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: raw}, nil))
		first, next = wire.Header{Sequence: 2, DestPort: wire.ProbePort, Extensions: raw}, 3 // answers the node's probe
	}
	_ = c.write(segment(first, nil))
	to := Addr{Host: simHostile, Port: 1}
	_ = s.socket.SendTo(s.t.Context(), []byte("begins a handshake"), to)
	for seq := range 2 { // the second one waits
		n := 50_000 + seq
		_ = c.write(segment(wire.Header{Sequence: next + uint64(seq), Len: uint32(n), SourcePort: 5000, DestPort: 4000}, make([]byte, n)))
	}
	synctest.Wait()
	c.close()
	for range 3 { // what the node sends now finds that out
		_ = s.socket.SendTo(s.t.Context(), []byte("more"), to)
		time.Sleep(time.Second)
	}
	return stop
}

// links returns how many connections the node has.
func (s *sandbox) links() int {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return len(s.node.links)
}

// wantMessages checks how long the messages are that have come.
func (s *sandbox) wantMessages(sizes ...int) {
	s.t.Helper()
	var got []int
	for {
		synctest.Wait()
		msg, err := s.socket.TryReceive()
		if err != nil {
			break
		}
		got = append(got, len(msg.Data))
	}
	if !slices.Equal(got, sizes) {
		s.t.Errorf("messages of %d bytes have come, and not of %d", got, sizes)
	}
}

// A node that dials in vain stops when its peer has connected.
func TestDialEndsWhenThePeerConnects(t *testing.T) {
	var dialled, ended time.Time
	transport := func(s *sandbox) Transport {
		tcp := s.tcp().(*TCP)
		tcp.Dial = func(ctx context.Context, _ netip.Addr, _ int) (net.Conn, error) {
			dialled = time.Now()
			<-ctx.Done()
			ended = time.Now()
			return nil, ctx.Err()
		}
		return tcp
	}
	inSandbox(t, transport, (*sandbox).bytes, func(s *sandbox) {
		if err := s.socket.SendTo(s.t.Context(), []byte("x"), Addr{Host: simHostile, Port: 1}); err != nil {
			s.t.Fatal(err)
		}
		synctest.Wait()
		c := s.bytes()
		defer s.bound(c)()
		_ = c.write(segment(wire.Header{}, nil))
		synctest.Wait()
		if dialled.IsZero() || !ended.Equal(dialled) {
			s.t.Errorf("it dials at %v, and stops at %v", dialled, ended)
		}
	})
}
