package rds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/rds/wire"
)

// The addresses of a node that is attacked, of the peer that attacks it, which has the lower
// address and so is the one that dials, and of a peer that does nothing wrong.
var (
	hostileAddr = ownAddr(1)
	victimAddr  = ownAddr(205)
	goodAddr    = ownAddr(209)
)

// ownAddr returns a loopback address that no other process uses: ports are fixed.
func ownAddr(i byte) netip.Addr { return loopback.Process().Addr(i) }

// An eventLog keeps the events of a node.
type eventLog struct {
	mu   sync.Mutex
	all  []Event
	more chan struct{} // closed when there is another one
}

func newEventLog() *eventLog { return &eventLog{more: make(chan struct{})} }

func (l *eventLog) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
	close(l.more)
	l.more = make(chan struct{})
}

// wait returns the first event that is wanted, and drops it and those before it.
func (l *eventLog) wait(ctx context.Context, t testing.TB, what string, want func(*Event) bool) Event {
	t.Helper()
	for {
		l.mu.Lock()
		for i := range l.all {
			if want(&l.all[i]) {
				e := l.all[i]
				l.all = l.all[i+1:]
				l.mu.Unlock()
				return e
			}
		}
		more := l.more
		seen := len(l.all)
		l.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("no event: %s; there were %d others", what, seen)
		}
	}
}

// violation returns the next rule that a peer has broken.
func (l *eventLog) violation(ctx context.Context, t testing.TB, by netip.Addr) *Violation {
	t.Helper()
	e := l.wait(ctx, t, "violation", func(e *Event) bool { return e.Kind == PeerViolation })
	var v *Violation
	if !errors.As(e.Err, &v) || e.Peer != by || v.Peer != by {
		t.Fatalf("the event is %v of %v: %v; want a violation by %v", e.Kind, e.Peer, e.Err, by)
	}
	return v
}

// A scene is a node, with a good peer that exchanges messages with it all the time.
type scene struct {
	t      *testing.T
	ctx    context.Context
	over   string
	victim *Node
	events *eventLog
	socket *Socket // port 4000 of the victim, to which hostile peers send
	device *rnic.Device
	echoes func() // waits for more echoes of the good peer
}

// inScene runs a test with a live node, over both transports.
func inScene(t *testing.T, change func(*Config), test func(t *testing.T, s *scene)) {
	for _, over := range []string{"tcp", "iwarp"} {
		t.Run(over, func(t *testing.T) {
			leakcheck.Check(t)
			test(t, newScene(t, over, change))
		})
	}
}

