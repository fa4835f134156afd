package rnic

import "urnic/rnic/internal/life"

// Reset makes a queue pair whose stream has ended idle again, so that it can be
// connected anew. STags of the old stream don't work on the next one. It
// returns an *OpError that wraps a *StateError while there is a stream, or
// while its requests are still being flushed.
func (q *QP) Reset() error {
	const op = "reset"
	if !q.made() {
		return notMade(op, "QP")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return q.fail(op, ErrClosed)
	case q.link != nil && q.life.State() == life.Error && !q.link.isDone():
		return q.fail(op, &StateError{State: Error, Err: ErrBusy})
	}
	was := q.life.State()
	if !q.life.Reset() {
		return q.fail(op, &StateError{State: State(was)})
	}
	q.forgotten.Store(false)
	q.tellDrained()
	if was == life.Idle {
		return nil
	}
	if q.link != nil {
		q.ended.Add(q.link.rdmap.Stats())
		q.link = nil
	}
	q.renew()
	return nil
}
