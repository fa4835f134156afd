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
	c, err := p.dial(p.Context(), p.host, p.user, netip.AddrPortFrom(to.host, port))
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
		b.up(a)
		wants(s, a, b)
		talk(s, a, b)
		for i, c := range strangers {
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			if n, err := c.Read(make([]byte, 1)); err == nil {
				s.Errorf("stranger %d has got %d bytes", i, n)
			}
		}
	})
}

// Of the requests for one queue pair, the last few are kept: those of strangers can't
// keep the peer away, wherever they come from.
func TestFloodForOneQueuePair(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, other := s.process(hostB).side(), s.process(hostA).side(), s.process(hostC)
		b.up(a)
		time.Sleep(time.Minute)
		for i := range uint32(500) {
			other.ask(a, Message{Kind: Ask, From: 0x100 + i, To: a.num})
			synctest.Wait()
		}
		a.m.mu.Lock()
		held := len(a.m.held.all)
		a.m.mu.Unlock()
		if held > heldByEach {
			s.Errorf("%d requests wait for one queue pair; want %d at most", held, heldByEach)
		}
		begin := time.Now()
		a.up(b)
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
			s.Errorf("a request when there is room again: %d bytes, %v; want that it waits", n, err)
		}
	})
}

// Connections that say nothing hold up others only for a while.
func TestFloodOfHalfOpenConnections(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.process(hostA).side(), s.process(hostB).side()
		port, _ := b.m.cfg.port(b.num)
		for range 2000 {
			c, err := s.dial(s.Context(), hostC, 1, netip.AddrPortFrom(hostB, port))
			if err != nil {
				s.Fatal(err)
			}
			defer c.Close()
		}
		begin := time.Now()
		a.up(b)
		b.up(a)
		wants(s, a, b)
		talk(s, a, b)
		if d := time.Since(begin); d > time.Minute {
			s.Errorf("it took %v", d)
		}
	})
}

// An answer of somebody else than the peer makes no connection, and the queue pair goes
// on looking for its peer.
func TestAnswerOfAStranger(t *testing.T) {
	for name, reply := range map[string]Message{
		"another queue pair": {Kind: Agree, From: 0x4002, To: 0x4001},
		"for another":        {Kind: Agree, From: 0x4001, To: 0x4002},
		"a request":          {Kind: Ask, From: 0x4001, To: 0x4001},
		"none":               {},
	} {
		t.Run(name, func(t *testing.T) {
			inSim(t, func(s *sim) {
				answers, evil := s.answerer(hostB, 1, reply)
				a := s.process(hostA).side()
				if err := a.ep.Connect(Peer{QPN: 0x4001, Addr: hostB, From: hostA}, func(err error) { a.done <- err }); err != nil {
					s.Fatal(err)
				}
				a.rts(0)
				if err := <-answers; err != nil {
					s.Fatal(err)
				}
				wantPending(s, a)
				if st := a.qp.State(); st != rnic.Idle {
					s.Errorf("the queue pair is in state %v", st)
				}
				if err := evil.Close(); err != nil {
					s.Fatal(err)
				}
				// When the peer has its port, it is found.
				b := s.process(hostB).side()
				b.rtr(a)
				b.rts(0)
				wants(s, a, b)
				talk(s, a, b)
			})
		})
	}
}

// answerer has a user of a host listen at the port of slot 1 and answer the first call as
// if it were the peer: reply says what the Reply says, if it is not as the peer's. The
// channel tells when the Reply is out.
func (s *sim) answerer(host netip.Addr, user int, reply Message) (<-chan error, *rnic.Device) {
	s.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = dev.Close() })
	port, err := s.reserve(host, user)(s.Context(), ":21000")
	if err != nil {
		s.Fatal(err)
	}
	n, err := port.Listen()
	if err != nil {
		s.Fatal(err)
	}
	l, err := dev.ListenOn(n)
	if err != nil {
		s.Fatal(err)
	}
	domain, err := dev.AllocPD()
	if err != nil {
		s.Fatal(err)
	}
	cq, err := dev.CreateCQ(rnic.CQAttr{})
	if err != nil {
		s.Fatal(err)
	}
	qp, err := domain.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		s.Fatal(err)
	}
	if err := qp.PostRecv(rnic.RecvWR{}); err != nil {
		s.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			b, _ := reply.AppendBinary(nil) // nil if there is none
			err = r.Accept(context.Background(), qp, rnic.ConnParam{PrivateData: b})
		}
		done <- err
	}()
	return done, dev
}
