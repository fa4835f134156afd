package rdpconn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"urnic/ulp/rdp"
)

// Port is the RDP port of DDP (docs/ddp-over-rdp.md).
const Port = 50

// Options say how a connection is opened. The zero Options are ready for use.
type Options struct {
	// Unsequenced asks for delivery in the order of arrival. The peer may ask for sequenced delivery all the same.
	Unsequenced bool
	// MaxSegment is the largest segment that is accepted, with 20 bytes for the header of IP. Zero stands for the largest
	// that there can be.
	MaxSegment int
}

func (o Options) params() rdp.Params {
	p := rdp.Params{Sequenced: !o.Unsequenced, MaxSegment: o.MaxSegment, AckRead: true}
	if p.MaxSegment == 0 {
		p.MaxSegment = 1<<16 - 1
	}
	return p
}

// An endpoint is one of RDP that is closed with the last of its connections and its listener.
type endpoint struct {
	*rdp.Endpoint
	tap *tap

	mu    sync.Mutex
	users int
}

func open(ctx context.Context, address netip.AddrPort) (*endpoint, error) {
	carrier, err := rdp.UDP(ctx, address)
	if err != nil {
		return nil, err
	}
	t := newTap(carrier.LocalAddr())
	e, err := rdp.Open(ctx, rdp.Config{Carrier: carrier, Recorder: t})
	if err != nil {
		return nil, err
	}
	return &endpoint{Endpoint: e, tap: t, users: 1}, nil
}

// enter notes one more user. Whoever calls it is one.
func (e *endpoint) enter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users++
}

// leave is the end of a use.
func (e *endpoint) leave() error {
	e.mu.Lock()
	e.users--
	last := e.users == 0
	e.mu.Unlock()
	if last {
		return e.Close()
	}
	return nil
}

// resolve returns the addresses that HOST:PORT stands for; without a host, that is 0.0.0.0.
func resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	all, err := rdp.Resolve(ctx, address)
	for i, a := range all {
		if !a.Addr().IsValid() {
			all[i] = netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port())
		}
	}
	return all, err
}

// Dial opens a connection to the address of a UDP socket, HOST:PORT. Its errors are *net.OpError of "dial"; if nothing listens
// there, they wrap syscall.ECONNREFUSED.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	addresses, err := resolve(ctx, address)
	var errs error
	if err != nil {
		errs = &net.OpError{Op: "dial", Net: "rdp", Err: err}
	}
	for _, a := range addresses {
		c, err := dial(ctx, a, o)
		if err == nil {
			return c, nil
		}
		errs = errors.Join(errs, &net.OpError{Op: "dial", Net: "rdp", Addr: net.UDPAddrFromAddrPort(a), Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errs
}

func dial(ctx context.Context, to netip.AddrPort, o Options) (*Conn, error) {
	local := netip.IPv4Unspecified()
	if to.Addr().Unmap().Is6() {
		local = netip.IPv6Unspecified()
	}
	e, err := open(ctx, netip.AddrPortFrom(local, 0))
	if err != nil {
		return nil, err
	}
	c, err := e.Dial(ctx, rdp.DialConfig{Host: to, Port: Port, Params: o.params()})
	if err != nil {
		return nil, errors.Join(rdp.WithErrno(err), e.leave())
	}
	return newConn(c, e), nil
}

// A Listener accepts connections. It has the methods of a *net.TCPListener that the tester needs.
type Listener struct {
	e   *endpoint
	rdp *rdp.Listener

	once sync.Once

	mu       sync.Mutex
	deadline time.Time
	wake     context.CancelFunc // of the Accept that waits, or nil
}

// Listen listens at the address of a UDP socket, HOST:PORT.
func Listen(ctx context.Context, address string, o Options) (*Listener, error) {
	addresses, err := resolve(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "rdp", Err: err}
	}
	e, err := open(ctx, addresses[0])
	if err != nil {
		return nil, err
	}
	l, err := e.Listen(rdp.ListenConfig{Port: Port, Params: o.params()})
	if err != nil {
		return nil, errors.Join(err, e.leave())
	}
	return &Listener{e: e, rdp: l}, nil
}

// Addr returns the address of the UDP socket.
func (l *Listener) Addr() net.Addr { return net.UDPAddrFromAddrPort(l.e.LocalAddr()) }

// SetDeadline bounds the Accept that waits, and those to come. The zero time is none.
func (l *Listener) SetDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = t
	if l.wake != nil {
		l.wake() // it looks again
	}
	return nil
}

// Accept returns the next connection. It returns an error of a timeout once the deadline has passed, and one that wraps
// net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		deadline := l.deadline
		ctx, cancel := until(deadline)
		l.wake = cancel
		l.mu.Unlock()
		c, err := l.rdp.Accept(ctx)
		late := errors.Is(ctx.Err(), context.DeadlineExceeded) || past(deadline)
		again := ctx.Err() != nil && !late
		cancel()
		switch {
		case err == nil:
			l.e.enter()
			return newConn(c, l.e), nil
		case again:
		case late:
			return nil, &net.OpError{Op: "accept", Net: "rdp", Addr: l.Addr(), Err: errLate}
		default:
			return nil, &net.OpError{Op: "accept", Net: "rdp", Addr: l.Addr(), Err: err}
		}
	}
}

// Close ends listening. Connections that were accepted continue.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() { err = errors.Join(l.rdp.Close(), l.e.leave()) })
	return err
}
