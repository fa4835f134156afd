package rendezvous

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/rnic"
)

// Whoever has the lower number, wherever the two are, and whoever is first in RTR:
// there is one connection, and either side may send first.
func TestQueuePairsFindEachOther(t *testing.T) {
	for name, hosts := range map[string][2]netip.Addr{
		"two hosts": {hostA, hostB}, "the other way round": {hostB, hostA}, "one host": {hostA, hostA}, "IPv6": {hostC, hostB},
	} {
		for _, behind := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 10 * time.Second, time.Hour} {
			t.Run(name+", "+behind.String(), func(t *testing.T) {
				inSim(t, func(s *sim) {
					a, b := s.process(hosts[0]).side(), s.process(hosts[1]).side()
					begin := time.Now()
					a.rtr(b)
					a.rts(0)
					time.Sleep(behind)
					wantPending(s, a)
					b.rtr(a)
					b.rts(0)
					wants(s, a, b)
					if d := time.Since(begin) - behind; d > lastPause*3/2 {
						s.Errorf("it took %v from the second RTR on", d)
					}
					talk(s, a, b)
				})
			})
		}
	}
}

func TestTwoQueuePairsOfOneProcess(t *testing.T) {
	inSim(t, func(s *sim) {
		p := s.process(hostA)
		a, b := p.side(), p.side()
		for _, change := range []func(*Peer){func(*Peer) {}, func(p *Peer) { p.Addr, p.From = netip.Addr{}, netip.Addr{} }} {
			a.up(b, change)
			b.up(a, change)
			wants(s, a, b)
			talk(s, a, b)
			a.reset()
			b.reset()
		}
	})
}

// reset does what a program does that modifies to RESET.
func (s *side) reset() {
	s.Helper()
	s.ep.Cancel()
	s.qp.Abort()
	if err := s.qp.Reset(); err != nil {
		s.Fatal(err)
	}
	for _, cq := range []*rnic.CQ{s.send, s.recv} {
		for cq.Poll(make([]rnic.WC, 16)) > 0 {
		}
	}
}

// A program that gives no GRH means a peer on its own host.
func TestWithoutAddressThePeerIsOnThisHost(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, other := s.process(hostA).side(), s.process(hostA).side(), s.process(hostB)
		none := func(p *Peer) { p.Addr, p.From = netip.Addr{}, netip.Addr{} }
		b.up(a, none)
		other.ask(b, Message{Kind: Ask, From: a.num, To: b.num})
		wantPending(s, b)
		a.up(b, none)
		wants(s, a, b)
		talk(s, a, b)
	})
}

// The two sides see different addresses, as of hosts with several: both think that
// they go first, or neither does.
func TestSidesThatDisagreeWhoGoesFirst(t *testing.T) {
	low, high := netip.MustParseAddr("192.0.2.0"), netip.MustParseAddr("192.0.2.255")
	for name, from := range map[string]netip.Addr{"both": low, "neither": high} {
		t.Run(name, func(t *testing.T) {
			for range 50 { // as ties are random
				inSim(t, func(s *sim) {
					a, b := s.process(hostA).side(), s.process(hostB).side()
					begin := time.Now()
					for _, d := range [][2]*side{{a, b}, {b, a}} {
						d[0].rtr(d[1], func(p *Peer) { p.From = from })
						d[0].rts(0)
					}
					wants(s, a, b)
					talk(s, a, b)
					if d := time.Since(begin); d > patience || name == "both" && d > firstPause/4 {
						s.Errorf("it took %v: both have given way", d)
					}
				})
			}
		})
	}
}

// Behind a firewall that lets connections through in one direction only, the other
// side dials after a while.
func TestOneWayIsEnough(t *testing.T) {
	for _, from := range []netip.Addr{hostA, hostB} {
		inSim(t, func(s *sim) {
			s.blocked = func(f, _ netip.Addr) bool { return f == from }
			a, b := s.process(hostA).side(), s.process(hostB).side()
			begin := time.Now()
			a.up(b)
			b.up(a)
			wants(s, a, b)
			talk(s, a, b)
			if d := time.Since(begin); d > 2*patience {
				s.Errorf("it took %v", d)
			}
		})
	}
}

// A process without a slot can be nobody's aim, but reaches those that have one.
func TestProcessWithoutSlotDials(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.closedProcess(hostB, 1, func(*Config) {}), s.process(hostA).side()
		without, another := a.side(), a.side()
		without.up(b)
		b.up(without)
		wants(s, without, b)
		talk(s, without, b)

		second := s.process(hostA).side()
		second.rtr(another)
		second.rts(time.Second)
		if err := second.qp.PostSend(rnic.SendWR{Op: rnic.OpSend}); err != nil {
			s.Fatal(err)
		}
		var unreachable *UnreachableError
		if err := <-second.done; !errors.As(err, &unreachable) {
			s.Errorf("to a peer that has no slot and does not dial: %v", err)
		}
	})
}