func newScene(t *testing.T, over string, change func(*Config)) *scene {
	t.Helper()
	s := &scene{t: t, ctx: within(t), over: over, events: newEventLog()}
	if over == "iwarp" {
		dev, err := rnic.Open(rnic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		s.device = dev
	}
	open := func(addr netip.Addr, change func(*Config)) *Node {
		cfg := Config{Addr: addr, Transports: []Transport{transports[over](t)}}
		if change != nil {
			change(&cfg)
		}
		n, err := Open(s.ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		return n
	}
	s.victim = open(victimAddr, func(c *Config) {
		c.Events = s.events.add
		if change != nil {
			change(c)
		}
	})
	s.socket = bind(t, s.victim, 4000)
	s.exchange(open(goodAddr, nil))
	return s
}

// exchange has a good peer send messages, and the victim's other socket return them, until the
// test ends. Each comes once, and in order.
func (s *scene) exchange(good *Node) {
	ask, answer := bind(s.t, good, 6000), bind(s.t, s.victim, 6001)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	count := make(chan int)
	wg.Go(func() {
		for {
			msg, err := answer.Receive(ctx)
			if err != nil || answer.SendTo(ctx, msg.Data, msg.Addr) != nil {
				return
			}
		}
	})
	wg.Go(func() {
		for i := 0; ; i++ {
			want := fmt.Sprintf("message %d", i)
			if ask.SendTo(ctx, []byte(want), answer.Addr()) != nil {
				return
			}
			msg, err := ask.Receive(ctx)
			if err != nil {
				return
			}
			if string(msg.Data) != want {
				s.t.Errorf("the good peer got %q; want %q", msg.Data, want)
			}
			select {
			case count <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	s.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	s.echoes = func() {
		s.t.Helper()
		for range 3 {
			select {
			case <-count:
			case <-s.ctx.Done():
				s.t.Fatal("the good peer gets no answers any more")
			}
		}
	}
	s.echoes()
}

// wantOnly checks what the victim's socket has received from hostile peers.
func (s *scene) wantOnly(messages ...string) {
	s.t.Helper()
	for _, want := range messages {
		msg, err := s.socket.Receive(s.ctx)
		if err != nil {
			s.t.Fatalf("%v; want %q", err, want)
		}
		if string(msg.Data) != want {
			s.t.Errorf("%q is delivered; want %q", msg.Data, want)
		}
	}
	if msg, err := s.socket.TryReceive(); !errors.Is(err, ErrEmpty) {
		s.t.Errorf("%v, %v is delivered; want nothing more", msg, err)
	}
}

// A hostilePeer may say anything over a connection of a transport.
type hostilePeer struct {
	*scene
	next uint64
	conn hostileConn

	mu     sync.Mutex
	heard  []wire.Header
	ports  []byte // the last map of congested ports
	part   []byte // of the next one
	sent   int    // Sends
	told   int    // receives that the node was given credit for
	given  int    // credit that the node has given
	change chan struct{}
	over   chan struct{} // closed when the node has ended the connection
}

// A hostileConn carries what a hostile peer says: over TCP, bytes; over iWARP, Sends.
type hostileConn interface {
	write(b []byte) error
	// read returns the next segment that has come.
	read() (wire.Header, []byte, error)
	close()
}

// dial connects a hostile peer, which reads what the node says.
func (s *scene) dial() *hostilePeer {
	s.t.Helper()
	p, err := s.tryDial(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// tryDial is dial that returns an error. Over iWARP, change changes the private data.
func (s *scene) tryDial(change func(*wire.Private)) (*hostilePeer, error) {
	p := &hostilePeer{scene: s, change: make(chan struct{}), over: make(chan struct{})}
	var err error
	if s.over == "tcp" {
		p.conn, err = dialBytes(s.ctx)
	} else {
		private := wire.Private{
			Source: hostileAddr, Dest: victimAddr, Major: wire.Major, Minor: wire.Minor, MinorMask: wire.MinorMask, Credit: 64,
		}
		if change != nil {
			change(&private)
		}
		p.conn, err = dialVerbs(s.ctx, s.device, private)
	}
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(p.listen)
	s.t.Cleanup(func() {
		p.conn.close()
		wg.Wait()
	})
	return p, nil
}

// listen notes what the node says until it ends the connection.
func (p *hostilePeer) listen() {
	defer close(p.over)
	for {
		h, data, err := p.conn.read()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.heard = append(p.heard, h)
		p.given += int(h.Credit)
		if h.Kind() == wire.Map {
			if p.part = append(p.part, data...); len(p.part) >= wire.MapLen {
				p.ports, p.part = p.part, nil
			}
		}
		close(p.change)
		p.change = make(chan struct{})
		p.mu.Unlock()
	}
}

// until waits until what the node has said fulfils a condition.
func (p *hostilePeer) until(what string, ok func() bool) {
	p.t.Helper()
	for {
		p.mu.Lock()
		done, change, heard := ok(), p.change, len(p.heard)
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-change:
		case <-p.over:
			p.t.Fatalf("the node has ended the connection before %s; it has said %d things", what, heard)
		case <-p.ctx.Done():
			p.t.Fatalf("there was no %s; the node has said %d things: %v", what, heard, p.heard)
		}
	}
}

// await waits until the node has said something.
func (p *hostilePeer) await(what string, want func(h *wire.Header) bool) (found wire.Header) {
	p.t.Helper()
	p.until(what, func() bool {
		i := slices.IndexFunc(p.heard, func(h wire.Header) bool { return want(&h) })
		if i >= 0 {
			found = p.heard[i]
		}
		return i >= 0
	})
	return found
}

// congested waits until the node says that a port is.
func (p *hostilePeer) congested(port int) {
	p.t.Helper()
	p.until("congestion", func() bool { return len(p.ports) > 0 && p.ports[port/8]&(1<<(port%8)) != 0 })
}

// send sends a message as the transport wants it. Over iWARP, it uses flow control as a peer
// should.
func (p *hostilePeer) send(h wire.Header, data []byte) error {
	for first := true; first || len(data) > 0; first = false {
		k := len(data)
		if p.scene.over == "iwarp" {
			const posted = 16 // at the beginning
			k = min(k, wire.FragmentLen)
			p.until("credit", func() bool { return posted+p.given-p.sent > 1 })
			p.mu.Lock()
			h.Credit = uint8(min(255, len(p.heard)-p.told))
			p.told += int(h.Credit)
			p.sent++
			p.mu.Unlock()
		}
		if err := p.conn.write(segment(h, data[:k])); err != nil {
			return err
		}
		data = data[k:]
	}
	return nil
}

// says sends a header and data.
func (p *hostilePeer) says(h wire.Header, data []byte) { p.write(segment(h, data)) }

// segment encodes a header, with a checksum, and data.
func segment(h wire.Header, data []byte) []byte { return append(h.AppendTo(nil, true), data...) }

// write sends bytes; that may fail, as the node may have ended the connection by now.
func (p *hostilePeer) write(b []byte) {
	p.mu.Lock()
	p.sent++
	p.mu.Unlock()
	_ = p.conn.write(b)
}

// data is the header of the peer's next message, to port 4000.
func (p *hostilePeer) data(n int) wire.Header {
	p.next++
	return wire.Header{Sequence: p.next, Len: uint32(n), SourcePort: 5000, DestPort: 4000}
}

// message sends a message as it should be.
func (p *hostilePeer) message(data string) {
	p.t.Helper()
	if err := p.send(p.data(len(data)), []byte(data)); err != nil {
		p.t.Error(err)
	}
}

// probe sends a probe with extension headers.
func (p *hostilePeer) probe(x wire.Extensions) {
	raw, err := x.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	p.next++
	p.says(wire.Header{Sequence: p.next, SourcePort: wire.ProbePort, Extensions: raw}, nil)
}

// hello tells the peer's generation, and that it acknowledges in headers, and answers the node's probe:
// acknowledgements count then.
func (p *hostilePeer) hello(generation uint32) {
	p.t.Helper()
	p.probe(wire.Extensions{Has: 1<<wire.ExtGeneration | 1<<wire.ExtUrnic, Generation: generation})
	if p.scene.over == "tcp" { // over iWARP, private data have told
		probe := p.await("its probe", func(h *wire.Header) bool { return h.Kind() == wire.Probe })
		p.next++
		p.says(wire.Header{Sequence: p.next, DestPort: wire.ProbePort, Ack: probe.Sequence}, nil)
	}
	// The answer to an earlier probe is sent again on a new connection.
	p.await("its answer", func(h *wire.Header) bool { return h.Kind() == wire.Pong && h.Flags&wire.Retransmitted == 0 })
}

// wantReset waits until the node has ended the connection.
func (p *hostilePeer) wantReset() {
	p.t.Helper()
	select {
	case <-p.over:
	case <-p.ctx.Done():
		p.t.Fatal("the node does not end the connection")
	}
}

// listenAt listens at an address over TCP, as a hostile peer.
func listenAt(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func addrOf(l net.Listener) netip.Addr { return l.Addr().(*net.TCPAddr).AddrPort().Addr() }
