package rdp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"urnic/internal/wake"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/wire"
)

// Errors of endpoints. Those of package machine say why a connection has ended, or a call was refused.
var (
	ErrClosed = errors.New("rdp: the endpoint is closed")
	errNoPath = errors.New("rdp: no carrier: make one with UDP, RawIP or Network.Carrier")
)

// An Endpoint speaks RDP on a carrier. Its methods may be called by many goroutines.
type Endpoint struct {
	carrier  Carrier
	recorder Recorder
	start    time.Time
	most     int // the largest segment that the carrier takes

	mu        sync.Mutex // what follows, and all that the machine does
	m         *machine.Machine
	conns     map[*machine.Conn]*Conn
	listeners map[*machine.Listener]*Listener
	sending   bool // a goroutine sends what there is to send
	timer     *time.Timer
	alarm     machine.Time // when the timer rings; 0: it does not
	closed    bool
	failure   error                         // of the carrier
	quiet     wake.Bell                     // a connection has left
	locals    map[netip.Addr]netip.AddrPort // for the recorder
	paths     map[netip.Addr]path

	// Of whoever receives: when what is handed to the machine has come, if it holds the lock.
	batchAt machine.Time
	holds   bool

	ended   sync.Once
	working sync.WaitGroup
}

// Open opens an endpoint. It can be used until Close.
func Open(_ context.Context, c Config) (*Endpoint, error) {
	if c.Carrier == nil {
		return nil, errNoPath
	}
	now := time.Now()
	c.Protocol.Start = time.Duration(now.UnixNano())
	m, err := machine.New(c.Protocol)
	if err != nil {
		return nil, errors.Join(err, c.Carrier.close())
	}
	e := &Endpoint{
		carrier: c.Carrier, recorder: c.Recorder, start: now, most: c.Carrier.MaxSegment(), m: m,
		conns: map[*machine.Conn]*Conn{}, listeners: map[*machine.Listener]*Listener{},
	}
	e.timer = time.AfterFunc(time.Hour, e.ring)
	e.timer.Stop()
	e.working.Go(e.read)
	return e, nil
}

// LocalAddr returns the address of the endpoint's carrier.
func (e *Endpoint) LocalAddr() netip.AddrPort { return e.carrier.LocalAddr() }

// Counters returns what has happened at the endpoint.
func (e *Endpoint) Counters() machine.Counters {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.m.Counters()
}

// Conns returns how many connections there are, with those in CLOSE-WAIT.
func (e *Endpoint) Conns() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.m.Conns()
}

// Dial opens a connection actively and returns it when the peer has acknowledged it. If the context ends first, the attempt
// is given up. The errors of the protocol are those of machine.Machine.Open and, in a *machine.ConnError, machine.ErrRefused,
// ErrUnreachable and ErrBadLimits.
func (e *Endpoint) Dial(ctx context.Context, d DialConfig) (*Conn, error) {
	to, err := e.carrier.path(d.Host)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	if err := e.usable(); err != nil {
		e.mu.Unlock()
		return nil, err
	}
	params := e.fit(d.Params)
	mc, err := e.m.Open(e.now(), machine.OpenConfig{
		Path: machine.Path{Local: e.carrier.local(), Remote: to}, Version: d.Version, Port: d.Local, Remote: d.Port, Params: params,
	})
	if err != nil {
		e.mu.Unlock()
		return nil, err
	}
	c := e.adopt(mc, params.SendLimit)
	e.unlock()
	err = c.Wait(ctx, func(s Status) bool { return s.State != machine.SynSent && s.State != machine.SynRcvd })
	switch {
	case err != nil:
	case c.Status().State == machine.Open:
		return c, nil
	default:
		if err = c.Err(); err == nil {
			err = ErrClosed
		}
	}
	if c.refused { // nobody writes it any more
		err = &machine.ConnError{Name: mc.Name(), Err: machine.ErrRefused}
	}
	c.Close() //nolint:errcheck // it was never open
	return nil, err
}

// fit has the parameters' sizes not exceed what the carrier takes, and the window what its buffer has room for.
func (e *Endpoint) fit(p Params) Params {
	if p.SendLimit == 0 || p.SendLimit > e.most {
		p.SendLimit = min(e.most, largest)
	}
	if n := e.carrier.buffer(); p.Window == 0 && n > 0 {
		const least, most = 16, 256
		segment := p.MaxSegment
		if segment == 0 {
			segment = 1500
		}
		p.Window = min(max(n/3/segment, least), most) // a third: the kernel counts its own overhead as well
	}
	return p
}

