package rds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/rds/wire"
)

// Hundreds of sockets exchange messages in both directions.
func TestHundredsOfSockets(t *testing.T) { overAll(t, hundredsOfSockets) }

func hundredsOfSockets(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	const sockets, messages = 300, 10
	var wg sync.WaitGroup
	for i := range sockets {
		a, b := bind(t, ns[i%2], uint16(1000+i)), bind(t, ns[1-i%2], uint16(2000+i))
		wg.Go(func() { // it asks
			for k := range messages {
				want := fmt.Sprintf("socket %d, message %d", i, k)
				if err := a.SendTo(ctx, []byte(want), b.Addr()); err != nil {
					t.Error(err)
					return
				}
				if msg, err := a.Receive(ctx); err != nil || string(msg.Data) != want || msg.Addr != b.Addr() {
					t.Errorf("%v, %v; want %q", msg, err, want)
					return
				}
			}
		})
		wg.Go(func() { // it answers
			for range messages {
				msg, err := b.Receive(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if err := b.SendTo(ctx, msg.Data, msg.Addr); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Each side pings the other. A pong comes from port 0, and has no data.
func TestPings(t *testing.T) { overAll(t, pings) }

func pings(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	for i, from := range ns {
		s := bind(t, from, 0)
		for _, to := range []*Node{ns[1-i], from} {
			const n = 20
			for range n {
				if err := s.SendTo(ctx, []byte("what a ping carries is ignored"), Addr{Host: to.Addr()}); err != nil {
					t.Fatal(err)
				}
			}
			for range n {
				msg, err := s.Receive(ctx)
				if err != nil || msg.Addr != (Addr{Host: to.Addr()}) || len(msg.Data) != 0 {
					t.Fatalf("%v, %v", msg, err)
				}
			}
		}
	}
}

// A full receive queue stops senders of the other node, and of its own, and they go on when it is
// read. An event tells those who do not wait.
func TestCongestion(t *testing.T) { overAll(t, congestion) }

func congestion(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	events := newEventLog()
	ns := nodes(2, func(c *Config) { c.Events = events.add })
	ctx := within(t)
	to, err := ns[0].Bind(4000, ReceiveBuffer(8000))
	if err != nil {
		t.Fatal(err)
	}
	free := bind(t, ns[0], 4001)
	for _, n := range []*Node{ns[1], ns[0]} {
		from := bind(t, n, 0)
		sent := 0
		for err = nil; err == nil; sent++ {
			if err = from.SendTo(ctx, make([]byte, 1000), to.Addr(), NoWait()); sent > 1000 {
				t.Fatal("the port is never congested")
			}
			if err == nil {
				err = from.Flush(ctx) // so that the map is not far behind
			}
		}
		sent--
		if !errors.Is(err, ErrCongested) || sent < 8 {
			t.Fatalf("after %d messages of 1,000 bytes: %v", sent, err)
		}
		if err := from.SendTo(ctx, []byte("to another port"), free.Addr(), NoWait()); err != nil {
			t.Errorf("to another port: %v", err)
		}
		if _, err := free.Receive(ctx); err != nil {
			t.Error(err)
		}
		waits := make(chan error, 1)
		go func() { waits <- from.SendTo(ctx, []byte("one more"), to.Addr()) }()
		for range sent {
			if _, err := to.Receive(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waits; err != nil {
			t.Error(err)
		}
		if n != ns[0] {
			events.wait(ctx, t, "uncongested", func(e *Event) bool { return e.Kind == Uncongested && e.Peer == ns[0].Addr() })
		}
		if msg, err := to.Receive(ctx); err != nil || string(msg.Data) != "one more" {
			t.Errorf("%v, %v", msg, err)
		}
	}
}

// Both sides begin at the same moment, again and again: who dials is settled, and nothing is lost
// or doubled.
func TestBothSidesBeginAtOnce(t *testing.T) { overAll(t, bothSidesBegin) }

func bothSidesBegin(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ctx := within(t)
	for round := range 12 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			ns := reopen(t, nodes)
			begin := make(chan struct{})
			var wg sync.WaitGroup
			sockets := []*Socket{bind(t, ns[0], 4000), bind(t, ns[1], 4000)}
			for i, s := range sockets {
				wg.Go(func() {
					<-begin
					for k := range byte(10) {
						if err := s.SendTo(ctx, []byte{k}, sockets[1-i].Addr()); err != nil {
							t.Error(err)
						}
					}
					for k := range byte(10) {
						if msg, err := s.Receive(ctx); err != nil || msg.Data[0] != k {
							t.Errorf("%v, %v; want %d", msg, err, k)
							return
						}
					}
				})
			}
			close(begin)
			wg.Wait()
		})
	}
}

// reopen makes two nodes that are closed before the next two are made, which have the same
// addresses.
func reopen(t *testing.T, nodes func(int, func(*Config)) []*Node) []*Node {
	t.Helper()
	ns := nodes(2, nil)
	t.Cleanup(func() {
		for _, n := range ns {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return ns
}

// Types of service have connections of their own over iWARP. Their messages keep apart.
func TestTypesOfServiceOverIWARP(t *testing.T) {
	leakcheck.Check(t)
	// One that does not answer in time would be made again.
	ns := nodes(t, 2, transports["iwarp"], func(c *Config) { c.handshake = time.Hour })
	ctx := within(t)
	from, to := bind(t, ns[0], 0), bind(t, ns[1], 0)
	const services = 5
	for k := range 10 {
		for tos := range uint8(services) {
			addr := to.Addr()
			addr.TOS = tos
			if err := from.SendTo(ctx, []byte{byte(k)}, addr); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := [services]byte{}
	for range 10 * services {
		msg, err := to.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if tos := msg.Addr.TOS; msg.Data[0] != next[tos] {
			t.Errorf("type of service %d: message %d; want %d", tos, msg.Data[0], next[tos])
		}
		next[msg.Addr.TOS]++
	}
	ns[1].mu.Lock()
	defer ns[1].mu.Unlock()
	if len(ns[1].links) != services {
		t.Errorf("there are %d connections for %d types of service", len(ns[1].links), services)
	}
}

// Connections are reset while long messages are on their way. Each comes whole and once.
func TestResetInMidMessage(t *testing.T) { overAll(t, resetInMidMessage) }

func resetInMidMessage(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	ns := nodes(2, nil)
	ctx := within(t)
	const messages = 20
	from, to := bind(t, ns[0], 0), bind(t, ns[1], 0)
	sums := make(chan uint32, messages)
	go func() {
		rng := rand.New(rand.NewPCG(5, 5))
		for range messages {
			data := make([]byte, wire.MaxMessage-rng.IntN(1000))
			for i := 0; i+8 <= len(data); i += 4096 {
				binary.BigEndian.PutUint64(data[i:], rng.Uint64())
			}
			sums <- crc32.ChecksumIEEE(data)
			if err := from.SendTo(ctx, data, to.Addr()); err != nil {
				t.Error(err)
				return
			}
			ns[rng.IntN(2)].cut(rng) // some of it is on its way
		}
	}()
	for i := range messages {
		msg, err := to.Receive(ctx)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if want := <-sums; crc32.ChecksumIEEE(msg.Data) != want {
			t.Errorf("message %d is another one", i)
		}
	}
	if _, err := to.TryReceive(); !errors.Is(err, ErrEmpty) {
		t.Errorf("there is another message: %v", err)
	}
}

// Of a peer that nobody is at, messages are lost after as many tries as there may be. Without a
// bound, they wait.
func TestPeerThatCannotBeReached(t *testing.T) {
	for _, over := range []string{"tcp", "iwarp"} {
		t.Run(over, func(t *testing.T) {
			leakcheck.Check(t)
			events := newEventLog()
			n := nodes(t, 1, transports[over], func(c *Config) { c.Events, c.Attempts = events.add, 3 })[0]
			ctx := within(t)
			s := bind(t, n, 0)
			ids := map[uint64]bool{}
			for range 3 {
				id, err := s.Send(ctx, &Message{Addr: Addr{Host: ownAddr(77), Port: 1}, Data: []byte("x")})
				if err != nil {
					t.Fatal(err)
				}
				ids[id] = true
			}
			for range 3 {
				e := events.wait(ctx, t, "message lost", func(e *Event) bool { return e.Kind == MessageLost })
				var why *Unreachable
				if !ids[e.ID] || e.Socket != s || e.Port != 1 || !errors.Is(e.Err, ErrUnreachable) || !errors.As(e.Err, &why) || why.Peer != ownAddr(77) {
					t.Errorf("%+v", e)
				}
				delete(ids, e.ID)
			}
			if err := s.Flush(ctx); err != nil {
				t.Error(err)
			}
			// The next one begins anew.
			if err := s.SendTo(ctx, nil, Addr{Host: ownAddr(77), Port: 1}); err != nil {
				t.Error(err)
			}
			events.wait(ctx, t, "message lost", func(e *Event) bool { return e.Kind == MessageLost })
		})
	}
}

// A socket that is closed takes its messages with it, and says so; one whose messages were
// flushed loses none.
func TestMessagesOfAClosedSocket(t *testing.T) {
	leakcheck.Check(t)
	events := newEventLog()
	n := nodes(t, 1, transports["tcp"], func(c *Config) { c.Events = events.add })[0]
	ctx := within(t)
	s := bind(t, n, 0)
	id, err := s.Send(ctx, &Message{Addr: Addr{Host: ownAddr(77), Port: 1}, Data: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	flushed := make(chan error, 1)
	go func() { flushed <- s.Flush(ctx) }()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	e := events.wait(ctx, t, "message lost", func(e *Event) bool { return e.Kind == MessageLost })
	if e.ID != id || e.Socket != s || !errors.Is(e.Err, ErrSocketClosed) {
		t.Errorf("%+v", e)
	}
	if err := <-flushed; err != nil && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Messages to a socket of the same node, and to itself, need no connection.
func TestLoopbackInANode(t *testing.T) {
	events := newEventLog()
	n := nodes(t, 1, transports["tcp"], func(c *Config) { c.Events = events.add })[0]
	ctx := within(t)
	a, b := bind(t, n, 0), bind(t, n, 0)
	for i, to := range []*Socket{b, a} {
		data := []byte{byte(i)}
		if err := a.SendTo(ctx, data, to.Addr()); err != nil {
			t.Fatal(err)
		}
		data[0] = 99 // it was copied
		if msg, err := to.Receive(ctx); err != nil || msg.Data[0] != byte(i) || msg.Addr != a.Addr() {
			t.Errorf("%v, %v", msg, err)
		}
	}
	if err := a.SendTo(ctx, nil, Addr{Host: n.Addr(), Port: 9}); err != nil {
		t.Error(err)
	}
	if e := events.wait(ctx, t, "no socket", func(e *Event) bool { return e.Kind == NoSocket }); e.Port != 9 || e.Peer != n.Addr() {
		t.Errorf("%+v", e)
	}
	if err := a.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// A node is closed while messages flow through it in all directions, again and again: calls
// return, and nothing is left.
func TestNodeClosesInMidTraffic(t *testing.T) { overAll(t, closesInMidTraffic) }

func closesInMidTraffic(t *testing.T, nodes func(int, func(*Config)) []*Node) {
	for round := range 10 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			ns := reopen(t, nodes)
			ctx := within(t)
			var wg sync.WaitGroup
			received := make(chan struct{}, 1)
			over := func(err error) {
				if !errors.Is(err, ErrNodeClosed) && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
			for i := range 6 {
				s, d := bind(t, ns[i%2], uint16(100+i)), bind(t, ns[(i+i/2)%2], uint16(200+i))
				wg.Go(func() {
					for size := 1; ; size = size * 3 % 200_003 {
						if err := s.SendTo(ctx, make([]byte, size), d.Addr()); err != nil {
							over(err)
							return
						}
					}
				})
				wg.Go(func() {
					for {
						if _, err := d.Receive(ctx); err != nil {
							over(err)
							return
						}
						select {
						case received <- struct{}{}:
						default:
						}
					}
				})
				wg.Go(func() {
					if err := s.Flush(ctx); err != nil {
						over(err)
					}
				})
			}
			for range 1 + round*5 {
				<-received
			}
			for _, n := range ns {
				wg.Go(func() {
					if err := n.Close(); err != nil {
						t.Error(err)
					}
					if _, err := n.Bind(0); !errors.Is(err, ErrNodeClosed) {
						t.Errorf("Bind: %v", err)
					}
				})
			}
			wg.Wait()
		})
	}
}
