package rnic

import (
	"context"
	"net"
	"time"

	"urnic/ddp"
	"urnic/mpa"
)

// A LowerLayer opens and accepts the connections that streams run on. RFC 5041 §3 states
// what DDP requires of such a layer once a connection is established. Before that, RDMAP
// and its ULP require an exchange of private data and of IRD and ORD (RFC 6581 §9.1), in
// which the accepting side decides. MPA over TCP does that with MPA's Request and Reply;
// another layer may have its own handshake.
//
// A device calls the methods concurrently.
type LowerLayer interface {
	// Dial opens a connection to an address. It returns when the peer has accepted.
	//
	// If the peer has rejected, the error wraps a *mpa.RejectedError with the peer's private
	// data. If this side can't continue with the peer's answer, and must notify the peer,
	// Dial returns the connection as well as the error. The device then sends a Terminate
	// with the code of the *mpa.Error that err wraps, or of a local catastrophic error, and
	// closes the connection. With any other error, Dial returns no connection.
	Dial(ctx context.Context, address string, o Offer) (LLPConn, error)
	// Listen listens at an address.
	Listen(ctx context.Context, address string) (LLPListener, error)
}

// An LLPListener accepts connections of a LowerLayer.
type LLPListener interface {
	// Accept waits for a peer that connects. It does not wait for its request: one peer
	// must not delay others. An error that wraps net.ErrClosed ends the listener. After
	// any other error the device tries again.
	Accept() (LLPArrival, error)
	Addr() net.Addr
	Close() error // Accept then returns an error that wraps net.ErrClosed
}

// An LLPArrival is a connection whose request has not arrived yet. It ends with Close,
// or with a Receive that fails.
type LLPArrival interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// Receive waits for the request of the peer. The layer bounds the time. The wait also
	// ends with the context.
	Receive(ctx context.Context) (LLPRequest, error)
	Close() error
}

// An LLPRequest is a peer's request that has no answer yet. It ends with Accept, with a
// Reject that fails, with Linger or with Close.
type LLPRequest interface {
	// PrivateData returns the private data of the peer's ULP, MaxPrivateData how many bytes
	// fit into an answer.
	PrivateData() []byte
	MaxPrivateData() int

	// Watch waits until the peer no longer waits for the answer, and returns why: for example,
	// the peer has closed the connection, or has sent what it must not send before the answer.
	// It returns nil when the context ends first. Look is like Watch, but does not wait.
	// Neither is called while the other one runs, or while an answer is sent.
	Watch(ctx context.Context) error
	Look() error

	// Accept accepts, with this side's offer. The Params of the connection have the result
	// of both offers. After an error there is no connection.
	Accept(ctx context.Context, o Offer) (LLPConn, error)
	// Reject rejects, with private data that give the peer's ULP the reason. If it succeeds,
	// Linger ends the connection: when the peer has closed it, or the context ends.
	Reject(ctx context.Context, privateData []byte) error
	Linger(ctx context.Context)
	// Close ends the connection without an answer.
	Close() error
}

// An Offer is what one side offers at start-up. If it does not fit or is invalid, the error
// is a *mpa.ConfigError, and the connection stays.
type Offer struct {
	PrivateData []byte // for the peer's ULP

	// IRD and ORD are how many Reads and atomics of the peer, and of this side, may be
	// outstanding. The accepting side decides: its IRD becomes the limit of the
	// initiator's ORD, and its ORD is lowered to the initiator's IRD. If that is less than
	// MinORD, it rejects with a *mpa.Error of CodeInsufficientIRD.
	IRD, ORD, MinORD uint16

	// MPA has the options of MPA over TCP. Other layers use what applies to them.
	MPA mpa.Config
}

// An LLPConn is an established connection of a LowerLayer: a lower layer for DDP that can be
// polled and that accounts for its buffers.
//
// It moves segments reliably, preserves their boundaries and covers them with a digest. It
// may change their order, if it reports the original order (ddp.LLP). Its errors are those of
// ddp.LLP. An error that wraps io.EOF is the peer's graceful end, which follows all that the
// peer has sent. A *mpa.Error with CodeCRC or CodeMarker says that received data is damaged
// but the other direction still works, so that a Terminate can notify the peer. A
// *mpa.MemoryError from Flush says that memory was lost in the middle of a segment. Any other
// error says that the connection is lost.
//
// At any time, one goroutine sends while another one receives; these goroutines change.
// Params, addresses, Interrupt, Stalled, Close and Abort may be called from any goroutine.
type LLPConn interface {
	ddp.LLP

	// Params returns what start-up has negotiated: at least the role, IRD and ORD, and the
	// peer's private data. RTR is zero in a layer in which either side may send first. A layer
	// that changes the order of segments must be such a layer.
	Params() mpa.Params
	LocalAddr() net.Addr
	RemoteAddr() net.Addr

	// Polls reports whether TryReceive can find what has arrived. If so, programs
	// receive in their own goroutines while they poll or wait for completions. Otherwise
	// only the device's goroutine receives, and the other methods here are not called.
	Polls() bool
	// Await waits until there is something for Receive or TryReceive: a segment, which may be
	// one that place has not accepted, or an error. It returns ErrInterrupted after a call of
	// Interrupt.
	Await() error
	// Interrupt makes the Receive or Await that waits now return ErrInterrupted; if none waits,
	// the next one that would wait.
	Interrupt()

	// SetKeeper sets tell, which the layer calls with each change of the number of bytes of
	// buffers that the connection keeps while it waits for its peer. A layer that keeps none
	// need not call it. SetKeeper is called once, before the connection is used. Stalled
	// returns since when the connection has kept buffers for a peer that makes no progress, or
	// the zero Time.
	SetKeeper(tell func(octets int))
	Stalled() time.Time

	// Free releases all that the connection still holds. It is called after Close or Abort,
	// when nothing uses the connection any more.
	Free()
}

// ErrInterrupted is what Receive and Await of an LLPConn return after a call of Interrupt.
var ErrInterrupted = mpa.ErrInterrupted

// LLP is what DDP requires of a connection.
type LLP = ddp.LLP

// Params is the result of start-up.
type Params = mpa.Params

// Role is the side of start-up that a queue pair had.
type Role = mpa.Role

// The roles of Params.
const (
	Initiator = mpa.Initiator
	Responder = mpa.Responder
)

// mpa returns the offer as MPA's configuration.
func (o *Offer) mpa() mpa.Config {
	c := o.MPA
	c.PrivateData, c.IRD, c.ORD, c.MinORD = o.PrivateData, o.IRD, o.ORD, o.MinORD
	return c
}
