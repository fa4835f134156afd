package rpcrdma

import (
	"context"
	"errors"
	"net"

	"urnic/ulp/oncrpc"
)

// A Peer is a connection that a Server has accepted. It makes calls in the reverse
// direction, to whoever has dialed (RFC 8167): as an oncrpc.Conn, for messages that
// fit into a Send. The upper layer sees to it that the other side is ready for them
// (§6).
type Peer struct{ e *endpoint }

var _ oncrpc.Conn = (*Peer)(nil)

// ErrNoReverse says that there are no calls in the reverse direction.
var ErrNoReverse = errors.New("rpcrdma: there are no credits for calls in the reverse direction: set Config.ReverseCredits")

type peerKey struct{}

// PeerOf returns the connection on which a call has come, of the context with which a
// Server has it carried out; nil if it is none.
func PeerOf(ctx context.Context) *Peer {
	p, _ := ctx.Value(peerKey{}).(*Peer)
	return p
}

// Do makes a call, as that of a Conn does.
func (p *Peer) Do(ctx context.Context, r *oncrpc.Request) (*oncrpc.Message, error) {
	if p.e.calls == nil {
		return nil, ErrNoReverse
	}
	return p.e.calls.do(ctx, r)
}

// Limit returns how many calls may be in flight in the reverse direction.
func (p *Peer) Limit() int {
	if p.e.calls == nil {
		return 0
	}
	return p.e.calls.limit()
}

// Waiting returns how many of the other side's calls wait for memory into which their Read
// chunks are fetched, Config.MaxPulled.
func (p *Peer) Waiting() int { return p.e.serve.pulled.waiting() }

// Done is closed once the connection is of no use.
func (p *Peer) Done() <-chan struct{} { return p.e.done }

// Err returns why the connection has ended, or is ending; nil if it is not.
func (p *Peer) Err() error { return p.e.cause() }

// Close ends the connection, with the calls in both directions, and waits until nothing
// is left of it: a service must not call it while it carries a call out.
func (p *Peer) Close() error { return p.e.close(ErrClosed) }

// LocalAddr returns the address of this side of the connection.
func (p *Peer) LocalAddr() net.Addr { return p.e.local }

// RemoteAddr returns the address of the other side.
func (p *Peer) RemoteAddr() net.Addr { return p.e.remote }

// Netid returns the network identifier of the connection: "rdma" or "rdma6".
func (p *Peer) Netid() string { return p.e.netid }

// Stats returns what has been counted.
func (p *Peer) Stats() Stats { return p.e.stats.read() }
