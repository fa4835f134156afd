package rdsstress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// A Control is the control connection of a run.
type Control struct {
	Params Params
	Active bool
	// Local and Peer are the addresses of the nodes.
	Local, Peer netip.Addr

	conn net.Conn
}

// Dial connects to a passive side, and tells it what to do. Without a local address, the
// system chooses it. The parameters' addresses are filled in.
func Dial(ctx context.Context, local, peer netip.Addr, p Params) (*Control, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	var d net.Dialer
	if local.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: local.AsSlice(), Zone: local.Zone()}
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(peer.String(), strconv.Itoa(int(p.Port))))
	if err != nil {
		return nil, err
	}
	c := &Control{Params: p, Active: true, Local: host(conn.LocalAddr()), Peer: peer.Unmap(), conn: conn}
	if c.Params.TOS != 0 && p.Version == "" {
		c.Params.Version = Version
	}
	c.Params.Send, c.Params.Receive = c.Peer, c.Local
	if _, err := conn.Write(c.Params.AppendTo(nil)); err != nil {
		return nil, errors.Join(c.notBegun(err), conn.Close())
	}
	return c, nil
}

// Accept waits for an active side, and reads what it wants. The error says what can't be done.
func Accept(ctx context.Context, l net.Listener) (*Control, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept says why
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	c := &Control{Local: host(conn.LocalAddr()), Peer: host(conn.RemoteAddr()), conn: conn}
	defer c.bound(ctx, time.Minute)()
	c.Params, err = ReadParams(conn)
	if err == nil {
		err = c.Params.Check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%v: %w", conn.RemoteAddr(), err), conn.Close())
	}
	if a := c.Params.Receive; a.IsValid() {
		c.Peer = a
	}
	return c, nil
}

// Close ends the control connection of a run that does not take place.
func (c *Control) Close() error { return c.conn.Close() }

// host returns the address of a TCP endpoint.
func host(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// bound limits the time of reads and writes, and ends them with the context, until the
// function that it returns is called.
func (c *Control) bound(ctx context.Context, d time.Duration) (release func()) {
	_ = c.conn.SetDeadline(time.Now().Add(d)) // a closed connection says so when it is used
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if stop() {
			_ = c.conn.SetDeadline(time.Time{})
		}
	}
}

// ready tells the other side that the sockets are bound, and waits until it says so.
func (c *Control) ready(ctx context.Context, timeout time.Duration) error {
	defer c.bound(ctx, timeout)()
	tell := func() error {
		_, err := c.conn.Write([]byte{1})
		return err
	}
	hear := func() error {
		_, err := io.ReadFull(c.conn, make([]byte, 1))
		return err
	}
	steps := []func() error{tell, hear}
	if !c.Active {
		steps = []func() error{hear, tell}
	}
	for _, step := range steps {
		switch err := step(); {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return c.notBegun(err)
		}
	}
	return nil
}

// notBegun is the error of a control connection that is lost before the run.
func (c *Control) notBegun(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("rdsstress: %v has ended the run before it began: see what it has printed", c.Peer)
	}
	return fmt.Errorf("rdsstress: the control connection: %w", err)
}

// hangUp ends this side's direction of the connection.
func (c *Control) hangUp() error {
	if t, ok := c.conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return c.conn.Close()
}

// stillThere tells the other side something that it ignores. An error says that it
// has closed the connection.
func (c *Control) stillThere() error {
	_, err := c.conn.Write([]byte{0})
	return err
}
