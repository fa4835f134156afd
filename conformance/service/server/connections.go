package server

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"urnic/conformance/service"
	"urnic/mpa"
	"urnic/rnic"
)

func (c *session) createQP(_ context.Context, a *service.QPAttr) (any, error) {
	q, _, err := c.newQP(*a, nil)
	if err != nil {
		return nil, err
	}
	return &service.QP{QP: q.num}, nil
}

// may returns an error unless the session may connect to an address.
func (c *session) may(address string) error {
	a, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return bad("address %q: say an IP address and a port", service.Shorten([]byte(address)))
	case c.server.ConnectAnywhere, a.Addr().Unmap().WithZone("") == c.remote.Addr().WithZone(""),
		a.Addr().IsLoopback() && c.remote.Addr().IsLoopback():
		return nil
	}
	return &service.Error{Code: service.CodeForbidden, Message: "this server connects only to the host that asks it to, " + c.remote.Addr().String()}
}

func (c *session) connect(_ context.Context, a *service.ConnectArgs) (any, error) {
	if err := c.may(a.Address); err != nil {
		return nil, err
	}
	p, err := c.param(&a.Start)
	if err != nil {
		return nil, err
	}
	if a.Revision < 0 || a.Revision > int(mpa.Revision2) {
		return nil, bad("revision %d: say 1, 2, or 0 to negotiate it", a.Revision)
	}
	p.MPA.Revision, p.MPA.PeerToPeer, p.MPA.ULPDepths = uint8(a.Revision), a.PeerToPeer, a.ULPDepths
	if p.MPA.ReplyTimeout, err = c.time("reply_timeout_ms", a.ReplyTimeout); err != nil {
		return nil, err
	}
	if p.MPA.Settle, err = c.time("settle_ms", a.Settle); err != nil {
		return nil, err
	}
	if err := p.MPA.Check(); err != nil {
		return nil, &service.Error{Code: service.CodeRefused, Message: err.Error()}
	}
	var q *queuePair
	r := &service.Connect{}
	if a.Use != 0 {
		if q, err = find(c, c.qps, a.Use, "queue pair"); err != nil {
			return nil, err
		}
		if q.connecting != nil {
			select {
			case <-q.connecting:
			default:
				return nil, &service.Error{Code: service.CodeState, Message: "the queue pair is connecting already"}
			}
		}
		r.IDs, err = c.postRecvs(q.rnic, q.pd, buffer{qp: q.num}, a.Recvs)
	} else {
		q, r.IDs, err = c.newQP(a.QP, a.Recvs)
	}
	if err != nil {
		return nil, err
	}
	r.QP = q.num
	done := make(chan struct{})
	q.connecting, q.connectErr = done, nil
	c.wg.Go(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(c.ctx, startupWait)
		defer cancel()
		q.connectErr = q.rnic.Connect(ctx, a.Address, p)
	})
	return r, nil
}

func (c *session) connected(ctx context.Context, a *service.QPArgs) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	if q.connecting == nil {
		return nil, &service.Error{Code: service.CodeState, Message: "nobody has told the queue pair to connect"}
	}
	if _, err := await(ctx, a.Timeout, q.connecting); err != nil {
		return nil, err
	}
	if q.connectErr != nil {
		return nil, startupErrorOf(q.connectErr)
	}
	r := &service.Connected{}
	if p := paramsOf(q.rnic); p != nil { // it may have ended by now
		r.Params = *p
	}
	return r, nil
}

func (c *session) state(ctx context.Context, a *service.StateArgs) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	if a.Until != "" {
		if err := q.become(ctx, a); err != nil {
			return nil, err
		}
	}
	n := q.rnic.Counters()
	return &service.State{
		State: states[q.rnic.State()], Failure: failureOf(q.rnic.Err()), Params: paramsOf(q.rnic),
		Sent: counts(n.Sent[:]), Received: counts(n.Received[:]),
	}, nil
}

// become waits for a state. Nothing tells of all changes, so it looks again and
// again.
func (q *queuePair) become(ctx context.Context, a *service.StateArgs) error {
	ctx, cancel, err := limit(ctx, a.Timeout)
	if err != nil {
		return err
	}
	defer cancel()
	if !slices.Contains([]string{service.StateIdle, service.StateRTS, service.StateClosing, service.StateTerminating, service.StateError}, a.Until) {
		return bad("until %q: say idle, rts, closing, terminating or error", service.Shorten([]byte(a.Until)))
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for states[q.rnic.State()] != a.Until {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// end is what ends a stream, and may take a while. Without a timeout, the
// device's bounds it.
func (c *session) end(ctx context.Context, a *service.EndArgs, how func(*rnic.QP, context.Context) error) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	if a.Timeout == 0 {
		a.Timeout = int(maxTimeout.Milliseconds())
	}
	if a.Begin {
		ctx = c.ctx
	}
	ctx, cancel, err := limit(ctx, a.Timeout)
	if err != nil {
		return nil, err
	}
	if a.Begin {
		c.wg.Go(func() {
			defer cancel()
			_ = how(q.rnic, ctx) // state and event tell
		})
		return nil, nil
	}
	defer cancel()
	if err := how(q.rnic, ctx); err != nil {
		return nil, timely(ctx, err)
	}
	return nil, nil
}

func (c *session) disconnect(ctx context.Context, a *service.EndArgs) (any, error) {
	return c.end(ctx, a, (*rnic.QP).Disconnect)
}

func (c *session) terminate(ctx context.Context, a *service.EndArgs) (any, error) {
	return c.end(ctx, a, (*rnic.QP).Terminate)
}

func (c *session) abort(_ context.Context, a *service.QPArgs) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	q.rnic.Abort()
	return nil, nil
}

func (c *session) reset(_ context.Context, a *service.QPArgs) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	return nil, q.rnic.Reset()
}

func (c *session) closeQP(_ context.Context, a *service.QPArgs) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	c.drop(q)
	return nil, nil
}
