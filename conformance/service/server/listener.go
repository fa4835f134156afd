package server

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"urnic/conformance/service"
	"urnic/mpa"
	"urnic/rnic"
)

// A listener deals with requests as its arguments say.
type listener struct {
	session *session
	num     int
	args    service.ListenArgs
	param   rnic.ConnParam
	rnic    *rnic.Listener
	results chan outcome // what accepted returns
}

// An outcome is what has become of a request.
type outcome struct {
	accepted *service.Accepted
	err      *service.Error
}

// A heldRequest waits for the operation answer.
type heldRequest struct {
	listener *listener
	rnic     *rnic.ConnRequest
	view     service.StartRequest
}

func (c *session) listen(ctx context.Context, a *service.ListenArgs) (any, error) {
	l := &listener{session: c, args: *a, results: make(chan outcome, maxAccepted)}
	switch a.Answer {
	case "":
		l.args.Answer = service.AnswerAccept
	case service.AnswerAccept, service.AnswerReject, service.AnswerHold:
	default:
		return nil, bad("answer %q: say accept, reject or hold", service.Shorten([]byte(a.Answer)))
	}
	var err error
	if l.param, err = c.param(&a.Start); err != nil {
		return nil, err
	}
	if l.param.MPA.FirstFPDUTimeout, err = c.time("first_fpdu_timeout_ms", a.FirstFPDUTimeout); err != nil {
		return nil, err
	}
	if a.MinORD < 0 || a.MinORD > mpa.MaxDepth {
		return nil, bad("min_ord %d: say 0 to %d", a.MinORD, mpa.MaxDepth)
	}
	l.param.MinORD = a.MinORD
	address := netip.AddrPortFrom(c.local.Addr(), 0).String()
	if l.rnic, err = c.dev.Listen(context.WithValue(ctx, listenerKey{}, l), address); err != nil {
		return nil, err
	}
	c.mu.Lock()
	l.num = c.number()
	c.listeners[l.num] = l
	c.mu.Unlock()
	c.wg.Go(func() { l.run(c.ctx) })
	return &service.Listener{Listener: l.num, Address: l.rnic.Addr().String()}, nil
}

// param returns what one side says about a start-up.
func (c *session) param(s *service.Start) (p rnic.ConnParam, err error) {
	cfg := c.server.Device.MPA
	if s.CRC != "" {
		if cfg.CRC, err = lookUp("crc", policies, s.CRC); err != nil {
			return p, err
		}
	}
	cfg.Markers = cfg.Markers || s.Markers
	if s.RTR != nil {
		if cfg.RTR, err = union("rtr", rtrs, s.RTR); err != nil {
			return p, err
		}
	}
	if s.MULPDU != 0 {
		cfg.MULPDU = s.MULPDU
	}
	p = rnic.ConnParam{MPA: &cfg, PrivateData: s.PrivateData}
	if p.IRD, err = depth("ird", s.IRD); err != nil {
		return p, err
	}
	p.ORD, err = depth("ord", s.ORD)
	return p, err
}

// depth returns an IRD or ORD as package rnic says it.
func depth(name string, n *int) (int, error) {
	switch {
	case n == nil:
		return 0, nil
	case *n < 0 || *n > rnic.MaxDepth:
		return 0, bad("%s %d: say 0 to %d", name, *n, rnic.MaxDepth)
	case *n == 0:
		return -1, nil
	}
	return *n, nil
}

// time returns a time limit, which is 0 if it is left open.
func (c *session) time(name string, n int) (time.Duration, error) {
	if n < 0 || ms(n) > maxTimeout {
		return 0, bad("%s %d: say 0 to %d", name, n, maxTimeout.Milliseconds())
	}
	return ms(n), nil
}

// run deals with requests until the listener is closed.
func (l *listener) run(ctx context.Context) {
	for {
		r, err := l.rnic.Accept(ctx)
		if err != nil {
			return // it was closed, or its session has ended
		}
		l.dealWith(ctx, r)
	}
}

