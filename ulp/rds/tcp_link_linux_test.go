package rds

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// aLinux connects a peer that does as Linux 6.1: it tells paths, and no generation.
func (s *scene) aLinux() *hostilePeer {
	s.t.Helper()
	p := s.dial()
	p.probe(wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: 8})
	p.await("the answer to its probe", func(h *wire.Header) bool { return h.Kind() == wire.Pong })
	return p
}

// numberedSize is the length of the messages of numbered.
const numberedSize = 20_000

// numbered sends n messages, which have numbers from first on at their end.
func (p *hostilePeer) numbered(first, n int, f wire.Flags) {
	for i := range n {
		h := p.data(numberedSize)
		h.Flags = f
		p.says(h, binary.BigEndian.AppendUint64(make([]byte, numberedSize-8), uint64(first+i)))
	}
}

// wantNumbered checks that messages come in the order of their numbers, from 0 on.
func (s *scene) wantNumbered(n int) {
	s.t.Helper()
	for want := range uint64(n) {
		msg, err := s.socket.Receive(s.ctx)
		if err != nil {
			s.t.Fatalf("message %d: %v", want, err)
		}
		if got := binary.BigEndian.Uint64(msg.Data[len(msg.Data)-8:]); got != want {
			s.t.Errorf("message %d comes in the place of %d", got, want)
		}
	}
	s.wantOnly()
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

// A Linux node makes a new connection while the node waits for memory to read what has come on the old one, which
// has been reset or has not. The new one waits: nothing that TCP has acknowledged is lost, or overtaken.
func TestConnectionsOfLinuxAreReadInTheirOrder(t *testing.T) {
	const before, behind = 6, 2
	for name, resets := range map[string]bool{"the old one is reset": true, "the old one stays": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "tcp", func(c *Config) { c.PeerMemory = 2 * numberedSize })
			p := s.aLinux()
			p.numbered(0, before, 0)
			p.delivered()
			if resets {
				p.resets()
			}
			next := s.dial()
			next.next = p.next
			next.numbered(before, behind, wire.Retransmitted)
			next.delivered()
			s.wantNumbered(before + behind)
			if !resets {
				p.wantReset()
			}
			s.echoes()
		})
	}
}

// A peer may have so many connections that wait for others to end. They are served in their order.
func TestConnectionsThatWaitForOthers(t *testing.T) {
	s := newScene(t, "tcp", func(c *Config) { c.PeerMemory = 2 * numberedSize })
	p := s.aLinux()
	p.numbered(0, 3, 0) // the third has no room
	p.delivered()
	sent := 3
	for i := range 1 + mostOfPeer { // one is being decided about
		next := s.dial()
		next.next = p.next
		next.numbered(sent, 1, 0)
		sent++
		p = next
		s.untilWaiting(i)
	}
	if last, err := s.tryDial(nil); err == nil { // else it is reset already
		last.wantReset()
	}
	s.wantNumbered(sent)
	p.message("on the last connection")
	s.wantOnly("on the last connection")
	s.echoes()
}

// untilWaiting waits until so many connections of the hostile peer wait behind one that is being decided about.
func (s *scene) untilWaiting(n int) {
	s.t.Helper()
	tcp := s.victim.cfg.Transports[0].(*TCP)
	for waits := -1; waits != n; time.Sleep(time.Millisecond) { // no event tells
		if s.ctx.Err() != nil {
			s.t.Fatalf("%d connections wait; want %d", waits, n)
		}
		tcp.mu.Lock()
		if waits = -1; len(tcp.waiting) == 1 {
			waits = tcp.waits
		}
		tcp.mu.Unlock()
	}
}
