package rendezvous

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// wantUnanswered checks that requests have got no Reply that accepts.
func wantUnanswered(t testing.TB, conns ...net.Conn) {
	t.Helper()
	for i, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		buf := make([]byte, 512)
		n, err := c.Read(buf)
		if n == 0 {
			continue
		}
		if f, _, bad := mpa.ParseFrame(buf[:n]); bad != nil || !f.Rejected {
			t.Errorf("request %d has got a Reply: %+v, %v, %v", i, f, bad, err)
		}
	}
}

// A host that is not the one that the program has named does not become the peer,
// whatever PSN it gives and whether it asks before RTR or after.
func TestAnotherHostIsNotThePeer(t *testing.T) {
	for name, psn := range map[string]uint32{"PSN 0": 0, "right PSN": 0xabcdef} {
		for _, before := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				inSim(t, func(s *sim) {
					a, b, other := s.process(hostB).side(), s.process(hostA).side(), s.process(hostC)
					b.psn = psn
					var strangers []net.Conn
					intrude := func() {
						strangers = append(strangers,
							other.ask(a, Message{Kind: Ask, From: b.num, To: a.num, HasPSN: true, PSN: psn}),
							other.ask(a, Message{Kind: Ask, From: b.num, To: a.num}))
						synctest.Wait()
					}
					if before {
						intrude()
					}
					a.rtr(b)
					a.rts(0)
					if !before {
						intrude()
					}
					wantPending(s, a)
					wantUnanswered(s, strangers...)
					if s.Failed() {
						return
					}
					b.rtr(a)
					b.rts(0)
					wants(s, a, b)
					talk(s, a, b)
				})
			})
		}
	}
}

// Another user of the same host becomes the peer only with the PSN that the program
// expects, and only if that is not 0.
func TestAnotherUserIsNotThePeer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		expected uint32
		msg      Message
	}{
		{"no PSN, none expected", 0, Message{}},
		{"PSN 0, as expected", 0, Message{HasPSN: true}},
		{"some PSN, none expected", 0, Message{HasPSN: true, PSN: 5}},
		{"no PSN", 0xabcdef, Message{}},
		{"PSN 0", 0xabcdef, Message{HasPSN: true}},
		{"wrong PSN", 0xabcdef, Message{HasPSN: true, PSN: 0xabcdee}},
	} {
		for _, global := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				inSim(t, func(s *sim) {
					a, b, other := s.process(hostA).side(), s.process(hostA).side(), s.processOf(hostA, 2)
					b.psn = tt.expected
					msg := tt.msg
					msg.Kind, msg.From, msg.To = Ask, b.num, a.num
					strangers := []net.Conn{other.ask(a, msg)}
					synctest.Wait()
					a.rtr(b, func(p *Peer) {
						if !global {
							*p = Peer{QPN: p.QPN, PSN: p.PSN}
						}
					})
					a.rts(0)
					strangers = append(strangers, other.ask(a, msg))
					wantPending(s, a)
					wantUnanswered(s, strangers...)
					if s.Failed() {
						return
					}
					b.rtr(a)
					b.rts(0)
					wants(s, a, b)
					talk(s, a, b)
				})
			})
		}
	}
}