// Listen opens a port passively.
func (e *Endpoint) Listen(c ListenConfig) (*Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usable(); err != nil {
		return nil, err
	}
	params := e.fit(c.Params)
	ml, err := e.m.Listen(machine.ListenConfig{
		Versions: c.Versions, Port: c.Port, Host: c.Host, Remote: c.Remote, Backlog: c.Backlog, Params: params,
	})
	if err != nil {
		return nil, err
	}
	l := &Listener{e: e, ml: ml, limit: params.SendLimit, ready: wake.NewOne(), done: make(chan struct{})}
	e.listeners[ml] = l
	return l, nil
}

// usable returns why nothing new can begin. It is called with the lock held.
func (e *Endpoint) usable() error {
	if e.closed {
		return ErrClosed
	}
	if e.failure != nil {
		return fmt.Errorf("rdp: the carrier has failed: %w", e.failure)
	}
	return nil
}

// adopt makes the Conn of a connection of the machine, which sends no larger segments than limit. It is called with the lock held.
func (e *Endpoint) adopt(mc *machine.Conn, limit int) *Conn {
	mc.SetSendLimit(min(limit, e.limitFor(mc.Name().Path.Remote)))
	c := &Conn{e: e, mc: mc, readable: wake.NewOne(), writable: wake.NewOne(), over: make(chan struct{})}
	e.conns[mc] = c
	return c
}

// Shutdown waits until all connections have ended or were closed, and closes the endpoint. If the context ends first, it does
// so at once, and returns why.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	for _, l := range e.listeners {
		l.end(e.now()) //nolint:errcheck // it was open
	}
	e.unlock()
	var err error
	for err == nil {
		e.mu.Lock()
		n := len(e.conns)
		heard := e.quiet.Heard()
		e.mu.Unlock()
		if n == 0 {
			break
		}
		err = wake.Await(ctx, heard, nil)
	}
	return errors.Join(err, e.Close())
}

// Close ends all connections and listeners at once, and closes the carrier. What was not acknowledged is lost: see
// Conn.Flush.
func (e *Endpoint) Close() error {
	var err error
	e.ended.Do(func() {
		e.mu.Lock()
		now := e.now()
		for _, l := range e.listeners {
			l.end(now) //nolint:errcheck // it was open
		}
		for _, c := range e.conns {
			c.mc.Close(now) //nolint:errcheck // it may have ended
			c.leave()
		}
		e.unlock() // peers are notified
		e.mu.Lock()
		e.closed = true
		e.mu.Unlock()
		e.timer.Stop()
		err = e.carrier.close()
		e.working.Wait()
	})
	return err
}

// read receives until the endpoint is closed.
func (e *Endpoint) read() {
	each := func(from netip.AddrPort, segment []byte) {
		if !e.holds {
			e.mu.Lock()
			e.holds, e.batchAt = true, e.now()
		}
		if e.recorder != nil {
			e.recorder.Segment(from, e.localFor(from), segment)
		}
		e.m.Receive(e.batchAt, machine.Path{Local: e.carrier.local(), Remote: from}, segment)
	}
	for {
		err := e.carrier.receive(each, e.unreachable)
		if e.holds {
			e.holds = false
			e.unlock()
		}
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				e.fail(err)
			}
			return
		}
	}
}

// unreachable gives up the attempt to connect of which a segment was sent to a host at which nobody is. One that belongs to
// another connection says nothing: a socket that is gone may have had the same port. For connections that are open, it is a
// hint that anybody may have forged: they end when the peer does not answer.
func (e *Endpoint) unreachable(host netip.AddrPort, segment []byte) {
	var h wire.Header
	_, _ = h.Parse(segment, nil) // the checksum is not judged, and the header is there all the same
	if h.Flags&wire.SYN == 0 {
		return
	}
	e.mu.Lock()
	defer e.unlock()
	for _, c := range e.conns {
		name := c.mc.Name()
		if c.mc.State() == machine.SynSent && c.RemoteHost() == host && name.Local == h.Source && name.Remote == h.Dest {
			c.refused = true
			c.mc.Close(e.now()) //nolint:errcheck // it was not open
			c.leave()
			c.bell.Ring()
		}
	}
}

// fail ends all connections, as the carrier has failed.
func (e *Endpoint) fail(err error) {
	e.mu.Lock()
	defer e.unlock()
	e.failure = err
	now := e.now()
	for _, l := range e.listeners {
		l.end(now) //nolint:errcheck // it was open
	}
	for _, c := range e.conns {
		c.mc.Close(now) //nolint:errcheck // it may have ended
		c.leave()
	}
}
