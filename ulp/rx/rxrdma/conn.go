package rxrdma

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma/machine"
	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
	rxwire "urnic/ulp/rx/wire"
)

// A conn is a client's connection. When its queue pair is lost, it makes another one for
// the next call.
type conn struct {
	e       *Endpoint
	addr    netip.AddrPort
	service uint16
	cfg     rx.DialConfig
	turn    chan struct{} // of whoever makes a queue pair

	mu     sync.Mutex
	link   *link
	served uint16
	closed bool
}

var errConnClosed = errors.New("rxrdma: the connection is closed")

// draw draws the epoch and the first connection ID, as OpenAFS does: bit 31 of the epoch is
// set, and bit 30 clear.
func (e *Endpoint) draw() error {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	e.epoch = binary.BigEndian.Uint32(b[:])&^(1<<30) | 1<<31
	e.nextID = binary.BigEndian.Uint32(b[4:]) &^ 3
	return nil
}

// Dial makes a connection to a service. The error has the code with which the server has
// refused it, or -1 if it can't be reached.
func (e *Endpoint) Dial(ctx context.Context, addr netip.AddrPort, service uint16, cfg rx.DialConfig) (rx.Conn, error) {
	c := &conn{e: e, addr: addr, service: service, served: service, cfg: cfg, turn: make(chan struct{}, 1)}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.link, c.served = l, l.service
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.conns[c] = struct{}{}
	}
	e.mu.Unlock()
	if closed {
		c.abandon()
		return nil, errClosed
	}
	return c, nil
}

// connect makes a queue pair, connected to the server.
func (c *conn) connect(ctx context.Context) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := c.e
	ctx, cancel := context.WithTimeout(ctx, e.cfg.SetUpTime)
	defer cancel()
	channels := e.cfg.Channels
	if c.cfg.Security != nil {
		channels = min(channels, securityChannels)
	}
	own := e.cfg.private(channels)
	own.Service, own.Epoch = c.service, e.epoch
	e.mu.Lock()
	own.ConnID = e.nextID
	e.nextID += 4
	e.mu.Unlock()
	cfg := machine.Config{Client: true, DeadTime: c.cfg.DeadTime, IdleDead: c.cfg.IdleDead, HardDead: c.cfg.HardDead}
	if c.cfg.Upgrade {
		own.Features |= wire.FeatureUpgrade
	}
	if s := c.cfg.Security; s != nil {
		own.Security = s.Index()
		var err error
		if cfg.ClientSecurity, err = s.NewConn(secure.Conn{Epoch: own.Epoch, ID: own.ConnID, Index: own.Security, Checksum: true}); err != nil {
			return nil, err
		}
	}
	l, err := e.newLink(channels)
	if err != nil {
		return nil, err
	}
	l.client = true
	stop := context.AfterFunc(e.ctx, cancel)
	err = l.qp.Connect(ctx, c.addr.String(), param(&own))
	stop()
	if err != nil {
		_ = l.release() // Connect says more
		return nil, dialError(ctx, err)
	}
	if cfg.Peer, err = agreed(l.qp, &own); err != nil {
		_ = l.release()
		e.violated(Violation{Peer: c.addr, Rule: machine.RuleSetUp, Err: err})
		return nil, &machine.AbortError{Code: rxwire.ProtocolError, Conn: true, Cause: err}
	}
	cfg.Own = own
	cfg.Own.Channels = cfg.Peer.Channels
	l.service = cfg.Peer.Service
	if err := e.add(l); err != nil {
		_ = l.release()
		return nil, err
	}
	e.mu.Lock()
	e.stats.Dialled++
	e.mu.Unlock()
	l.begin(cfg)
	return l, nil
}

// dialError is why there is no connection, as callers see it.
func dialError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, context.Canceled) {
		return fmt.Errorf("rxrdma: %w", cause)
	}
	code := rxwire.CallDead
	if r, ok := errors.AsType[*mpa.RejectedError](err); ok {
		if c, err := wire.ParseRefusal(r.PrivateData); err == nil {
			return &machine.AbortError{Code: rxwire.Code(c), Remote: true, Conn: true}
		}
	}
	return &machine.AbortError{Code: code, Conn: true, Cause: err}
}

