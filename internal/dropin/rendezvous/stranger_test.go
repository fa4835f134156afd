package rendezvous

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"urnic/rnic"

	"urnic/mpa"
)

// ask has a process send a request that no program of it has asked for. It returns
// the connection, on which the Reply comes.
func (p *process) ask(to *side, msg Message) net.Conn {
	p.Helper()
	b, err := msg.AppendBinary(nil)
	if err != nil {
		p.Fatal(err)
	}
	return p.askWith(to, b)
}

func (p *process) askWith(to *side, data []byte) net.Conn {
	p.Helper()
	port, _ := to.m.cfg.port(to.num)
	c, err := p.dial(p.Context(), p.host, netip.AddrPortFrom(to.host, port))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = c.Close() })
	block, err := mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRAll}.AppendBinary(nil)
	if err != nil {
		p.Fatal(err)
	}
	f := mpa.Frame{Revision: mpa.Revision2, CRC: true, Enhanced: true, PrivateData: append(block, data...)}
	b, err := f.AppendBinary(nil)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		p.Fatal(err)
	}
	return c
}

// wantRefusal checks that a request is rejected, and why.
func wantRefusal(t testing.TB, c net.Conn, want Reason) {
	t.Helper()
	buf := make([]byte, 512)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := c.Read(buf)
	if err != nil {
		t.Fatalf("there is no Reply: %v", err)
	}
	f, _, err := mpa.ParseFrame(buf[:n])
	if err != nil || !f.Rejected {
		t.Fatalf("the Reply is %+v, %v", f, err)
	}
	msg, err := Parse(f.ULPData())
	if err != nil || msg.Kind != Refuse || msg.Reason != want {
		t.Errorf("the Reply says %+v, %v; want reason %v", msg, err, want)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	inSim(t, func(s *sim) {
		a, other := s.process(hostA).side(), s.process(hostB)
		for name, data := range map[string][]byte{
			"nothing":          nil,
			"another protocol": []byte("GET / HTTP/1.1\r\n\r\n"),
			"an answer":        octets(s, "755244560102000000008001000040010000000000000000"+"0000000000000000"),
			"another version":  octets(s, "755244560201000000008001000040010000000000000000"+"0000000000000000"),
		} {
			s.Log(name)
			wantRefusal(s, other.askWith(a, data), NotUnderstood)
		}
		wantRefusal(s, other.ask(a, Message{Kind: Ask, From: 0x8001, To: a.num + 1}), NoSuchQP)
		a.ep.Close()
		wantRefusal(s, other.ask(a, Message{Kind: Ask, From: 0x8001, To: a.num}), NoSuchQP)
	})
}

// Who is not the peer that the program has named is not answered: another queue pair,
// another host.
func TestOnlyThePeerIsAnswered(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, other := s.process(hostB).side(), s.process(hostA).side(), s.process(hostC)
		a.rtr(b)
		a.rts(0)
		psn := b.peer().PSN
		strangers := []net.Conn{
			b.ask(a, Message{Kind: Ask, From: b.num + 1, To: a.num}),
			other.ask(a, Message{Kind: Ask, From: b.num, To: a.num}),
			other.ask(a, Message{Kind: Ask, From: b.num, To: a.num, HasPSN: true, PSN: psn ^ 1}),
			other.ask(a, Message{Kind: Ask, From: b.num + 1, To: a.num, HasPSN: true, PSN: psn}),
		}
		wantPending(s, a)
		b.rtr(a)
		wants(s, a, b)
		talk(s, a, b)
		for i, c := range strangers {
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			if n, err := c.Read(make([]byte, 1)); err == nil {
				s.Errorf("stranger %d has got %d octets", i, n)
			}
		}
	})
}

// A peer that comes from another address than its GID says is known by the PSN that
// its program has told.
func TestPeerOfAnotherAddressIsKnownByItsPSN(t *testing.T) {
	inSim(t, func(s *sim) {
		s.hidden = func(netip.Addr) netip.Addr { return hostC }
		for _, first := range []time.Duration{0, time.Minute} {
			a, b := s.process(hostA).side(), s.process(hostB).side()
			a.rtr(b)
			a.rts(0)
			time.Sleep(first)
			b.rtr(a)
			b.rts(0)
			wants(s, a, b)
			talk(s, a, b)
		}
		// Without RTS, the peer is not known, and waits until it says its PSN.
		a, b := s.process(hostA).side(), s.process(hostB).side()
		a.rtr(b)
		b.rtr(a)
		time.Sleep(time.Hour)
		wantPending(s, a, b)
		a.rts(0)
		b.rts(0)
		wants(s, a, b)
	})
}

