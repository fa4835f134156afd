package rds

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// What is flushed while TCP is asked for acknowledgements is written as soon as that is done.
func TestFlushWhileTCPIsAsked(t *testing.T) {
	n := nodes(t, 1, transports["tcp"], nil)[0]
	ours, theirs := net.Pipe()
	l := newTCPLink(ours)
	n.mu.Lock()
	p, id, err := n.m.Request(n.now(), machine.Request{Key: machine.Key{Peer: netip.MustParseAddr("127.0.0.9")}})
	if err != nil {
		t.Fatal(err)
	}
	l.attach(n, p, id)
	l.tx.Lock() // as when TCP is asked
	n.links[p] = attached{link: l, id: id}
	p.Up(n.now(), id, machine.Params{})
	n.unlock() // there is a map to be sent
	l.tx.Unlock()
	go l.asked()
	if _, err := theirs.Read(make([]byte, wire.HeaderLen)); err != nil {
		t.Error(err)
	}
	l.abort()
	_ = theirs.Close() // it is the end of a pipe
}

// What comes on connections that a peer makes in quick succession is read before they end, if the peer knows TCP's
// acknowledgements only.
func TestConnectionsInQuickSuccession(t *testing.T) {
	inSandbox(t, (*sandbox).tcp, (*sandbox).bytes, func(s *sandbox) {
		for i := range mostOfPeer {
			c := s.bytes()
			defer s.bound(c)()
			n := 100 + i
			_ = c.write(segment(wire.Header{Sequence: uint64(1 + i), Len: uint32(n), SourcePort: 5000, DestPort: 4000}, make([]byte, n)))
		}
		time.Sleep(5 * time.Second)
		s.wantMessages(100, 101, 102, 103, 104, 105, 106, 107)
		if n := s.links(); n != 1 {
			s.t.Errorf("the peer has %d connections", n)
		}
	})
}

// TCP is asked less and less often for acknowledgements of a peer that has stalled, and soon again when there
// is something new.
func TestTCPIsAskedLessOften(t *testing.T) {
	inSandbox(t, (*sandbox).tcp, (*sandbox).bytes, func(s *sandbox) {
		x := wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: 8}
		raw, err := x.Encode()
		if err != nil {
			s.t.Fatal(err)
		}
		c := s.bytes()
		s.conns = append(s.conns, c)
		_ = c.write(segment(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: raw}, nil))
		synctest.Wait()
		var l *tcpLink
		s.node.mu.Lock()
		for _, a := range s.node.links {
			l, _ = a.link.(*tcpLink)
		}
		s.node.mu.Unlock()
		asked, arrived := 0, uint64(0)
		l.tx.Lock()
		l.acks.left = func(net.Conn) (uint64, error) {
			asked++
			return l.acks.written - min(l.acks.written, arrived), nil
		}
		arrived = l.acks.written
		l.tx.Unlock()
		// during counts how often TCP is asked in a time.
		during := func(d time.Duration) int {
			l.tx.Lock()
			before := asked
			l.tx.Unlock()
			time.Sleep(d)
			synctest.Wait()
			l.tx.Lock()
			defer l.tx.Unlock()
			return asked - before
		}
		arrive := func(bytes uint64) {
			l.tx.Lock()
			defer l.tx.Unlock()
			arrived += bytes
		}
		send := func() {
			if err := s.socket.SendTo(s.t.Context(), make([]byte, 100), Addr{Host: simHostile, Port: 1}); err != nil {
				s.t.Fatal(err)
			}
		}
		during(time.Second)
		if n := during(time.Second); n != 0 {
			s.t.Errorf("TCP is asked %d times a second while nothing is outstanding", n)
		}
		send()
		if n := during(3 * time.Millisecond); n != 1 {
			s.t.Errorf("TCP is asked %d times after a message", n)
		}
		during(3 * time.Second)
		if n := during(4 * time.Second); n != 4 {
			s.t.Errorf("TCP of a peer that has stalled is asked %d times in 4 s", n)
		}
		arrive(10)
		during(time.Second)
		if n := during(10 * time.Millisecond); n > 0 {
			s.t.Errorf("TCP is asked %d times, a second after something has arrived", n)
		}
		send()
		if n := during(10 * time.Millisecond); n != 2 {
			s.t.Errorf("TCP is asked %d times after another message", n)
		}
		arrive(10)
		during(100 * time.Millisecond)
		arrive(1 << 20)
		if err := s.socket.Flush(s.t.Context()); err != nil {
			s.t.Error(err)
		}
	})
}
