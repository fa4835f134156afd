package rpcrdma

import (
	"errors"
	"fmt"
)

// Why connections end, and calls fail.
var (
	ErrClosed      = errors.New("rpcrdma: this side has closed the connection")
	ErrPeerClosed  = errors.New("rpcrdma: the other side has closed the connection")
	ErrCredits     = errors.New("rpcrdma: the other side has more calls in flight than were granted (RFC 8166 §3.3.1)")
	ErrInvalidated = errors.New("rpcrdma: the other side has invalidated an STag that is not of its reply's call (RFC 8797 §4.1)")
	ErrHeld        = errors.New("rpcrdma: the other side does not let go of memory")
	ErrStalled     = errors.New("rpcrdma: the other side does not answer RDMA Reads, or take what is written")
	ErrIdle        = errors.New("rpcrdma: no call has come for too long")
	ErrFull        = errors.New("rpcrdma: the other side does not take what is sent")
	ErrXID         = errors.New("rpcrdma: a call with this XID is in flight on the connection")
	ErrTooLong     = errors.New("rpcrdma: the message is too long for the connection")
	ErrShutdown    = errors.New("rpcrdma: the server is shut down")
)

// A RefusedError says that the responder can't carry out a call, for a reason of the
// transport: an RDMA_ERROR (RFC 8166 §4.5). It is of no use to send it again.
type RefusedError struct {
	XID       uint32
	Code      ErrCode
	Low, High uint32 // the versions of the protocol that the responder has, with ErrVers
}

func (e *RefusedError) Error() string {
	if e.Code == ErrVers {
		return fmt.Sprintf("rpcrdma: the responder has versions %d to %d of RPC-over-RDMA, not %d: reach it over TCP", e.Low, e.High, Version)
	}
	return fmt.Sprintf("rpcrdma: the responder can't use the header or the chunks of call %08x, or has no room for its reply (%v)", e.XID, e.Code)
}