// Of the requests for one queue pair, the last few are kept: those of strangers can't
// keep the peer away, wherever they come from.
func TestFloodForOneQueuePair(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, other := s.process(hostB).side(), s.process(hostA).side(), s.process(hostC)
		b.rtr(a)
		time.Sleep(time.Minute)
		for i := range uint32(500) {
			other.ask(a, Message{Kind: Ask, From: 0x100 + i, To: a.num})
			synctest.Wait()
		}
		a.m.mu.Lock()
		held := len(a.ep.held)
		if held != a.m.held {
			s.Errorf("%d are held; %d are counted", held, a.m.held)
		}
		a.m.mu.Unlock()
		if held > heldByEach {
			s.Errorf("%d requests wait for one queue pair; want %d at most", held, heldByEach)
		}
		begin := time.Now()
		a.rtr(b)
		wants(s, a, b)
		talk(s, a, b)
		if d := time.Since(begin); d > 3*lastPause {
			s.Errorf("it took %v", d)
		}
	})
}

// What waits for all queue pairs is bounded. When the strangers have gone, there is
// room again.
func TestFloodForManyQueuePairs(t *testing.T) {
	inSim(t, func(s *sim) {
		p, other := s.process(hostA), s.process(hostB)
		var sides []*side
		for range heldByAll/heldByEach + 1 {
			sides = append(sides, p.side())
		}
		last := sides[len(sides)-1]
		var conns []net.Conn
		for i := range heldByAll {
			conns = append(conns, other.ask(sides[i/heldByEach], Message{Kind: Ask, From: uint32(i), To: sides[i/heldByEach].num}))
			if i%64 == 0 {
				synctest.Wait() // so many may be half open
			}
		}
		synctest.Wait()
		wantRefusal(s, other.ask(last, Message{Kind: Ask, From: 7, To: last.num}), NoPlace)
		for _, c := range conns {
			_ = c.Close()
		}
		time.Sleep(10 * time.Millisecond) // until it is noticed
		kept := other.ask(last, Message{Kind: Ask, From: 7, To: last.num})
		synctest.Wait()
		_ = kept.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := kept.Read(make([]byte, 64)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			s.Errorf("a request when there is room again: %d octets, %v; want that it waits", n, err)
		}
	})
}

// Connections that say nothing hold up others only for a while.
func TestFloodOfHalfOpenConnections(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.process(hostA).side(), s.process(hostB).side()
		port, _ := b.m.cfg.port(b.num)
		for range 2000 {
			c, err := s.dial(s.Context(), hostC, netip.AddrPortFrom(hostB, port))
			if err != nil {
				s.Fatal(err)
			}
			defer c.Close()
		}
		begin := time.Now()
		a.rtr(b)
		b.rtr(a)
		wants(s, a, b)
		talk(s, a, b)
		if d := time.Since(begin); d > time.Minute {
			s.Errorf("it took %v", d)
		}
	})
}

// An answer of somebody else than the peer makes no connection that the program could
// take for its peer's.
func TestAnswerOfAStranger(t *testing.T) {
	for name, reply := range map[string]Message{
		"another queue pair": {Kind: Agree, From: 0x4002, To: 0x4001},
		"for another":        {Kind: Agree, From: 0x4001, To: 0x4002},
		"a request":          {Kind: Ask, From: 0x4001, To: 0x4001},
		"none":               {},
	} {
		t.Run(name, func(t *testing.T) {
			inSim(t, func(s *sim) {
				evil, err := rnic.Open(rnic.Config{})
				if err != nil {
					s.Fatal(err)
				}
				defer evil.Close()
				n, err := s.listen(hostB)(s.Context(), ":21000")
				if err != nil {
					s.Fatal(err)
				}
				l, err := evil.ListenOn(n)
				if err != nil {
					s.Fatal(err)
				}
				domain, err := evil.AllocPD()
				if err != nil {
					s.Fatal(err)
				}
				cq, err := evil.CreateCQ(rnic.CQAttr{})
				if err != nil {
					s.Fatal(err)
				}
				qp, err := domain.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
				if err != nil {
					s.Fatal(err)
				}
				go func() {
					if r, err := l.Accept(context.Background()); err == nil {
						b, _ := reply.AppendBinary(nil) // nil if there is none
						_ = r.Accept(context.Background(), qp, rnic.ConnParam{PrivateData: b})
					}
				}()
				a := s.process(hostA).side()
				if err := a.ep.Connect(Peer{QPN: 0x4001, Addr: hostB, From: hostA}, func(err error) { a.done <- err }); err != nil {
					s.Fatal(err)
				}
				var e *MessageError
				if err := <-a.done; !errors.As(err, &e) {
					s.Errorf("%v; want a *MessageError", err)
				}
				if st := a.qp.State(); st != rnic.Error {
					s.Errorf("the queue pair is in state %v", st)
				}
			})
		})
	}
}