// Processes of one user need no PSN, and processes of two users need one that is not 0,
// on both sides, whoever calls.
func TestProcessesOfOneHost(t *testing.T) {
	for _, tt := range []struct {
		name       string
		users      [2]int
		psns       [2]uint32
		want, late bool // late: the second process does not get to RTS
	}{
		{name: "one user", users: [2]int{1, 1}, want: true},
		{name: "one user, no RTS", users: [2]int{1, 1}, late: true, want: true},
		{name: "one user, PSNs", users: [2]int{1, 1}, psns: [2]uint32{7, 8}, want: true},
		{name: "one user, PSNs, no RTS", users: [2]int{1, 1}, psns: [2]uint32{7, 8}, late: true, want: true},
		{name: "two users, PSNs", users: [2]int{1, 2}, psns: [2]uint32{7, 8}, want: true},
		{name: "two users", users: [2]int{1, 2}},
		{name: "two users, one PSN", users: [2]int{1, 2}, psns: [2]uint32{7, 0}},
		{name: "two users, the other PSN", users: [2]int{1, 2}, psns: [2]uint32{0, 8}},
		{name: "two users, PSNs, no RTS", users: [2]int{1, 2}, psns: [2]uint32{7, 8}, late: true},
	} {
		for _, swap := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				inSim(t, func(s *sim) {
					a, b := s.processOf(hostA, tt.users[0]).side(), s.processOf(hostA, tt.users[1]).side()
					a.psn, b.psn = tt.psns[0], tt.psns[1]
					if swap {
						a, b = b, a
					}
					a.up(b)
					b.rtr(a)
					if !tt.late {
						b.rts(0)
					}
					if !tt.want {
						time.Sleep(time.Hour)
						wantPending(s, a, b)
						if a.qp.State() != rnic.Idle || b.qp.State() != rnic.Idle {
							s.Errorf("states %v and %v: they must be left alone", a.qp.State(), b.qp.State())
						}
						if !tt.late {
							return
						}
						b.rts(0)
					}
					wants(s, a, b)
					talk(s, a, b)
				})
			})
		}
	}
}

// A queue pair that only receives stays in RTR. Its peer, which sends, does not have to
// wait for long, wherever it is and whoever has the lower number.
func TestPeerThatStaysInRTR(t *testing.T) {
	for _, hosts := range [][2]netip.Addr{{hostA, hostB}, {hostB, hostA}, {hostA, hostA}} {
		for _, behind := range []time.Duration{0, time.Minute, -time.Minute} {
			for i := range 2 {
				inSim(t, func(s *sim) {
					sides := []*side{s.process(hosts[0]).side(), s.process(hosts[1]).side()}
					a, b := sides[i], sides[1-i]
					if behind < 0 {
						b.rtr(a)
						time.Sleep(-behind)
					}
					a.up(b)
					begin := time.Now()
					if behind >= 0 {
						time.Sleep(behind)
						begin = time.Now()
						b.rtr(a)
					}
					wants(s, a, b)
					if d := time.Since(begin); d > lastPause*3/2 {
						s.Errorf("it took %v", d)
					}
					talk(s, b, a)
				})
			}
		}
	}
}

// A peer in RTR that calls before RTS is called back at once.
func TestCallWithoutPSNIsAnsweredByACall(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b := s.process(hostA).side(), s.process(hostB).side()
		begin := time.Now()
		b.up(a)
		a.rtr(b) // has the lower address, calls after a while
		wants(s, a, b)
		if d := time.Since(begin); d > 2*grace {
			s.Errorf("it took %v", d)
		}
	})
}

// Who tries PSNs, from the address of the peer or as another user of this host, does not
// get through after some tries, even by the right one; and the peer still does.
func TestGuessesOfThePSN(t *testing.T) {
	for _, host := range []netip.Addr{hostA, hostB} {
		inSim(t, func(s *sim) {
			a, b, other := s.process(hostA).side(), s.process(host).side(), s.processOf(host, 2)
			a.up(b)
			b.psn = 0x123456 // a has been told another one
			for i := range uint32(maxGuesses) {
				c := other.ask(a, Message{Kind: Ask, From: b.num, To: a.num, HasPSN: true, PSN: 0x300000 + i})
				if i%8 == 0 {
					synctest.Wait()
					_ = c.Close()
				}
			}
			synctest.Wait()
			psn := a.ep.attempt.peer.PSN
			c := other.ask(a, Message{Kind: Ask, From: b.num, To: a.num, HasPSN: true, PSN: psn})
			wantPending(s, a)
			wantUnanswered(s, c)
			if s.Failed() {
				return
			}
			b.psn = psn
			b.up(a)
			wants(s, a, b)
			talk(s, a, b)
		})
	}
}