func (l *listener) dealWith(ctx context.Context, r *rnic.ConnRequest) {
	view, peer := viewOf(r), addrPort(r.RemoteAddr())
	switch l.args.Answer {
	case service.AnswerHold:
		c := l.session
		c.mu.Lock()
		if len(c.held) >= maxAccepted {
			delete(c.starting, peer)
			c.mu.Unlock()
			_ = r.Close() // it is one too many
			return
		}
		n := c.number()
		c.held[n] = &heldRequest{listener: l, rnic: r, view: view}
		c.mu.Unlock()
		l.put(outcome{accepted: &service.Accepted{Held: n, Peer: r.RemoteAddr().String(), Request: view}})
	case service.AnswerReject:
		l.tell(peer, l.reject(ctx, r, view, l.param.PrivateData))
	default:
		l.tell(peer, l.accept(ctx, r, view, nil, l.param))
	}
}

// accept accepts a request, with a new queue pair if q is nil.
func (l *listener) accept(ctx context.Context, r *rnic.ConnRequest, view service.StartRequest, q *queuePair, p rnic.ConnParam) outcome {
	ctx, cancel := context.WithTimeout(ctx, startupWait)
	defer cancel()
	c, own := l.session, q == nil
	result := &service.Accepted{Peer: r.RemoteAddr().String(), Request: view}
	var err error
	if own {
		q, result.IDs, err = c.newQP(l.args.QP, l.args.Recvs)
	}
	if err == nil {
		err = r.Accept(ctx, q.rnic, p)
	}
	if err != nil {
		_ = r.Close() // if it is still there
		if own && q != nil {
			c.drop(q)
		}
		return l.failed(r, view, err)
	}
	result.QP, result.Params = q.num, paramsOf(q.rnic)
	return outcome{accepted: result}
}

func (l *listener) reject(ctx context.Context, r *rnic.ConnRequest, view service.StartRequest, privateData []byte) outcome {
	ctx, cancel := context.WithTimeout(ctx, startupWait)
	defer cancel()
	if err := r.Reject(ctx, privateData); err != nil {
		_ = r.Close() // if it is still there
		return l.failed(r, view, err)
	}
	return outcome{accepted: &service.Accepted{Peer: r.RemoteAddr().String(), Request: view}}
}

func (l *listener) failed(r *rnic.ConnRequest, view service.StartRequest, err error) outcome {
	e := startupErrorOf(err)
	e.Request, e.Peer = &view, r.RemoteAddr().String()
	return outcome{err: e}
}

// tell passes on what has become of a peer's request, unless its failure has been
// told already.
func (l *listener) tell(peer netip.AddrPort, o outcome) {
	c := l.session
	c.mu.Lock()
	_, there := c.starting[peer]
	delete(c.starting, peer)
	c.mu.Unlock()
	if there {
		l.put(o)
	}
}

// put keeps an outcome for accepted. If nobody fetches them, it is lost.
func (l *listener) put(o outcome) {
	select {
	case l.results <- o:
	default:
	}
}

// startupFailed tells the listener of a peer of a start-up that has failed.
func (c *session) startupFailed(peer netip.AddrPort, view *service.StartRequest, err error) {
	c.mu.Lock()
	l := c.starting[peer]
	delete(c.starting, peer)
	if l == nil {
		c.mu.Unlock()
		return
	}
	for n, h := range c.held {
		if addrPort(h.rnic.RemoteAddr()) == peer {
			view = &h.view
			delete(c.held, n)
		}
	}
	c.mu.Unlock()
	e := startupErrorOf(err)
	e.Request, e.Peer = view, peer.String()
	if e.Code == service.CodeInternal { // of a request that was dropped
		e.Code = service.CodeStartup
	}
	l.put(outcome{err: e})
}

func (c *session) closeListener(_ context.Context, a *service.ListenerArgs) (any, error) {
	l, err := find(c, c.listeners, a.Listener, "listener")
	if err != nil {
		return nil, err
	}
	if err := l.rnic.Close(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listeners, a.Listener)
	maps.DeleteFunc(c.starting, func(_ netip.AddrPort, whose *listener) bool { return whose == l })
	return nil, nil
}