// agreed is what the server has said of itself when it accepted.
func agreed(qp *rnic.QP, own *wire.Private) (wire.Private, error) {
	params, _ := qp.Params()
	p, err := wire.ParsePrivate(params.PrivateData)
	switch {
	case err != nil:
		return p, err
	case p.Channels > own.Channels:
		return p, fmt.Errorf("%d channels were asked for, and there are %d", own.Channels, p.Channels)
	case p.Epoch != own.Epoch || p.ConnID != own.ConnID || p.Security != own.Security:
		return p, errors.New("the server has accepted another connection than was asked for")
	case p.Service != own.Service && own.Features&wire.FeatureUpgrade == 0:
		return p, fmt.Errorf("the service is %d, and not %d", p.Service, own.Service)
	}
	return p, enough(&p, p.Channels)
}

// Begin begins a call. While all channels have calls, it waits for one to end.
func (c *conn) Begin(ctx context.Context) (rx.Call, error) {
	for {
		l, err := c.current(ctx)
		if err != nil {
			return nil, err
		}
		k, err := l.beginCall(ctx)
		switch {
		case err == nil:
			k.watch()
			return k, nil
		case !errors.Is(err, errGone):
			return nil, err
		}
	}
}

// errGone says that a link takes no more calls.
var errGone = errors.New("the queue pair takes no more calls")

// beginCall begins a call on a link.
func (l *link) beginCall(ctx context.Context) (*call, error) {
	l.mu.Lock()
	for first := true; ; first = false {
		if l.dead || l.retired {
			l.mu.Unlock()
			return nil, errGone
		}
		mc, err := l.mc.Begin(l.now())
		if err == nil {
			k := newCall(ctx, l, mc)
			l.leave()
			return k, nil
		}
		if !errors.Is(err, machine.ErrNoChannel) {
			l.mu.Unlock()
			return nil, errGone
		}
		if err := l.waitVacant(ctx, first); err != nil {
			l.mu.Unlock()
			return nil, err
		}
	}
}

// waitVacant waits until a channel may be free, with the link unlocked. Whoever has waited
// before goes to the front.
func (l *link) waitVacant(ctx context.Context, first bool) error {
	ch := make(chan struct{})
	if first {
		l.waiting = append(l.waiting, ch)
	} else {
		l.waiting = append([]chan struct{}{ch}, l.waiting...)
	}
	l.leave()
	select {
	case <-ch:
		l.mu.Lock()
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	select {
	case <-ch:
		l.wake(false) // another one may go
	default:
		for i, w := range l.waiting {
			if w == ch {
				l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
				break
			}
		}
	}
	return ctx.Err()
}

// current returns a link that takes calls: the one that there is, or a new one.
func (c *conn) current(ctx context.Context) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l, err := c.usable(); l != nil || err != nil {
		return l, err
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if l, err := c.usable(); l != nil || err != nil {
		return l, err
	}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	closed := c.closed
	old := c.link
	c.link, c.served = l, l.service
	c.mu.Unlock()
	if old != nil {
		old.retire()
	}
	if closed {
		l.cancel()
		return nil, errConnClosed
	}
	return l, nil
}

// usable returns the link that there is, if it takes calls.
func (c *conn) usable() (*link, error) {
	c.mu.Lock()
	l, closed := c.link, c.closed
	c.mu.Unlock()
	if closed {
		return nil, errConnClosed
	}
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.retired || l.mc.Closing() {
		return nil, nil
	}
	return l, nil
}

// Service is the service ID, which an upgrade has changed.
func (c *conn) Service() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// Peer is the server's address.
func (c *conn) Peer() netip.AddrPort { return c.addr }

// Close ends the connection, and waits until nothing is left of it.
func (c *conn) Close() error {
	if l := c.abandon(); l != nil {
		<-l.over
	}
	return nil
}

// abandon ends the connection.
func (c *conn) abandon() *link {
	c.mu.Lock()
	l := c.link
	c.closed = true
	c.link = nil
	c.mu.Unlock()
	c.e.mu.Lock()
	delete(c.e.conns, c)
	c.e.mu.Unlock()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	l.mc.AbortAll(l.now(), rx.UserAbort)
	l.retired = true
	l.leave()
	l.cancel()
	return l
}
