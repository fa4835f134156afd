package rendezvous

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rnic"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A sim is a network of hosts, each of which has ports of its own.
type sim struct {
	testing.TB
	// blocked, if set, says which dials get no answer at all.
	blocked func(from, to netip.Addr) bool
	// hidden, if set, says as whom a host is seen by others.
	hidden func(from netip.Addr) netip.Addr

	mu        sync.Mutex
	listeners map[netip.AddrPort]*simListener
	users     map[netip.AddrPort]int // that own sockets
	dials     int
	psn       uint32 // of the last side
}

// inSim runs f in a bubble.
func inSim(t *testing.T, f func(s *sim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&sim{TB: t, listeners: map[netip.AddrPort]*simListener{}, users: map[netip.AddrPort]int{}})
	})
}

// A simListener is a port, too: nobody gets in until it is open.
type simListener struct {
	at    netip.AddrPort
	sim   *sim
	open  bool
	queue chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (s *sim) reserve(host netip.Addr, user int) func(context.Context, string) (Port, error) {
	return func(_ context.Context, address string) (Port, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		n, err := net.LookupPort("tcp", port)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		l := &simListener{at: netip.AddrPortFrom(host, uint16(n)), sim: s, queue: make(chan net.Conn, 4096), done: make(chan struct{})}
		if s.listeners[l.at] != nil {
			return nil, &net.OpError{Op: "listen", Err: syscall.EADDRINUSE}
		}
		s.listeners[l.at], s.users[l.at] = l, user
		return l, nil
	}
}

func (l *simListener) Listen() (net.Listener, error) {
	l.sim.mu.Lock()
	defer l.sim.mu.Unlock()
	l.open = true
	return l, nil
}

func (l *simListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *simListener) Close() error {
	l.once.Do(func() {
		l.sim.mu.Lock()
		delete(l.sim.listeners, l.at)
		l.sim.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (l *simListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// A simConn says the addresses of the hosts.
type simConn struct {
	*simnet.Conn
	local, remote netip.AddrPort
}

func (c *simConn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *simConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// dial dials as a host's user.
func (s *sim) dial(ctx context.Context, from netip.Addr, user int, to netip.AddrPort) (net.Conn, error) {
	if s.blocked != nil && s.blocked(from, to.Addr()) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	if to.Addr().IsLoopback() {
		to = netip.AddrPortFrom(from, to.Port())
	}
	l := s.listeners[to]
	s.dials++
	source := netip.AddrPortFrom(from, uint16(40000+s.dials%20000))
	s.users[source] = user
	closed := l == nil || !l.open
	s.mu.Unlock()
	if closed {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	if s.hidden != nil {
		source = netip.AddrPortFrom(s.hidden(from), source.Port())
	}
	a, b := simnet.Pipe(simnet.Options{})
	select {
	case l.queue <- &simConn{b, to, source}:
		return &simConn{a, source, to}, nil
	case <-l.done:
		_ = a.Close()
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
}

// A process is one of a host, with one device and a matchmaker.
type process struct {
	*sim
	host netip.Addr
	user int
	m    *Matchmaker
	dev  *rnic.Device
	pd   *rnic.PD
	last uint32
}

// A pair of numbers of what is at an end.
type side struct {
	*process
	ep   *Endpoint
	num  uint32
	psn  uint32
	qp   *rnic.QP
	send *rnic.CQ
	recv *rnic.CQ
	done chan error
}

var (
	hostA = netip.MustParseAddr("192.0.2.1")
	hostB = netip.MustParseAddr("192.0.2.2")
	hostC = netip.MustParseAddr("2001:db8::3")
)

// process starts one of the hosts' first user, which ends with the test.
func (s *sim) process(host netip.Addr) *process {
	s.Helper()
	return s.processOf(host, 1)
}

func (s *sim) processOf(host netip.Addr, user int) *process {
	s.Helper()
	p := s.closedProcess(host, user, func(*Config) {})
	if err := p.m.Bind(s.Context()); err != nil {
		s.Fatal(err)
	}
	if _, err := p.m.Listen(); err != nil {
		s.Fatal(err)
	}
	return p
}

// closedProcess starts one that can't be called, as it has no slot.
func (s *sim) closedProcess(host netip.Addr, user int, change func(*Config)) *process {
	s.Helper()
	cfg := Config{
		Reserve: s.reserve(host, user),
		Dial: func(ctx context.Context, _ netip.Addr, to netip.AddrPort) (net.Conn, error) {
			return s.dial(ctx, host, user, to)
		},
		Local: func(a netip.Addr) bool { return a == host || a.IsLoopback() },
		SameUser: func(_, remote net.Addr) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.users[remote.(*net.TCPAddr).AddrPort()] == user
		},
	}
	change(&cfg)
	p := &process{sim: s, host: host, user: user}
	var err error
	if p.dev, err = rnic.Open(rnic.Config{}); err != nil {
		s.Fatal(err)
	}
	cfg.Device = p.dev
	p.m = New(cfg)
	s.Cleanup(p.kill)
	if p.pd, err = p.dev.AllocPD(); err != nil {
		s.Fatal(err)
	}
	return p
}

// kill ends a process, which must hold nothing then.
func (p *process) kill() {
	if err := p.m.Close(); err != nil {
		p.Errorf("closing the matchmaker: %v", err)
	}
	if err := p.dev.Close(); err != nil {
		p.Errorf("closing the device: %v", err)
	}
	for r := range pd.Resource(pd.NumResources) {
		if n := p.dev.Held(r); n != 0 {
			p.Errorf("the device holds %d %v", n, r)
		}
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if len(p.m.held.all) != 0 || len(p.m.endpoints) != 0 {
		p.Errorf("the matchmaker holds %d requests, %d endpoints", len(p.m.held.all), len(p.m.endpoints))
	}
}

// side makes a queue pair.
func (p *process) side() *side {
	p.Helper()
	p.last++
	p.psn += 0x12345
	s := &side{process: p, num: p.m.Slot()<<IndexBits | p.last, psn: p.psn & maxNumber, done: make(chan error, 1)}
	var err error
	for _, cq := range []**rnic.CQ{&s.send, &s.recv} {
		if *cq, err = p.dev.CreateCQ(rnic.CQAttr{Entries: 64}); err != nil {
			p.Fatal(err)
		}
	}
	if s.qp, err = p.pd.CreateQP(rnic.QPAttr{SendCQ: s.send, RecvCQ: s.recv}); err != nil {
		p.Fatal(err)
	}
	if s.ep, err = p.m.Endpoint(s.num, s.qp); err != nil {
		p.Fatal(err)
	}
	return s
}

// peer returns what another side's program is told of this one.
func (s *side) peer() Peer { return Peer{QPN: s.num, Addr: s.host, PSN: s.psn, IRD: 16} }

// rtr names the peer, as the program does that modifies to RTR.
func (s *side) rtr(to *side, change ...func(*Peer)) {
	s.Helper()
	p := to.peer()
	p.From = s.host
	for _, c := range change {
		c(&p)
	}
	if err := s.ep.Connect(p, func(err error) { s.done <- err }); err != nil {
		s.Fatal(err)
	}
}

// rts tells that it is ready to send.
func (s *side) rts(budget time.Duration) { s.ep.Ready(s.psn, MaxRNRRetry, budget) }

// up names the peer, and is ready to send at once.
func (s *side) up(to *side, change ...func(*Peer)) {
	s.Helper()
	s.rtr(to, change...)
	s.rts(0)
}

// wants checks how the attempts of sides end.
func wants(t testing.TB, sides ...*side) {
	t.Helper()
	for _, s := range sides {
		if err := <-s.done; err != nil {
			t.Errorf("QP 0x%x: %v", s.num, err)
		}
	}
}

// talk sends a message each way. The side that has been dialled goes first.
func talk(t testing.TB, a, b *side) {
	t.Helper()
	for _, d := range [][2]*side{{a, b}, {b, a}} {
		if err := d[1].qp.PostRecv(rnic.RecvWR{ID: 1}); err != nil {
			t.Fatal(err)
		}
		if err := d[0].qp.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend}); err != nil {
			t.Fatal(err)
		}
	}
	for _, cq := range []*rnic.CQ{a.send, b.send, a.recv, b.recv} {
		var wcs [1]rnic.WC
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if n, err := cq.Wait(ctx, wcs[:]); n != 1 || err != nil || wcs[0].Status != rnic.StatusSuccess {
			t.Errorf("completion: %d, %v, %+v", n, err, wcs[0])
		}
		cancel()
	}
}

// wantPending checks that the attempts of sides are not over.
func wantPending(t testing.TB, sides ...*side) {
	t.Helper()
	synctest.Wait()
	for _, s := range sides {
		select {
		case err := <-s.done:
			t.Errorf("QP 0x%x: the attempt is over: %v", s.num, err)
		default:
		}
	}
}