func (c *session) accepted(ctx context.Context, a *service.AcceptedArgs) (any, error) {
	l, err := find(c, c.listeners, a.Listener, "listener")
	if err != nil {
		return nil, err
	}
	o, err := await(ctx, a.Timeout, l.results)
	switch {
	case err != nil:
		return nil, err
	case o.err != nil:
		return nil, o.err
	}
	return o.accepted, nil
}

// await receives from a channel in time. Without time, it takes what is there.
func await[T any](ctx context.Context, timeout int, from <-chan T) (v T, err error) {
	ctx, cancel, err := limit(ctx, timeout)
	if err != nil {
		return v, err
	}
	defer cancel()
	select {
	case v = <-from:
		return v, nil
	default:
	}
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

// limit bounds the time of an operation.
func limit(ctx context.Context, timeout int) (context.Context, context.CancelFunc, error) {
	if timeout < 0 || ms(timeout) > maxTimeout {
		return nil, nil, bad("timeout_ms %d: say 0 to %d", timeout, maxTimeout.Milliseconds())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ms(timeout), errTimeout)
	return ctx, cancel, nil
}

func (c *session) answerHeld(ctx context.Context, a *service.AnswerArgs) (any, error) {
	h, err := find(c, c.held, a.Held, "request that is held")
	if err != nil {
		return nil, err
	}
	var q *queuePair
	if a.QP != 0 {
		if q, err = find(c, c.qps, a.QP, "queue pair"); err != nil {
			return nil, err
		}
	}
	p := h.listener.param
	if a.PrivateData != nil {
		p.PrivateData = a.PrivateData
	}
	var o outcome
	switch a.Answer {
	case service.AnswerAccept, service.AnswerReject, service.AnswerDrop:
		c.mu.Lock()
		delete(c.held, a.Held)
		delete(c.starting, addrPort(h.rnic.RemoteAddr()))
		c.mu.Unlock()
	default:
		return nil, bad("answer %q: say accept, reject or drop", service.Shorten([]byte(a.Answer)))
	}
	switch a.Answer {
	case service.AnswerAccept:
		o = h.listener.accept(ctx, h.rnic, h.view, q, p)
	case service.AnswerReject:
		o = h.listener.reject(ctx, h.rnic, h.view, p.PrivateData)
	default:
		if err := h.rnic.Close(); err != nil {
			return nil, fmt.Errorf("the request is dropped: %w", err)
		}
		o = outcome{accepted: &service.Accepted{Peer: h.rnic.RemoteAddr().String(), Request: h.view}}
	}
	if o.err != nil {
		return nil, o.err
	}
	return o.accepted, nil
}

// viewOf is the peer's Request. Of that of another lower layer, only the private data are known.
func viewOf(request *rnic.ConnRequest) service.StartRequest {
	r := request.MPA()
	if r == nil {
		return service.StartRequest{Revision: mpa.Revision2, CRC: true, Enhanced: true, PrivateData: request.PrivateData()}
	}
	f, e := &r.Frame, &r.Enhanced
	v := service.StartRequest{Revision: f.Revision, CRC: f.CRC, Markers: f.Markers, Enhanced: f.Enhanced, PrivateData: r.PrivateData()}
	if f.Enhanced {
		v.IRD, v.ORD, v.PeerToPeer, v.RTR = e.IRD, e.ORD, e.PeerToPeer, members(rtrs, e.RTR)
	}
	return v
}

// paramsOf is what start-up has settled, or nil before there was a connection.
func paramsOf(q *rnic.QP) *service.Params {
	p, ok := q.Params()
	if !ok {
		return nil
	}
	return &service.Params{
		Role: p.Role.String(), Revision: p.Revision, CRC: p.CRC, MarkersSent: p.SendMarkers, MarkersReceived: p.RecvMarkers,
		Enhanced: p.Enhanced, IRD: p.IRD, ORD: p.ORD, PeerIRD: p.PeerIRD, PeerORD: p.PeerORD,
		PeerToPeer: p.PeerToPeer, RTR: members(rtrs, p.RTR), PrivateData: p.PrivateData,
	}
}
