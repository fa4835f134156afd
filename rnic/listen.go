package rnic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/pd"
)

// A Listener accepts connections to one address.
type Listener struct {
	dev    *Device
	net    net.Listener
	queue  chan *ConnRequest
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // of its goroutines
	once   sync.Once
	err    error // of Close
}

// Listen listens at host:port; an empty host stands for all addresses, port 0
// for a free one. It returns an *OpError that wraps a *pd.LimitError or an error
// of the network.
func (d *Device) Listen(ctx context.Context, address string) (*Listener, error) {
	op := "listen at " + address
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if ctx == nil {
		return nil, d.fail(op, ErrNoContext)
	}
	if err := d.manager.Reserve(pd.Listeners, 1); err != nil {
		return nil, d.fail(op, err)
	}
	n, err := d.network.Listen(ctx, address)
	if err != nil {
		d.manager.Release(pd.Listeners, 1)
		return nil, d.fail(op, err)
	}
	l := &Listener{dev: d, net: n, queue: make(chan *ConnRequest, acceptQueue)}
	l.ctx, l.cancel = context.WithCancelCause(d.ctx)
	l.wg.Go(l.run)
	if err := add(d, d.listeners, closer(l)); err != nil {
		_ = l.Close() // the device is closed: nobody will accept
		return nil, d.fail(op, err)
	}
	return l, nil
}

// made reports whether Listen has made the listener.
func (l *Listener) made() bool { return l != nil && l.dev != nil }

// Addr returns the address at which the listener listens.
func (l *Listener) Addr() net.Addr {
	if !l.made() {
		return nil
	}
	return l.net.Addr()
}

func (l *Listener) fail(op string, err error) error {
	return &OpError{Op: op, Object: "listener " + l.Addr().String(), Err: err}
}

// run takes byte streams and has their Requests read. A connection in start-up
// holds a token; while all are taken, one waits here and further ones in the
// network's queue.
func (l *Listener) run() {
	const longest = time.Second
	pause := time.Millisecond
	for {
		c, err := l.net.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.dev.log.Warn("accept failed", "listener", l.Addr().String(), "error", err)
			select { // no descriptors left, perhaps: others may close some
			case <-time.After(pause):
			case <-l.ctx.Done():
				return
			}
			pause = min(2*pause, longest)
			continue
		}
		pause = time.Millisecond
		select {
		case l.dev.halfOpen <- struct{}{}:
			l.wg.Go(func() { l.receive(c) })
		case <-l.ctx.Done():
			_ = c.Close() // nobody will answer it
			return
		}
	}
}

// receive reads the Request of one byte stream and queues it. The caller has
// taken a token.
func (l *Listener) receive(c net.Conn) {
	d := l.dev
	if err := d.manager.Reserve(pd.HalfOpen, 1); err != nil {
		_ = c.Close()
		<-d.halfOpen
		return
	}
	r := &ConnRequest{dev: d, remote: c.RemoteAddr(), local: c.LocalAddr(), stream: d.recordStream(c, false)}
	cfg := d.cfg.MPA
	if r.stream != nil {
		cfg.Recorder = r.stream
	}
	req, err := mpa.ReceiveRequest(l.ctx, c, cfg)
	if err != nil {
		d.stats.failed.Add(1)
		d.log.Info("start-up failed", "device", d.cfg.Name, "peer", r.remote.String(), "error", err)
		r.forget()
		d.manager.Release(pd.HalfOpen, 1)
		<-d.halfOpen
		return
	}
	r.req = req
	// The device ends with its requests, wherever they are.
	d.wg.Add(1)
	r.mu.Lock()
	r.detach = context.AfterFunc(d.ctx, func() { _ = r.Close() })
	r.mu.Unlock()
	select {
	case l.queue <- r:
	case <-l.ctx.Done():
		_ = r.Close() // nobody will accept it
	}
}

// Accept waits for a connection request. It returns an *OpError that wraps the
// context's error, or ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*ConnRequest, error) {
	const op = "accept"
	if !l.made() {
		return nil, notMade(op, "listener")
	}
	if ctx == nil {
		return nil, l.fail(op, ErrNoContext)
	}
	select {
	case r := <-l.queue:
		return r, nil
	case <-l.ctx.Done():
		return nil, l.fail(op, ErrClosed)
	case <-ctx.Done():
		return nil, l.fail(op, context.Cause(ctx))
	}
}