// The requests of strangers, however many, do not make the peer's go, which came before
// RTR: it is answered at once.
func TestStrangersDoNotDisplaceThePeer(t *testing.T) {
	inSim(t, func(s *sim) {
		a, b, other := s.process(hostB).side(), s.process(hostA).side(), s.process(hostC)
		b.up(a)
		time.Sleep(10 * time.Second)
		s.mu.Lock()
		dials := s.dials
		s.mu.Unlock()
		for i := range uint32(100) {
			other.ask(a, Message{Kind: Ask, From: 0x100 + i, To: a.num})
			other.ask(a, Message{Kind: Ask, From: b.num, To: a.num, HasPSN: true, PSN: i})
			synctest.Wait()
		}
		begin := time.Now()
		a.up(b)
		wants(s, a, b)
		talk(s, a, b)
		if d := time.Since(begin); d > time.Millisecond {
			s.Errorf("it took %v", d)
		}
		if n := s.dials - dials - 200; n != 0 {
			s.Errorf("%d calls more: the peer's request was dropped", n)
		}
	})
}

// When there is no room at all, because strangers have taken it at many queue pairs, the
// peer that a queue pair waits for gets in all the same, even if they are at its host.
func TestPeerGetsInWhenAllPlacesAreTaken(t *testing.T) {
	for _, atPeers := range []bool{false, true} {
		inSim(t, func(s *sim) {
			p, b := s.process(hostB), s.process(hostA).side()
			a := p.side()
			var sources []*process
			for i := range heldByAll / heldByEach {
				if i%64 == 0 {
					from := hostA
					if !atPeers {
						from = netip.AddrFrom4([4]byte{198, 51, 100, byte(i / 64)})
					}
					sources = append(sources, s.process(from))
				}
				to := p.side()
				for j := range uint32(heldByEach) {
					sources[len(sources)-1].ask(to, Message{Kind: Ask, From: j, To: to.num})
				}
				synctest.Wait()
			}
			p.m.mu.Lock()
			held := len(p.m.held.all)
			p.m.mu.Unlock()
			if held != heldByAll {
				s.Fatalf("%d requests are held", held)
			}
			begin := time.Now()
			a.up(b)
			b.up(a)
			wants(s, a, b)
			talk(s, a, b)
			if d := time.Since(begin); d > time.Millisecond {
				s.Errorf("it took %v", d)
			}
		})
	}
}

// An answer by another user of the host, or with another PSN than the peer's, connects
// nothing, and nothing is sent to who gives it.
func TestAnswerOfAnotherUser(t *testing.T) {
	for name, tt := range map[string]struct {
		host    netip.Addr
		user    int
		psn     uint32 // that is expected
		message Message
		want    bool
	}{
		"another user":                      {host: hostA, user: 2},
		"another user, PSN 0":               {host: hostA, user: 2, message: Message{HasPSN: true}},
		"another user, none where expected": {host: hostA, user: 2, psn: 9},
		"another user, wrong PSN":           {host: hostA, user: 2, psn: 9, message: Message{HasPSN: true, PSN: 8}},
		"another user, right PSN":           {host: hostA, user: 2, psn: 9, message: Message{HasPSN: true, PSN: 9}, want: true},
		"same user":                         {host: hostA, user: 1, want: true},
		"another host, wrong PSN":           {host: hostB, user: 2, psn: 9, message: Message{HasPSN: true, PSN: 8}},
		"another host":                      {host: hostB, user: 2, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			inSim(t, func(s *sim) {
				a := s.closedProcess(hostA, 1, func(*Config) {}).side()
				msg := tt.message
				msg.Kind, msg.From, msg.To = Agree, 0x4001, a.num
				answers, far := s.answerer(tt.host, tt.user, msg)
				if err := a.ep.Connect(Peer{QPN: 0x4001, PSN: tt.psn, Addr: tt.host, From: hostA}, func(err error) { a.done <- err }); err != nil {
					s.Fatal(err)
				}
				if err := a.qp.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled}); err != nil {
					s.Fatal(err)
				}
				a.rts(0)
				if err := <-answers; err != nil {
					s.Fatal(err)
				}
				if tt.want {
					wants(s, a)
					return
				}
				synctest.Wait()
				wantPending(s, a)
				if got := far.Counters().Messages; got != (rdmap.Stats{}) {
					s.Errorf("messages were sent to a stranger: %+v", got)
				}
			})
		})
	}
}
