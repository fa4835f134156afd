package rnic

import (
	"context"
	"fmt"

	"urnic/rdmap"
)

// Disconnect closes the connection gracefully: it takes no more requests, waits
// until those that are posted have completed and the peer's Reads are answered,
// ends this side's half, and waits until the peer has ended the other one. The
// queue pair is idle then; receives that are left are flushed.
//
// It returns an *OpError that wraps why the stream ended otherwise. When the
// context ends first, the connection is reset.
func (q *QP) Disconnect(ctx context.Context) error {
	const op = "disconnect"
	if !q.made() {
		return notMade(op, "QP")
	}
	if ctx == nil {
		return q.fail(op, ErrNoContext)
	}
	l, err := q.closingLink()
	if err != nil || l == nil {
		return q.orNil(op, err)
	}
	l.closeAsked.Store(true)
	l.ends()
	l.kick()
	select {
	case <-l.done:
	case <-ctx.Done():
		l.reset(context.Cause(ctx), 0)
		<-l.done
	}
	return q.orNil(op, l.err)
}

// closingLink returns the stream to wait for, or nil if it was closed
// gracefully before.
func (q *QP) closingLink() (*link, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.link == nil:
		return nil, ErrNoStream
	case q.state == Idle:
		return nil, nil
	case q.state == Error:
		return nil, &StateError{State: q.state, Err: q.err}
	}
	q.link.draining = true
	return q.link, nil
}

func (q *QP) orNil(op string, err error) error {
	if err == nil {
		return nil
	}
	return q.fail(op, err)
}

// Terminate ends the stream with a Terminate message that gives no reason (a
// local catastrophic error), and waits until it has ended; when the context
// ends first, the connection is reset. The queue pair is in state Error then. It
// returns an *OpError that wraps ErrNoStream, or a *StateError if the stream is
// ending already.
func (q *QP) Terminate(ctx context.Context) error {
	const op = "terminate"
	if !q.made() {
		return notMade(op, "QP")
	}
	if ctx == nil {
		return q.fail(op, ErrNoContext)
	}
	q.mu.Lock()
	l, state, why := q.link, q.state, q.err
	q.mu.Unlock()
	switch {
	case l == nil || state == Idle:
		return q.fail(op, ErrNoStream)
	case state != RTS:
		return q.fail(op, &StateError{State: state, Err: why})
	}
	l.terminating(&rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §4.8", Err: ErrAborted}, 0)
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		l.reset(context.Cause(ctx), 0)
		<-l.done
		return q.fail(op, fmt.Errorf("the stream was reset: %w", context.Cause(ctx)))
	}
}

// Abort resets the connection, flushes all requests and leaves the queue pair in
// state Error; without a connection it only does the latter two. A connection
// that is on its way is given up. When it returns, nothing changes memory on
// behalf of the queue pair any more.
func (q *QP) Abort() {
	if q.made() {
		q.end(ErrAborted)
	}
}
