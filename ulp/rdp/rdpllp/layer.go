package rdpllp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"urnic/rnic"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// Port is the RDP port of DDP, one of those that both versions have. UDP's port tells services apart.
const Port = llpwire.Port

// A Config describes a layer. The zero Config is useful.
type Config struct {
	Version uint8 // of RDP, of connections that are dialed: 1 or 2; 0 is 2

	// Window is how many segments may be on their way to this side: 64 if it is 0.
	Window int

	// MaxSegment bounds the segments that are sent and accepted, counted with 20 bytes for IP's header. 0: what the path to
	// the peer takes in one packet, as far as the system knows.
	MaxSegment int

	// AckDelay is how long an acknowledgement may wait for data to go with: 10 ms if it is 0; negative: not at all.
	AckDelay time.Duration

	// Congestion makes the congestion control of a connection. Nil: none, as RDP is specified.
	Congestion func() congestion.Controller

	// Recorder is notified of all segments, or nil.
	Recorder rdp.Recorder

	// Carrier opens the carrier at an address; nil: rdp.UDP.
	Carrier func(ctx context.Context, addr netip.AddrPort) (rdp.Carrier, error)
}

// A Layer is the lower layer. It implements rnic.LowerLayer, and may be shared by devices.
type Layer struct {
	cfg Config

	// ordered has segments placed in order, as over TCP: RDP holds what comes early, and acknowledges it. Tests
	// compare with it.
	ordered bool

	mu        sync.Mutex
	dialing   map[bool]*shared           // by whether it is of IPv6
	listening map[netip.AddrPort]*shared // by its address: a port can be listened at again while connections continue
}

var _ rnic.LowerLayer = (*Layer)(nil)

// New returns a layer. It opens sockets when it is used, and closes those that nobody uses.
func New(c Config) *Layer {
	if c.Carrier == nil {
		c.Carrier = rdp.UDP
	}
	return &Layer{cfg: c, dialing: map[bool]*shared{}, listening: map[netip.AddrPort]*shared{}}
}

// params are those of a connection.
func (l *Layer) params() rdp.Params {
	// What is acknowledged when it was read is flow control: nothing is dropped for want of room, and sent again.
	p := rdp.Params{Window: l.cfg.Window, MaxSegment: l.cfg.MaxSegment, SendLimit: l.cfg.MaxSegment, Congestion: l.cfg.Congestion, AckRead: true}
	if p.MaxSegment == 0 {
		p.MaxSegment = 1<<16 - 1
	}
	if l.ordered {
		p.Sequenced, p.AckRead = true, false
	}
	return p
}

// open opens an endpoint.
func (l *Layer) open(ctx context.Context, addr netip.AddrPort) (*rdp.Endpoint, error) {
	c, err := l.cfg.Carrier(ctx, addr)
	if err != nil {
		return nil, err
	}
	return rdp.Open(ctx, rdp.Config{Carrier: c, Recorder: l.cfg.Recorder, Protocol: machine.Config{AckDelay: l.cfg.AckDelay}})
}

// shared is an endpoint that is closed when nobody uses it any more.
type shared struct {
	*rdp.Endpoint
	mu    sync.Mutex
	users int
}

// enter notes one more user, unless the endpoint is closed.
func (s *shared) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		return false
	}
	s.users++
	return true
}

// used reports whether anybody does.
func (s *shared) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users > 0
}

// leave is the end of a use.
func (s *shared) leave() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if last {
		s.Close() //nolint:errcheck // there is nobody left to tell
	}
}

func (s *shared) addr() net.Addr { return net.UDPAddrFromAddrPort(s.LocalAddr()) }

// dialer returns the endpoint from which to dial, entered.
func (l *Layer) dialer(ctx context.Context, to netip.Addr) (*shared, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	six := to.Unmap().Is6()
	if s := l.dialing[six]; s != nil && s.enter() {
		return s, nil
	}
	all := netip.IPv4Unspecified()
	if six {
		all = netip.IPv6Unspecified()
	}
	e, err := l.open(ctx, netip.AddrPortFrom(all, 0))
	if err != nil {
		return nil, err
	}
	s := &shared{Endpoint: e, users: 1}
	l.dialing[six] = s
	return s, nil
}

