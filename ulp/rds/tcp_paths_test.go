//go:build linux

package rds

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// A Linux node has eight connections and loses one while the node waits for memory to read what has come on it.
// It goes on over a new one, behind what TCP has acknowledged: nothing of that is lost, or overtaken.
func TestConnectionsOfLinuxAreReadInTheirOrder(t *testing.T) {
	const size, before, behind = 20_000, 6, 2
	for name, another := range map[string]bool{"all paths have a connection": false, "another path has none": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "tcp", func(c *Config) {
				c.Transports = []Transport{&TCP{Port: 26385}}
				c.PeerMemory = 2 * size
				c.handshake, c.silence = time.Hour, time.Hour // connections stay, though nothing is said on them
			})
			peers := s.eightPaths()
			lost := peers[2]
			sent := 0
			send := func(p *hostilePeer, n int, f wire.Flags) {
				for range n {
					h := p.data(size)
					h.Flags = f
					sent++
					p.says(h, binary.BigEndian.AppendUint64(make([]byte, size-8), uint64(sent)))
				}
			}
			send(lost, before, 0)
			lost.delivered()
			lost.resets()
			if another {
				peers[5].resets()
				s.untilUp(7)
			}
			next := s.dial()
			next.next = lost.next
			send(next, behind, wire.Retransmitted)
			next.delivered()
			for want := range uint64(sent) {
				msg, err := s.socket.Receive(s.ctx)
				if err != nil {
					t.Fatalf("message %d: %v", want+1, err)
				}
				if got := binary.BigEndian.Uint64(msg.Data[size-8:]); got != want+1 {
					t.Errorf("message %d comes in the place of %d", got, want+1)
				}
			}
		})
	}
}

// A peer may have so many connections that wait for others to end. They are served in their order.
func TestConnectionsThatWaitForOthers(t *testing.T) {
	s := newScene(t, "tcp", func(c *Config) {
		c.Transports = []Transport{&TCP{Port: 26385}}
		c.handshake, c.silence = time.Hour, time.Hour // connections stay, though nothing is said on them
	})
	peers := s.eightPaths()
	var waiting []*hostilePeer
	for range mostOfPeer {
		waiting = append(waiting, s.dial())
	}
	if p, err := s.tryDial(nil); err == nil { // else it is reset already
		p.wantReset()
	}
	s.wantOnly()
	for i, text := range []string{"first", "second"} {
		p := waiting[i]
		p.next = uint64(100 + i)
		p.message(text)
		p.delivered()
	}
	for i, text := range []string{"first", "second"} {
		peers[i].resets()
		s.wantOnly(text)
	}
	s.echoes()
}

// eightPaths connects a peer that does as Linux.
func (s *scene) eightPaths() (peers []*hostilePeer) {
	x := wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: 8}
	raw, err := x.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range 8 {
		p := s.dial()
		if i == 0 {
			p.probe(x)
			p.await("its probe", func(h *wire.Header) bool { return h.Kind() == wire.Probe })
			p.next++
			p.says(wire.Header{Sequence: p.next, DestPort: wire.ProbePort, Extensions: raw}, nil)
		}
		peers = append(peers, p)
	}
	s.untilUp(8)
	return peers
}

// untilUp waits until so many connections to the hostile peer are up.
func (s *scene) untilUp(want int) {
	s.t.Helper()
	for up := -1; up != want; time.Sleep(time.Millisecond) { // not all of it is told by events
		if s.ctx.Err() != nil {
			s.t.Fatalf("%d connections are up", up)
		}
		up = 0
		for _, c := range s.victim.Info(0).Connections {
			for _, p := range c.Paths {
				if c.Peer == hostileAddr && p.State == "up" {
					up++
				}
			}
		}
	}
}

// delivered waits until the node's TCP has acknowledged all.
func (p *hostilePeer) delivered() {
	p.t.Helper()
	for left := uint64(1); left > 0; time.Sleep(time.Millisecond) { // TCP does not tell
		var err error
		if left, err = unacknowledged(p.conn.(byteConn).Conn); err != nil || p.ctx.Err() != nil {
			p.t.Fatalf("%d bytes are not acknowledged: %v", left, err)
		}
	}
}

// resets ends the connection with a reset.
func (p *hostilePeer) resets() {
	if err := p.conn.(byteConn).Conn.(*net.TCPConn).SetLinger(0); err != nil {
		p.t.Error(err)
	}
	p.conn.close()
}
