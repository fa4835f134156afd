package rdpstream

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"urnic/ulp/rdp"
)

// An Addr is the address of one end of a stream.
type Addr struct {
	Host netip.AddrPort // of the carrier
	Port uint16         // of RDP
}

// Network returns "rdp".
func (Addr) Network() string { return "rdp" }

// String returns the address, as host/port.
func (a Addr) String() string { return fmt.Sprintf("%v/%d", a.Host, a.Port) }

// A Config describes streams.
type Config struct {
	Port    uint16 // of RDP: the listener's
	Version uint8  // of a stream that is dialed; 0: 2
	rdp.Params
}

// Dial opens a stream to the listener at a host.
func Dial(ctx context.Context, e *rdp.Endpoint, host netip.AddrPort, c Config) (*Conn, error) {
	c.Sequenced, c.AckRead = true, true // the window is the stream's flow control
	conn, err := e.Dial(ctx, rdp.DialConfig{Host: host, Port: c.Port, Version: c.Version, Params: c.Params})
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "rdp", Addr: Addr{host, c.Port}, Err: err}
	}
	return newConn(conn, Addr{Host: e.LocalAddr()}), nil
}

// A Listener accepts streams. It is a net.Listener.
type Listener struct {
	rdp   *rdp.Listener
	local Addr
}

var _ net.Listener = (*Listener)(nil)

// Listen listens at a port of an endpoint.
func Listen(e *rdp.Endpoint, c Config) (*Listener, error) {
	c.Sequenced, c.AckRead = true, true // the window is the stream's flow control
	l, err := e.Listen(rdp.ListenConfig{Port: c.Port, Params: c.Params})
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "rdp", Addr: Addr{e.LocalAddr(), c.Port}, Err: err}
	}
	return &Listener{l, Addr{e.LocalAddr(), c.Port}}, nil
}

// Accept waits for the next stream.
func (l *Listener) Accept() (net.Conn, error) { return l.AcceptContext(context.Background()) }

// AcceptContext is Accept that ends with a context.
func (l *Listener) AcceptContext(ctx context.Context) (net.Conn, error) {
	c, err := l.rdp.Accept(ctx)
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "rdp", Addr: l.local, Err: err}
	}
	return newConn(c, l.local), nil
}

// Close ends Accept. Streams that were accepted continue.
func (l *Listener) Close() error { return l.rdp.Close() }

// Addr returns the Addr at which the listener listens.
func (l *Listener) Addr() net.Addr { return l.local }
