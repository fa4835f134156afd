package rxudp

import (
	"context"
	"errors"
	"net/netip"

	"urnic/ulp/rx"
	"urnic/ulp/rx/machine"
)

// A conn is a client's connection.
type conn struct {
	e       *Endpoint
	mc      *machine.Conn
	waiting []chan struct{} // for a channel, the longest first
	closed  bool
}

// Dial makes a connection to a service. Nothing is sent before the first call.
func (e *Endpoint) Dial(ctx context.Context, addr netip.AddrPort, service uint16, cfg rx.DialConfig) (rx.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if err := e.reaches(addr.Addr()); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.unlock()
	if e.closed || e.failure != nil {
		return nil, errors.Join(errClosed, e.failure)
	}
	mc, err := e.m.Dial(e.now(), addr, service, machine.DialConfig{
		Security: cfg.Security, Upgrade: cfg.Upgrade, DeadTime: cfg.DeadTime, IdleDead: cfg.IdleDead, HardDead: cfg.HardDead,
	})
	if err != nil {
		return nil, err
	}
	c := &conn{e: e, mc: mc}
	mc.Owner = c
	e.conns[c] = struct{}{}
	return c, nil
}

var (
	errClosed   = errors.New("rx: the endpoint is closed")
	errNoIPv6   = errors.New("rx: the endpoint has an address of IPv4, and can't reach one of IPv6")
	errOnlyIPv6 = errors.New("rx: the endpoint has an address of IPv6, and can't reach one of IPv4")
)

// reaches returns an error if the socket has not the family of an address.
func (e *Endpoint) reaches(a netip.Addr) error {
	local := e.sock.Local().Addr()
	switch {
	case !e.sock.IPv6() && a.Is6():
		return errNoIPv6
	case e.sock.IPv6() && a.Is4() && !local.IsUnspecified():
		return errOnlyIPv6
	}
	return nil
}

// Begin begins a call. While all four channels have calls, it waits for one to end.
func (c *conn) Begin(ctx context.Context) (rx.Call, error) {
	k, err := c.begin(ctx)
	if err != nil {
		return nil, err // a nil *call would be a call
	}
	return k, nil
}

func (c *conn) begin(ctx context.Context) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := c.e
	e.mu.Lock()
	for first := true; ; first = false {
		mc, err := c.mc.Begin(e.now())
		if err == nil {
			k := newCall(ctx, e, mc)
			e.unlock()
			k.watch()
			return k, nil
		}
		if !errors.Is(err, machine.ErrNoChannel) {
			e.unlock()
			return nil, err
		}
		if err := c.wait(ctx, first); err != nil {
			e.unlock()
			return nil, err
		}
	}
}

// wait waits until a channel may be free, with the lock released. Whoever has waited before
// goes to the front.
func (c *conn) wait(ctx context.Context, first bool) error {
	e := c.e
	ch := make(chan struct{})
	if first {
		c.waiting = append(c.waiting, ch)
	} else {
		c.waiting = append([]chan struct{}{ch}, c.waiting...)
	}
	e.attend()
	e.unlock()
	select {
	case <-ch:
		e.mu.Lock()
		return nil
	case <-ctx.Done():
		e.mu.Lock()
		select {
		case <-ch:
			c.wake() // another one may go
		default:
			for i, w := range c.waiting {
				if w == ch {
					c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
					break
				}
			}
		}
		return ctx.Err()
	}
}

// wake has those that wait try again: all of them if the connection has failed.
func (c *conn) wake() {
	n := min(1, len(c.waiting))
	if c.mc.Err() != nil || c.closed || c.e.closed {
		n = len(c.waiting)
	}
	for _, ch := range c.waiting[:n] {
		close(ch)
	}
	c.waiting = c.waiting[n:]
}

// Service is the service ID, which an upgrade has changed.
func (c *conn) Service() uint16 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.mc.Service()
}

// Peer is the server's address.
func (c *conn) Peer() netip.AddrPort { return c.mc.Peer() }

// Close ends the connection.
func (c *conn) Close() error {
	e := c.e
	e.mu.Lock()
	defer e.unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	delete(e.conns, c)
	c.mc.Close(e.now())
	c.wake()
	return nil
}