// What may be outstanding is what the peer's program has said that it takes.
func TestDepthsAreThoseOfThePeer(t *testing.T) {
	for _, depths := range [][2]int{{16, 16}, {1, 128}, {128, 1}, {3, 5}, {7, 0}} {
		inSim(t, func(s *sim) {
			a, b := s.process(hostA).side(), s.process(hostB).side()
			a.up(b, func(p *Peer) { p.IRD = depths[0] })
			b.up(a, func(p *Peer) { p.IRD = depths[1] })
			wants(s, a, b)
			pa, _ := a.qp.Params()
			pb, _ := b.qp.Params()
			if int(pa.ORD) != depths[1] || int(pb.ORD) != depths[0] {
				s.Errorf("IRD %d and %d: ORD %d and %d", depths[0], depths[1], pa.ORD, pb.ORD)
			}
			talk(s, a, b)
		})
	}
}

// Programs use queue pairs anew, for other peers too. A request for the next round
// may come while the queue pair still is in the last one.
func TestQueuePairIsUsedAnew(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, c := s.process(hostA).side(), s.process(hostB).side(), s.process(hostC).side()
		a.up(b)
		b.up(a)
		wants(s, a, b)
		talk(s, a, b)
		b.reset()
		b.up(a)
		c.up(a)
		time.Sleep(time.Minute)
		wantPending(s, b, c)
		a.reset()
		a.up(c)
		wants(s, a, c)
		talk(s, a, c)
		wantPending(s, b)
		a.reset()
		c.reset()
		a.up(b)
		wants(s, a, b)
		talk(s, a, b)
	})
}

// Whenever the program changes its mind, the attempt is given up, and the queue pair
// is free for another one.
func TestAttemptIsGivenUp(t *testing.T) {
	for _, after := range []time.Duration{0, grace, grace + time.Microsecond, patience, patience + time.Microsecond, time.Minute} {
		for name, meanwhile := range map[string]func(s *sim, a, b *side){
			"nobody there": func(*sim, *side, *side) {},
			"unreachable":  func(s *sim, _, _ *side) { s.blocked = func(_, to netip.Addr) bool { return to == hostB } },
			"peer in RTR":  func(_ *sim, a, b *side) { b.up(a) },
		} {
			t.Run(name+", "+after.String(), func(t *testing.T) {
				inSim(t, func(s *sim) {
					a, b, c := s.process(hostA).side(), s.process(hostB).side(), s.process(hostC).side()
					meanwhile(s, a, b)
					a.up(b)
					time.Sleep(after)
					a.reset()
					synctest.Wait()
					select {
					case err := <-a.done:
						if err != nil || name != "peer in RTR" {
							s.Errorf("the program is told of what it has given up: %v", err)
						}
					default:
					}
					a.up(c)
					c.up(a)
					wants(s, a, c)
					talk(s, a, c)
					b.ep.Close()
				})
			})
		}
	}
}

// Connect without Cancel between takes the place of what was before.
func TestSecondPeerTakesThePlaceOfTheFirst(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, c := s.process(hostA).side(), s.process(hostB).side(), s.process(hostC).side()
		a.up(b)
		time.Sleep(2 * patience)
		a.up(c)
		c.up(a)
		wants(s, a, c)
		talk(s, a, c)
	})
}

func TestQueuePairThatIsNotIdleIsNotConnected(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.process(hostA).side(), s.process(hostB).side()
		a.qp.Abort()
		for _, first := range []bool{true, false} { // it dials, it answers
			if !first {
				b.up(a)
				time.Sleep(2 * patience)
			}
			a.up(b)
			if err := <-a.done; !errors.Is(err, rnic.ErrNotIdle) {
				s.Errorf("%v; want ErrNotIdle", err)
			}
		}
	})
}

func TestAbortDuringTheAttemptEndsIt(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.process(hostA).side(), s.process(hostB).side()
		a.up(b)
		time.Sleep(time.Minute) // b keeps the request
		a.qp.Abort()
		if err := <-a.done; !errors.Is(err, rnic.ErrAborted) {
			s.Errorf("%v; want ErrAborted", err)
		}
	})
}

func TestPeersThatCanNotBe(t *testing.T) {
	inSim(t, func(s *sim) {
		p := s.process(hostA)
		a := p.side()
		var number *NumberError
		var addr *AddrError
		for _, tt := range []struct {
			p    Peer
			want any
		}{
			{Peer{QPN: 1 << 24, Addr: hostB}, &number},
			{Peer{QPN: 1, Addr: netip.IPv6Unspecified()}, &addr},
			{Peer{QPN: 1, Addr: netip.MustParseAddr("::ffff:0.0.0.0")}, &addr},
			{Peer{QPN: 1, Addr: netip.MustParseAddr("ff02::1")}, &addr},
		} {
			if err := a.ep.Connect(tt.p, func(error) { s.Error("it is over") }); !errors.As(err, tt.want) {
				s.Errorf("%+v: %v", tt.p, err)
			}
		}
		for _, n := range []uint32{a.num, 1 << 24} {
			if _, err := p.m.Endpoint(n, a.qp); !errors.As(err, &number) {
				s.Errorf("an endpoint 0x%x: %v", n, err)
			}
		}
		a.ep.Close()
		if err := a.ep.Connect(Peer{QPN: 1}, nil); !errors.Is(err, rnic.ErrClosed) {
			s.Errorf("after Close: %v", err)
		}
		if err := p.m.Close(); err != nil {
			s.Error(err)
		}
		if _, err := p.m.Endpoint(5, a.qp); !errors.Is(err, rnic.ErrClosed) {
			s.Errorf("an endpoint after Close: %v", err)
		}
	})
}
