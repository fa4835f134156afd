package rendezvous

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"urnic/mpa"
)

// A call is one try to connect by dialling the peer.
type call struct {
	cancel context.CancelCauseFunc
	stage  atomic.Uint32
	result chan error // of the call; has room for it
	early  bool       // the Request gave no PSN; to be read once there is a result
}

// The stages of a call. In calling, the peer has not heard of it; in asking, it may.
const (
	calling uint32 = iota
	asking
	givenUp
)

// giveUp makes sure that the peer does not hear of the call. It reports false if that
// is too late.
func (c *call) giveUp() bool { return c.stage.CompareAndSwap(calling, givenUp) }

// ended returns a channel that has the result once there is one; nil of no call.
func (c *call) ended() <-chan error {
	if c == nil {
		return nil
	}
	return c.result
}

// dial begins a call.
func (a *attempt) dial(to netip.AddrPort) *call {
	c := &call{result: make(chan error, 1)}
	var ctx context.Context
	ctx, c.cancel = context.WithCancelCause(a.ctx)
	a.e.m.wg.Go(func() {
		defer c.cancel(nil)
		c.result <- a.connect(ctx, c, to)
	})
	return c
}

// connect dials, and asks the peer for a connection.
func (a *attempt) connect(ctx context.Context, c *call, to netip.AddrPort) error {
	conn, err := a.reach(ctx, to)
	if err != nil {
		return err
	}
	if ctx.Err() != nil || !c.stage.CompareAndSwap(calling, asking) {
		_ = conn.Close() // nothing was said
		return errOvertaken
	}
	param, ready, err := a.param(Ask)
	if err != nil {
		_ = conn.Close() // nothing was said
		return err
	}
	c.early = !ready
	param.Verify = func(p mpa.Params) error { return a.verify(conn, p.PrivateData) }
	given := false
	via := func(context.Context) (net.Conn, error) {
		if given {
			return nil, errOldPeer
		}
		given = true
		return conn, nil
	}
	err = a.e.qp.ConnectVia(ctx, via, param)
	if !given {
		_ = conn.Close() // err says why
	}
	return explain(err)
}

var errOldPeer = errors.New("the peer uses an older revision of MPA: it is no rendezvous")

// reach dials the peer's listener.
func (a *attempt) reach(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return a.e.m.cfg.Dial(ctx, a.peer.From, to)
}

// explain adds what the peer says to a rejection.
func explain(err error) error {
	var rejected *mpa.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	msg, bad := Parse(rejected.PrivateData)
	if bad != nil || msg.Kind != Refuse {
		return err
	}
	return &RefusedError{msg.Reason}
}

// A RefusedError says why the peer's listener has refused a request.
type RefusedError struct{ Reason Reason }

// Error says the reason.
func (e *RefusedError) Error() string { return "rendezvous: " + e.Reason.String() }
