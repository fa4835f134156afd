package rpcrdma

import (
	"context"
	"fmt"
	"net"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
)

// A Conn is a connection to a server, for its calls. It is an oncrpc.Conn. All of its
// methods are safe for concurrent use.
type Conn struct{ e *endpoint }

var _ oncrpc.Conn = (*Conn)(nil)

// Dial connects to the server at host:port. NFS has port 20049 (RFC 8166 §5).
func Dial(ctx context.Context, dev *rnic.Device, address string, cfg Config) (*Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e, err := newEndpoint(dev, cfg)
	if err != nil {
		return nil, fmt.Errorf("rpcrdma: dial %s: %w", address, err)
	}
	e.calls = newRequester(e, cfg.Credits, true)
	if cfg.Reverse != nil {
		e.serve = newResponder(e, cfg.Reverse, cfg.ReverseCredits, false)
	}
	param := cfg.Conn
	param.PrivateData = cfg.private()
	if err := e.qp.Connect(ctx, address, param); err != nil {
		_ = e.release()                            // Connect says more
		return nil, fmt.Errorf("rpcrdma: %w", err) // which names the address
	}
	params, _ := e.qp.Params()
	e.settle(params.PrivateData)
	e.addresses()
	go e.run()
	return &Conn{e}, nil
}

// Do sends a call and returns its reply, as oncrpc.Conn says. A *RefusedError says that the
// responder can't carry the call out for a reason of the transport.
//
// A call whose context ends is given up at once, its memory closed. If the responder
// uses that all the same, for a reply that is on its way, the connection ends.
func (c *Conn) Do(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	return c.e.calls.do(ctx, r)
}

// Limit returns how many calls may be in flight.
func (c *Conn) Limit() int { return c.e.calls.limit() }

// Waiting returns how many calls wait for others to be over, as no more may be in flight.
func (c *Conn) Waiting() int { return c.e.calls.credits.waiting() }

// SetCredits changes how many calls may be in flight, if the server grants as many: from
// 1 to Config.Credits, for which there are receives.
func (c *Conn) SetCredits(n int) { c.e.calls.credits.ask(min(max(1, n), c.e.cfg.Credits)) }

// Done is closed once the connection is of no use.
func (c *Conn) Done() <-chan struct{} { return c.e.done }

// Err returns why the connection has ended, or is ending; nil if it is not.
func (c *Conn) Err() error { return c.e.cause() }

// Close ends the connection, gracefully if the server plays along, and waits until nothing
// is left of it: a Config.Reverse must not call it while it carries a call out.
func (c *Conn) Close() error { return c.e.close(ErrClosed) }

// Inline returns the inline thresholds: how long a Send may be, header and all, to the
// server and from there, in bytes.
func (c *Conn) Inline() (call, reply int) { return c.e.most, c.e.receives }

// LocalAddr returns the address of this side of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.e.local }

// RemoteAddr returns the server's address.
func (c *Conn) RemoteAddr() net.Addr { return c.e.remote }

// Netid returns the network identifier of the connection: "rdma" or "rdma6".
func (c *Conn) Netid() string { return c.e.netid }

// Stats returns what has been counted.
func (c *Conn) Stats() Stats { return c.e.stats.read() }

func (q *requester) limit() int {
	_, limit := q.credits.now()
	return limit
}
