package rnic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"urnic/internal/capture"
	"urnic/internal/sockio"
	"urnic/mpa"
)

// Why a request is answered no more.
var (
	errAnswered   = errors.New("it has been answered already, or dropped with its device")
	errNoPlace    = errors.New("the listener's queue is full: its program does not accept")
	errUnanswered = errors.New("it was not answered in time: see Config.AnswerTimeout")
	errGone       = errors.New("the peer has closed the connection")
	errEarly      = errors.New("the peer has sent something before the Reply (RFC 5044 §7.1.2)")
)

// A ConnRequest is a connection request of a peer. It must be answered with
// Accept or Reject, or dropped with Close, within Config.AnswerTimeout of its
// arrival. It is dropped if it is not, and when the peer closes the connection:
// the verbs say so.
type ConnRequest struct {
	dev           *Device
	listener      *Listener
	req           *mpa.Request
	stream        *capture.Stream
	local, remote net.Addr
	detach        func() bool   // from the device's context
	watcher       *time.Timer   // starts watch
	deadline      time.Time     // of the answer
	watched       chan struct{} // closed when watch is over

	mu   sync.Mutex
	over bool  // it is being answered, or was dropped
	gone error // why it was dropped, if it was; set before watched is closed
}

// wait begins the time in which a request can be answered. The device ends with
// its requests, wherever they are.
func (r *ConnRequest) wait(req *mpa.Request) {
	d := r.dev
	r.req, r.watched, r.deadline = req, make(chan struct{}), time.Now().Add(d.cfg.AnswerTimeout)
	d.wg.Add(1)
	r.mu.Lock() // Close looks for detach
	defer r.mu.Unlock()
	r.detach = context.AfterFunc(d.ctx, func() { _ = r.Close() })
	r.watcher = time.AfterFunc(min(atOnce, d.cfg.AnswerTimeout), r.watch) // whoever drops or answers the request waits for it
}

// atOnce is how long a request is not watched: most are answered before, and then
// cost no goroutine.
const atOnce = time.Millisecond

// watch drops a request whose peer goes, or that nobody answers in time. The
// peer has nothing to say before the Reply (RFC 5044 §7.1.2), so that nothing is
// lost by reading.
func (r *ConnRequest) watch() {
	c := r.req.NetConn()
	r.mu.Lock()
	if !r.over {
		_ = c.SetReadDeadline(r.deadline) // answer sets another one after this
	}
	r.mu.Unlock()
	n, err := c.Read(make([]byte, 1))
	r.mu.Lock()
	r.gone = r.heard(n, err)
	if r.gone == nil && !r.over {
		r.gone = errUnanswered
	}
	answered := r.over
	if !answered {
		r.over = true
		r.detach()
	}
	r.mu.Unlock()
	close(r.watched)
	if !answered {
		r.listener.queue.discard(func(o *ConnRequest) bool { return o == r })
		r.drop(r.gone)
	}
}

// heard says what reading in the peer's silence has come to: nothing, if all is
// well.
func (r *ConnRequest) heard(n int, err error) error {
	switch {
	case n > 0:
		return errEarly
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

// isOver reports whether nobody can answer the request any more. It looks at the
// connection itself, if nobody watches that yet.
func (r *ConnRequest) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !r.watcher.Stop() {
		return r.over
	}
	if r.gone = r.heard(sockio.TryRead(r.req.NetConn(), make([]byte, 1))); r.gone == nil {
		r.watcher.Reset(atOnce)
		return false
	}
	r.over = true
	r.detach()
	go r.drop(r.gone) // which waits for the network
	return true
}

// Waiting reports whether the request can still be answered.
func (r *ConnRequest) Waiting() bool { return r.made() && !r.isOver() }

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

// answer makes sure that a request is answered once, and by whom the peer still
// waits.
func (r *ConnRequest) answer() error {
	r.mu.Lock()
	if r.over {
		defer r.mu.Unlock()
		if r.gone != nil {
			return r.gone
		}
		return errAnswered
	}
	r.over = true
	r.detach()
	r.mu.Unlock()
	c := r.req.NetConn()
	if !r.watcher.Stop() { // watch has begun
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-r.watched
		_ = c.SetReadDeadline(time.Time{})
	}
	if r.gone == nil { // nobody else changes it now
		gone := r.heard(sockio.TryRead(c, make([]byte, 1)))
		r.mu.Lock()
		r.gone = gone
		r.mu.Unlock()
	}
	if r.gone != nil {
		r.drop(r.gone)
	}
	return r.gone
}

// release lets the device end.
func (r *ConnRequest) release() { r.dev.wg.Done() }

// drop closes the connection of a request that gets no answer.
func (r *ConnRequest) drop(why error) {
	defer r.release()
	_ = r.req.Close() // why says why already
	r.forget()
	r.dev.stats.dropped.Add(1)
	r.dev.log.Info("request dropped", "device", r.dev.cfg.Name, "peer", r.remote.String(), "error", why)
}

// turnAway drops a request for which the listener has no place.
func (r *ConnRequest) turnAway() {
	if r.answer() == nil {
		r.drop(errNoPlace)
	}
}

// forget ends the recording of a byte stream that comes to nothing.
func (r *ConnRequest) forget() {
	if r.stream != nil {
		r.stream.End()
	}
}

// Accept answers the request with a Reply that accepts: the queue pair goes from
// Idle to RTS. Requests posted to it leave once the peer's first message is
// here (RFC 5044 §7.1.2 rule 4).
//
// It returns an *OpError that wraps what went wrong, as QP.Connect does; the
// request is dropped then, and the queue pair idle, unless it was aborted or
// closed meanwhile. But it can still be answered if the queue pair is none of
// the device's, or what is asked for can't be, such as more private data than
// fit (a *mpa.ConfigError).
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
	if _, err := p.mpa(r.dev); err != nil {
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
// closed it, for at most the device's CloseTimeout; but of so many as may be half
// open only, further ones are closed at once.
//
// It returns an *OpError that wraps what went wrong; the request is dropped then.
// But it can still be answered if the private data are more than fit (a
// *mpa.ConfigError).
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
		_ = r.req.Close() // err says why
		r.forget()
		r.release()
		return r.fail(op, err)
	}
	r.dev.stats.rejected.Add(1)
	go r.linger() // release counts it
	return nil
}

// checkPrivateData refuses private data that don't fit into the Reply, which has
// the form of the Request.
func (r *ConnRequest) checkPrivateData(b []byte) error {
	limit := mpa.MaxPrivateData
	if r.req.Frame.Enhanced {
		limit -= mpa.EnhancedLen
	}
	if len(b) > limit {
		return &mpa.ConfigError{Reason: fmt.Sprintf("%d octets of private data: at most %d fit", len(b), limit)}
	}
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
	patience := r.dev.cfg.CloseTimeout
	select {
	case r.dev.lingering <- struct{}{}:
		defer func() { <-r.dev.lingering }()
	default:
		patience = 0
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if r.stream == nil {
		_, _ = io.Copy(io.Discard, c) // whatever ends it
	} else {
		switch _, err := io.Copy(received{r.stream}, c); {
		case err == nil:
			r.stream.Close(false)
		case errors.Is(err, syscall.ECONNRESET):
			r.stream.Reset(false)
		}
	}
	_ = r.req.Close() // it has served its purpose
	r.forget()
}

// received records what it is given as received.
type received struct{ *capture.Stream }

func (r received) Write(p []byte) (int, error) {
	r.Received(p)
	return len(p), nil
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
	err := r.req.Close()
	r.forget()
	if err != nil {
		return r.fail("close", err)
	}
	return nil
}