// Dial implements rnic.LowerLayer.
func (l *Layer) Dial(ctx context.Context, address string, o rnic.Offer) (rnic.LLPConn, error) {
	if err := checkPrivateData(o.PrivateData); err != nil {
		return nil, err
	}
	addrs, err := rdp.Resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var errs error
	for _, a := range addrs {
		switch { // this machine
		case !a.Addr().IsValid() || a.Addr() == netip.IPv4Unspecified():
			a = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
		case a.Addr() == netip.IPv6Unspecified():
			a = netip.AddrPortFrom(netip.IPv6Loopback(), a.Port())
		}
		c, err := l.dial(ctx, a, o)
		if err == nil {
			return c, nil
		}
		if errs = errors.Join(errs, err); ctx.Err() != nil || !errors.Is(err, machine.ErrRefused) {
			break
		}
	}
	return nil, errs
}

// dial opens a connection to one address.
func (l *Layer) dial(ctx context.Context, to netip.AddrPort, o rnic.Offer) (rnic.LLPConn, error) {
	s, err := l.dialer(ctx, to.Addr())
	if err != nil {
		return nil, err
	}
	c, err := s.Dial(ctx, rdp.DialConfig{Host: to, Port: Port, Version: l.cfg.Version, Params: l.params()})
	if err == nil {
		var conn *conn
		if conn, err = initiate(ctx, c, s, o); err == nil {
			return conn, nil
		}
		c.Close() //nolint:errcheck // err says why
	}
	s.leave()
	return nil, &net.OpError{Op: "dial", Net: "rdp", Addr: net.UDPAddrFromAddrPort(to), Err: rdp.WithErrno(err)}
}

// Listen implements rnic.LowerLayer.
func (l *Layer) Listen(ctx context.Context, address string) (rnic.LLPListener, error) {
	addrs, err := rdp.Resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	s, err := l.listener(ctx, addrs[0])
	if err != nil {
		return nil, err
	}
	rl, err := s.Listen(rdp.ListenConfig{Port: Port, Params: l.params()})
	if err != nil {
		s.leave()
		if errors.Is(err, machine.ErrPortInUse) {
			err = &net.OpError{Op: "listen", Net: "rdp", Addr: s.addr(), Err: syscall.EADDRINUSE}
		}
		return nil, err
	}
	return &listener{rdp: rl, shared: s}, nil
}

// listener returns the endpoint at which to listen, entered.
func (l *Layer) listener(ctx context.Context, addr netip.AddrPort) (*shared, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.listening[addr]; s != nil && s.enter() {
		return s, nil
	}
	e, err := l.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	s := &shared{Endpoint: e, users: 1}
	for a, old := range l.listening {
		if !old.used() {
			delete(l.listening, a)
		}
	}
	l.listening[e.LocalAddr()] = s
	return s, nil
}

// A listener is an endpoint that accepts connections. It implements rnic.LLPListener.
type listener struct {
	rdp    *rdp.Listener
	shared *shared
	once   sync.Once
}

// Accept implements rnic.LLPListener.
func (l *listener) Accept() (rnic.LLPArrival, error) {
	c, err := l.rdp.Accept(context.Background())
	if err != nil {
		return nil, err
	}
	if !l.shared.enter() { // it was closed meanwhile
		c.Close() //nolint:errcheck // it is of no use
		return nil, rdp.ErrListenerClosed
	}
	return &arrival{rdp: c, shared: l.shared}, nil
}

// Addr implements rnic.LLPListener.
func (l *listener) Addr() net.Addr { return l.shared.addr() }

// Close implements rnic.LLPListener. Connections that were accepted continue.
func (l *listener) Close() error {
	var err error
	l.once.Do(func() {
		err = l.rdp.Close()
		l.shared.leave()
	})
	return err
}
