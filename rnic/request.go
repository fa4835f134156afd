package rnic

import (
	"context"
	"errors"
	"fmt"
	"net"

	"urnic/mpa"
	"urnic/rnic/internal/cm"
)

// errNoPlace says why a request is no longer answered.
var errNoPlace = errors.New("the listener's queue is full: its program does not accept")

// A ConnRequest is a connection request of a peer. The program must answer it
// with Accept or Reject, or drop it with Close, within Config.AnswerTimeout of
// its arrival. After that, and when the peer closes the connection, the device
// drops it, and Accept and Reject return an error.
type ConnRequest struct {
	dev           *Device
	req           LLPRequest
	local, remote net.Addr
	pending       cm.Pending
}

// wait starts the time in which a request can be answered. It calls unqueue when the time
// ends without an answer. The device waits for its requests, wherever they are.
func (r *ConnRequest) wait(req LLPRequest, unqueue func()) {
	d := r.dev
	r.req = req
	d.wg.Add(1)
	r.pending.Begin(d.ctx, req, d.cfg.AnswerTimeout, func() { _ = r.Close() }, func(why error) {
		unqueue()
		r.drop(why)
	})
}

// isOver reports whether the request can no longer be answered.
func (r *ConnRequest) isOver() bool { return r.pending.Over() }

// made reports whether Accept of a listener has made the request.
func (r *ConnRequest) made() bool { return r != nil && r.req != nil }

// PrivateData returns the private data of the peer's ULP.
func (r *ConnRequest) PrivateData() []byte {
	if !r.made() {
		return nil
	}
	return r.req.PrivateData()
}

// LocalAddr returns the address to which the peer has connected.
func (r *ConnRequest) LocalAddr() net.Addr {
	if !r.made() {
		return nil
	}
	return r.local
}

// RemoteAddr returns the address of the peer.
func (r *ConnRequest) RemoteAddr() net.Addr {
	if !r.made() {
		return nil
	}
	return r.remote
}

// MPA returns the MPA Request: revision, flags, and with revision 2 the peer's
// IRD and ORD. It returns nil if the device has another lower layer.
func (r *ConnRequest) MPA() *mpa.Request {
	if !r.made() {
		return nil
	}
	if m, ok := r.req.(*mpaRequest); ok {
		return m.Request
	}
	return nil
}

func (r *ConnRequest) fail(op string, err error) error {
	return &OpError{Op: op, Object: "request of " + r.remote.String(), Err: err}
}

// answer makes sure that a request is answered once, and only while the peer
// still waits.
func (r *ConnRequest) answer() error {
	now, err := r.pending.Answer()
	if now {
		r.drop(err)
	}
	return err
}

// release lets the device end.
func (r *ConnRequest) release() { r.dev.wg.Done() }

// drop closes the connection of a request that gets no answer.
func (r *ConnRequest) drop(why error) {
	defer r.release()
	_ = r.req.Close() // why says why already
	r.dev.stats.dropped.Add(1)
	r.dev.log.Info("request dropped", "device", r.dev.cfg.Name, "peer", r.remote.String(), "error", why)
}

// turnAway drops a request for which the listener has no slot.
func (r *ConnRequest) turnAway() {
	if r.answer() == nil {
		r.drop(errNoPlace)
	}
}

// Accept answers the request with a Reply that accepts: the queue pair goes
// from Idle to RTS. Requests posted to it are sent once the peer's first
// message has arrived (RFC 5044 §7.1.2 rule 4).
//
// On failure it returns an *OpError that wraps the cause, as QP.Connect does.
// Then the request is dropped, and the queue pair is idle unless it was aborted
// or closed meanwhile. There are two exceptions, after which the request can
// still be answered: the queue pair is of another device, or p is invalid, such
// as with more private data than fit (a *mpa.ConfigError).
func (r *ConnRequest) Accept(ctx context.Context, q *QP, p ConnParam) error {
	const op = "accept"
	if !r.made() {
		return notMade(op, "request")
	}
	if ctx == nil {
		return r.fail(op, ErrNoContext)
	}
	switch {
	case !q.made():
		return r.fail(op, fmt.Errorf("the queue pair: %w", ErrNotMade))
	case q.pd.dev != r.dev:
		return r.fail(op, fmt.Errorf("the queue pair: %w", ErrForeign))
	}
	if _, err := p.offer(&r.dev.cfg); err != nil {
		return r.fail(op, err)
	}
	if err := r.checkPrivateData(p.PrivateData); err != nil {
		return r.fail(op, err)
	}
	if err := r.answer(); err != nil {
		return r.fail(op, err)
	}
	defer r.release()
	s, err := q.beginStartup(ctx, p)
	if err != nil {
		r.dev.stats.failed.Add(1)
		_ = r.req.Close() // err says why
		return r.fail(op, err)
	}
	defer s.end()
	conn, err := r.req.Accept(s.ctx, s.offer)
	if err == nil {
		err = s.bind(conn)
	}
	if err != nil {
		r.dev.stats.failed.Add(1)
		return r.fail(op, s.why(err))
	}
	r.dev.stats.accepted.Add(1)
	return nil
}

// Reject answers the request with a Reply that rejects, with private data that
// gives the peer's ULP the reason. The connection stays open until the peer has
// closed it, for at most the device's CloseTimeout. If the quota of half-open
// connections is used up, it is closed at once.
//
// On failure it returns an *OpError that wraps the cause, and the request is
// dropped. If the private data don't fit (a *mpa.ConfigError), the request can
// still be answered.
func (r *ConnRequest) Reject(ctx context.Context, privateData []byte) error {
	const op = "reject"
	if !r.made() {
		return notMade(op, "request")
	}
	if ctx == nil {
		return r.fail(op, ErrNoContext)
	}
	if err := r.checkPrivateData(privateData); err != nil {
		return r.fail(op, err)
	}
	if err := r.answer(); err != nil {
		return r.fail(op, err)
	}
	if err := r.req.Reject(ctx, privateData); err != nil {
		r.release()
		return r.fail(op, err)
	}
	r.dev.stats.rejected.Add(1)
	go r.linger() // release counts it
	return nil
}

// checkPrivateData refuses private data that don't fit into the answer.
func (r *ConnRequest) checkPrivateData(b []byte) error {
	if limit := r.req.MaxPrivateData(); len(b) > limit {
		return &mpa.ConfigError{Reason: fmt.Sprintf("%d octets of private data: at most %d fit", len(b), limit)}
	}
	return nil
}

// linger leaves a connection that was rejected open until the peer has closed it, for at
// most the device's CloseTimeout.
func (r *ConnRequest) linger() {
	defer r.release()
	patience := r.dev.cfg.CloseTimeout
	select {
	case r.dev.lingering <- struct{}{}:
		defer func() { <-r.dev.lingering }()
	default:
		patience = 0
	}
	ctx, cancel := context.WithTimeout(r.dev.ctx, patience)
	defer cancel()
	r.req.Linger(ctx)
}

// Close drops the request without an answer.
func (r *ConnRequest) Close() error {
	if !r.made() {
		return notMade("close", "request")
	}
	if r.answer() != nil {
		return nil
	}
	defer r.release()
	if err := r.req.Close(); err != nil {
		return r.fail("close", err)
	}
	return nil
}
