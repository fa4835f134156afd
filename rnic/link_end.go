package rnic

import (
	"errors"
	"time"

	"urnic/rdmap"
)

var errBadClose = errors.New("a segment arrived while the connection was closing")

// terminating ends the stream for an error that this side has found: the peer
// is told by a Terminate message, and the link closes. It reports event, unless
// that is zero. It may be called from anywhere, with no lock held.
func (l *link) terminating(e *rdmap.Error, event EventType) {
	q := l.qp
	q.mu.Lock()
	switch {
	case q.link != l || q.state != RTS && q.state != Closing:
		q.mu.Unlock()
		return
	case q.state == Closing: // a graceful close has no room for a Terminate
		q.mu.Unlock()
		l.reset(e, EventBadClose)
		return
	}
	q.state, q.err = Terminating, e
	l.limit()
	q.mu.Unlock()
	if event != 0 {
		q.pd.dev.report(Event{Type: event, QP: q, Err: e})
	}
	l.rdmap.Fail(e)
	l.kick()
}

// localFault returns the error with which a stream ends because a request of this side
// has failed.
func localFault(err error) *rdmap.Error {
	return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §7.1", Err: err}
}

// catastrophe ends the queue pair, with its stream if it has one, because
// something of its own has failed, such as a completion queue.
func (q *QP) catastrophe(e *rdmap.Error) {
	for {
		q.mu.Lock()
		l, state := q.link, q.state
		q.mu.Unlock()
		switch state {
		case RTS:
			l.terminating(e, EventCatastrophic) // if it is not closing by now
			continue
		case Closing:
			l.reset(e, EventCatastrophic) // if it is not closed by now
		case Idle:
		default:
			return
		}
		q.pd.dev.wg.Go(func() { // a start-up may take a while to end
			if q.end(e.Err) {
				q.pd.dev.report(Event{Type: EventCatastrophic, QP: q, Err: e.Err})
			}
		})
		return
	}
}

// limit bounds the time that the end takes. The caller holds the queue pair's
// mu.
func (l *link) limit() {
	l.ends()
	if l.timer == nil && !l.over {
		l.timer = time.AfterFunc(l.qp.pd.dev.cfg.CloseTimeout, func() { l.reset(errNoDeadline, EventLost) })
	}
}

// reset makes the state Error and resets the connection, so that the receiver
// ends the link. It reports event, unless that is zero or the stream was being
// ended for an error before.
func (l *link) reset(why error, event EventType) {
	q := l.qp
	q.mu.Lock()
	if !l.wasReset {
		l.wasReset = true
		close(l.aborted)
	}
	tell := false
	if q.link == l && !l.over {
		tell = event != 0 && (q.state == RTS || q.state == Closing)
		q.state = Error
		if q.err == nil {
			q.err = why
		}
	}
	q.mu.Unlock()
	if tell {
		q.pd.dev.report(Event{Type: event, QP: q, Err: why})
	}
	_ = l.conn.Abort() // the link ends, whatever it says
	l.ends()
}

// finish ends the link, in the receiver's goroutine: the connection is closed,
// nobody transmits any more, what is left in the queues is flushed, and the
// queue pair gets its last state. orderly says that both halves have ended, so
// that there is nothing to reset: that could destroy what is on its way to the
// peer.
func (l *link) finish(orderly bool) {
	q := l.qp
	if orderly {
		_ = l.conn.Close() // the link ends, whatever it says
	} else {
		_ = l.conn.Abort()
	}
	l.stopping.Store(true)
	l.kick()
	<-l.txStopped
	q.recvCQ.detach(l)
	q.sendCQ.detach(l)
	l.rx.end()
	l.conn.Free()

	q.mu.Lock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	graceful := orderly && q.state == Closing
	if !graceful {
		q.state, l.err = Error, q.err
	}
	q.mu.Unlock()

	if l.recording != nil {
		l.recording.End()
	}
	for _, h := range l.held {
		q.pd.domain.Release(h.resource, h.n)
	}
	if graceful {
		q.mu.Lock()
		q.flush() // under mu, so that nothing is posted behind it
		q.idle()
		q.mu.Unlock()
		q.pd.dev.report(Event{Type: EventCloseComplete, QP: q})
		close(l.done)
		return
	}
	q.pd.dev.stats.lost.Add(1)
	q.pd.dev.log.Info("stream ended", "device", q.pd.dev.cfg.Name, "qp", q.num, "error", l.err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flush() // from now on who posts flushes
	close(l.done)
}

// isDone reports whether the link has ended.
func (l *link) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// flush completes all requests that have not completed.
func (q *QP) flush() {
	q.sq.flush()
	q.flushRecv()
}
