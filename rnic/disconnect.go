package rnic

import (
	"context"
	"fmt"

	"urnic/rdmap"
	"urnic/rnic/internal/life"
)

// Disconnect closes the connection gracefully. The queue pair accepts no more
// requests. Disconnect waits until those that are posted have completed and the
// peer's Reads are answered, ends this side's half, and waits until the peer
// has ended the other one. Then the queue pair is idle, and receives that are
// left are flushed.
//
// If the stream ends otherwise, Disconnect returns an *OpError that wraps the
// cause. When the context ends first, it resets the connection.
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
	l.happen((*life.Machine).Disconnect)
	select {
	case <-l.done:
	case <-ctx.Done():
		l.abort(context.Cause(ctx))
		<-l.done
	}
	return q.orNil(op, l.err)
}

// closingLink returns the stream to wait for, or nil if it was closed
// gracefully before.
func (q *QP) closingLink() (*link, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch state := q.life.State(); {
	case q.link == nil:
		return nil, ErrNoStream
	case state == life.Idle:
		return nil, nil
	case state == life.Error:
		return nil, &StateError{State: Error, Err: q.life.Why()}
	}
	return q.link, nil
}

func (q *QP) orNil(op string, err error) error {
	if err == nil {
		return nil
	}
	return q.fail(op, err)
}

// Terminate ends the stream with a Terminate message that gives no reason (a
// local catastrophic error), and waits until it has ended. When the context
// ends first, it resets the connection. The queue pair is then in state Error.
// It returns an *OpError that wraps ErrNoStream, or a *StateError if the stream
// is ending already.
func (q *QP) Terminate(ctx context.Context) error {
	const op = "terminate"
	if !q.made() {
		return notMade(op, "QP")
	}
	if ctx == nil {
		return q.fail(op, ErrNoContext)
	}
	q.mu.Lock()
	l, state, why := q.link, State(q.life.State()), q.life.Why()
	q.mu.Unlock()
	switch {
	case l == nil || state == Idle:
		return q.fail(op, ErrNoStream)
	case state != RTS:
		return q.fail(op, &StateError{State: state, Err: why})
	}
	l.happen(func(m *life.Machine) life.Effects {
		return m.Fail(&rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §4.8", Err: ErrAborted}, 0)
	})
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		l.abort(context.Cause(ctx))
		<-l.done
		return q.fail(op, fmt.Errorf("the stream was reset: %w", context.Cause(ctx)))
	}
}

// Abort resets the connection, flushes all requests and leaves the queue pair
// in state Error; without a connection it only does the latter two. It cancels
// a connection that is being set up. When it returns, nothing changes memory on
// behalf of the queue pair any more.
func (q *QP) Abort() {
	if q.made() {
		q.end(ErrAborted)
	}
}
