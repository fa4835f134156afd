package rds

import (
	"errors"
	"net/netip"
	"testing"

	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// held returns how much memory the node has for messages that nobody has read.
func (s *scene) held() int {
	s.victim.mu.Lock()
	defer s.victim.mu.Unlock()
	return s.victim.m.Held()
}

// A peer that sends the longest messages to ports that nobody reads fills its share of the
// memory, and no more. Then the node does not read from it any more, until somebody does.
func TestPeerThatFillsPortsNobodyReads(t *testing.T) {
	const share = 4 << 20
	inScene(t, func(c *Config) { c.PeerMemory = share }, func(t *testing.T, s *scene) {
		const ports, each = 8, 4
		var sockets []*Socket
		for i := range uint16(ports) {
			sockets = append(sockets, bind(t, s.victim, 7000+i))
		}
		p := s.dial()
		sent := make(chan error, 1)
		go func() {
			for range each {
				for i := range uint16(ports) {
					h := p.data(wire.MaxMessage)
					h.DestPort = 7000 + i
					if err := p.send(h, make([]byte, wire.MaxMessage)); err != nil {
						sent <- err
						return
					}
				}
			}
			sent <- nil
		}()
		p.congested(7000)
		s.echoes()
		if held := s.held(); held > share+wire.MaxMessage {
			t.Errorf("%d bytes are held for a peer whose share is %d", held, share)
		}
		// Others are read as if nothing were.
		got := 0
		for range each {
			for _, socket := range sockets {
				msg, err := socket.Receive(s.ctx)
				if err != nil || len(msg.Data) != wire.MaxMessage {
					t.Fatalf("message %d: %v", got, err)
				}
				got++
				if held := s.held(); held > share+wire.MaxMessage {
					t.Errorf("%d bytes are held", held)
				}
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		s.echoes()
	})
}

// A node whose connection is ended while it waits for memory does not go on waiting: it can be
// closed, and the peer can connect again.
func TestConnectionEndsWhileItWaitsForMemory(t *testing.T) {
	inScene(t, func(c *Config) { c.PeerMemory = 1 << 20 }, func(t *testing.T, s *scene) {
		p := s.dial()
		if err := p.send(p.data(wire.MaxMessage-1), make([]byte, wire.MaxMessage-1)); err != nil {
			t.Fatal(err)
		}
		p.congested(4000)
		p.says(p.data(wire.MaxMessage-1), make([]byte, wire.FragmentLen))
		again := s.dial() // the old connection is ended
		again.next = 2
		msg, err := s.socket.Receive(s.ctx)
		if err != nil || len(msg.Data) != wire.MaxMessage-1 {
			t.Fatal(err)
		}
		again.message("later")
		s.wantOnly("later")
		s.echoes()
	})
}

// A flood of pings is answered as far as the peer takes the answers. Each counts.
func TestPeerThatFloodsPings(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		p := s.dial()
		const pings = 50_000
		flood := make(chan error, 1)
		go func() {
			for range pings {
				p.next++
				h := wire.Header{Sequence: p.next, SourcePort: 5000}
				if err := p.send(h, nil); err != nil {
					flood <- err
					return
				}
			}
			flood <- nil
		}()
		s.echoes()
		if err := <-flood; err != nil {
			t.Fatal(err)
		}
		p.message("after the flood")
		s.wantOnly("after the flood")
		s.echoes()
		s.victim.mu.Lock()
		c := s.victim.m.Counters()
		s.victim.mu.Unlock()
		if c.Pings < pings || c.Violations != 0 {
			t.Errorf("%d pings were counted, and %d violations", c.Pings, c.Violations)
		}
	})
}

// A flood of maps wakes those who wait, and does nothing else.
func TestPeerThatFloodsMaps(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		p := s.dial()
		var full, free wire.CongestionMap
		for i := range full {
			full[i] = 0xff
		}
		h := wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}
		maps := 2000
		for i := range maps {
			m := &free
			if i%2 == 0 {
				m = &full
			}
			if err := p.send(h, m[:]); err != nil {
				t.Fatal(err)
			}
		}
		p.message("after the flood")
		s.wantOnly("after the flood")
		if err := p.send(h, full[:]); err != nil {
			t.Fatal(err)
		}
		p.message("all ports are congested")
		s.wantOnly("all ports are congested")
		if err := s.socket.SendTo(s.ctx, nil, Addr{Host: hostileAddr, Port: 5000}, NoWait()); !errors.Is(err, ErrCongested) {
			t.Errorf("to a congested port: %v", err)
		}
		s.echoes()
	})
}

// A peer that stalls in the middle of a message keeps nobody else.
func TestPeerThatStallsInMidMessage(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		p := s.dial()
		p.message("good")
		h := p.data(wire.MaxMessage)
		p.says(h, make([]byte, wire.FragmentLen))
		s.wantOnly("good")
		s.echoes()
		if held := s.held(); held > 2*wire.MaxMessage {
			t.Errorf("%d bytes are held", held)
		}
		p.conn.close()
		s.events.wait(s.ctx, t, "disconnected", func(e *Event) bool { return e.Kind == Disconnected && e.Peer == hostileAddr })
		p = s.dial()
		h.Flags = wire.Retransmitted
		p.next = h.Sequence
		if err := p.send(h, make([]byte, wire.MaxMessage)); err != nil {
			t.Fatal(err)
		}
		if msg, err := s.socket.Receive(s.ctx); err != nil || len(msg.Data) != wire.MaxMessage {
			t.Errorf("the message that was sent again: %v", err)
		}
		s.echoes()
	})
}

// A peer that does not read keeps what is for it, and nobody else.
func TestPeerThatDoesNotRead(t *testing.T) {
	s := newScene(t, "tcp", nil)
	c, err := dialBytes(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.write(segment(wire.Header{}, nil)); err != nil {
		t.Fatal(err)
	}
	to := Addr{Host: hostileAddr, Port: 5000}
	n := 0
	for err = nil; err == nil; n++ {
		err = s.socket.SendTo(s.ctx, make([]byte, 100_000), to, NoWait())
	}
	if !errors.Is(err, ErrBufferFull) || n < 10 {
		t.Errorf("after %d messages: %v", n, err)
	}
	s.echoes()
}

// A peer that sends to ports that nobody has costs nothing but events.
func TestPeerThatSendsToPortsNobodyHas(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		p := s.dial()
		for port := uint16(20_000); port < 20_050; port++ {
			h := p.data(4)
			h.DestPort = port
			p.says(h, []byte("none"))
			if e := s.events.wait(s.ctx, t, "no socket", func(e *Event) bool { return e.Kind == NoSocket }); e.Port != port || e.Peer != hostileAddr {
				t.Errorf("%+v; want port %d", e, port)
			}
		}
		if s.held() > 1000 { // of the good peer
			t.Errorf("%d bytes are held", s.held())
		}
		s.echoes()
	})
}

// Rules of the wire are broken on connections that the node has made, too.
func TestNodeDialsAHostilePeer(t *testing.T) {
	s := newScene(t, "tcp", nil)
	l := listenAt(t, netip.AddrPortFrom(ownAddr(200), 26385).String())
	if err := s.socket.SendTo(s.ctx, []byte("hello"), Addr{Host: addrOf(l), Port: 1234}); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("220 mail.example.org ESMTP: this is no RDS, whatever you may think")); err != nil {
			t.Fatal(err)
		}
		if v := s.events.violation(s.ctx, t, addrOf(l)); v.Rule != machine.RuleFormat {
			t.Errorf("connection %d: %v", i, v)
		}
		_ = c.Close()
	}
	s.echoes()
}