// Close stops listening. Requests that Accept has not returned are dropped.
func (l *Listener) Close() error {
	if !l.made() {
		return notMade("close", "listener")
	}
	l.once.Do(func() {
		l.cancel(ErrClosed)
		l.err = l.net.Close()
		l.wg.Wait()
		for len(l.queue) > 0 {
			select {
			case r := <-l.queue:
				_ = r.Close() // nobody will accept it
			default: // an Accept was quicker
			}
		}
		l.dev.manager.Release(pd.Listeners, 1)
		remove(l.dev, l.dev.listeners, closer(l))
	})
	if l.err != nil {
		return l.fail("close", l.err)
	}
	return nil
}

// A ConnRequest is a connection request of a peer. It must be answered with
// Accept or Reject, or dropped with Close.
type ConnRequest struct {
	dev           *Device
	req           *mpa.Request
	stream        *capture.Stream
	local, remote net.Addr

	mu       sync.Mutex
	answered bool
	detach   func() bool // from the device's context
}

// made reports whether Accept of a listener has made the request.
func (r *ConnRequest) made() bool { return r != nil && r.req != nil }

// PrivateData returns what the peer's ULP sent along.
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
// IRD and ORD.
func (r *ConnRequest) MPA() *mpa.Request {
	if !r.made() {
		return nil
	}
	return r.req
}

func (r *ConnRequest) fail(op string, err error) error {
	return &OpError{Op: op, Object: "request of " + r.remote.String(), Err: err}
}

// answer makes sure that a request is answered once.
func (r *ConnRequest) answer() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return errors.New("it has been answered already, or dropped with its device")
	}
	r.answered = true
	r.detach()
	return nil
}

// release gives back what a connection in start-up holds.
func (r *ConnRequest) release() {
	r.dev.manager.Release(pd.HalfOpen, 1)
	<-r.dev.halfOpen
	r.dev.wg.Done()
}

// forget ends the recording of a byte stream that comes to nothing.
func (r *ConnRequest) forget() {
	if r.stream != nil {
		r.stream.Reset(true)
	}
}

// Accept answers the request with a Reply that accepts: the queue pair goes from
// Idle to RTS. Requests posted to it leave once the peer's first message is
// here (RFC 5044 §7.1.2 rule 4).
//
// It returns an *OpError that wraps what went wrong, as QP.Connect does; the
// request is dropped then, and the queue pair idle, unless it was aborted or
// closed meanwhile.
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
	if err := r.answer(); err != nil {
		return r.fail(op, err)
	}
	defer r.release()
	s, err := q.beginStartup(ctx, p)
	if err != nil {
		r.dev.stats.failed.Add(1)
		_ = r.req.Close() // err says why
		r.forget()
		return r.fail(op, err)
	}
	defer s.end()
	s.stream = r.stream
	conn, err := r.req.Accept(s.ctx, s.cfg)
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
// tells the peer's ULP the reason. The connection stays open until the peer has
// closed it, for at most the device's CloseTimeout.
func (r *ConnRequest) Reject(ctx context.Context, privateData []byte) error {
	const op = "reject"
	if !r.made() {
		return notMade(op, "request")
	}
	if ctx == nil {
		return r.fail(op, ErrNoContext)
	}
	if err := r.answer(); err != nil {
		return r.fail(op, err)
	}
	if err := r.req.Reject(ctx, privateData); err != nil {
		_ = r.req.Close() // err says why
		r.forget()
		r.release()
		return r.fail(op, err)
	}
	r.dev.stats.rejected.Add(1)
	go r.linger() // release counts it
	return nil
}

// linger waits until the peer has closed a connection that was rejected, "leaving
// the TCP connection open" (RFC 5044 §7.1.2 rule 2). An Initiator that finds the
// Reply and the end of the connection at the same time may look only at the
// latter, as Linux siw does, and never tell its ULP the reason.
func (r *ConnRequest) linger() {
	defer r.release()
	c := r.req.NetConn()
	stop := context.AfterFunc(r.dev.ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.SetReadDeadline(time.Now().Add(r.dev.cfg.CloseTimeout))
	n, err := io.Copy(io.Discard, c)
	_ = c.Close() // it has served its purpose
	if r.stream != nil {
		r.stream.Close(err != nil || n > 0)
	}
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
	r.forget()
	if err := r.req.Close(); err != nil {
		return r.fail("close", err)
	}
	return nil
}
