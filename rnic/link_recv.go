package rnic

import (
	"errors"
	"io"

	"urnic/ddp"
	"urnic/rdmap"
)

// receive is the receiver: it takes segments until the stream ends, and ends
// the link then.
func (l *link) receive() {
	for {
		err := l.rdmap.Receive()
		if l.woken.Swap(false) {
			l.kick()
		}
		switch {
		case l.peerTerminate != nil:
			l.terminated()
			l.linger()
			l.finish(false)
			return
		case l.late.Load():
			l.lost(errBadClose, EventBadClose)
			return
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			l.finish(l.halfClosed())
			return
		}
		if e := (*rdmap.Error)(nil); errors.As(err, &e) {
			l.terminating(e, eventOf(e))
			l.linger()
			l.finish(false)
			return
		}
		l.lost(err, EventLost)
		return
	}
}

// eventOf returns the event for an error that this side has found in what the
// peer sent.
func eventOf(e *rdmap.Error) EventType {
	switch {
	case e.Code.Layer() == rdmap.LayerLLP:
		return EventIntegrity
	case e.Code.LocalCatastrophic(), errors.Is(e, ErrOverflow):
		return EventCatastrophic
	case e.Code.Layer() == rdmap.LayerDDP && e.Code.EType() == 1, e.Code.Layer() == rdmap.LayerRDMAP && e.Code.EType() == 1:
		return EventProtection
	}
	return EventRemoteOperation
}

// terminated notes the peer's Terminate. This side stops sending, and closes
// (RFC 5040 §5.4).
func (l *link) terminated() {
	q := l.qp
	err := &rdmap.PeerError{Terminate: *l.peerTerminate}
	q.mu.Lock()
	was := q.state
	if was == RTS || was == Closing {
		q.state, q.err = Terminating, err
	}
	l.limit()
	q.mu.Unlock()
	q.pd.dev.report(Event{Type: EventTerminateReceived, QP: q, Err: err, Terminate: l.peerTerminate})
	l.kick()
}

// linger waits until this side's half is closed and the peer has closed its own.
// To close the connection earlier could destroy a Terminate that is on its way
// to the peer (RFC 5040 §6.2.1: "SHOULD perform a graceful LLP teardown"). The
// time is bounded by limit.
func (l *link) linger() {
	<-l.writeEnded
	_ = l.rdmap.Discard() // the connection is closed in any case
}

// halfClosed is told that the peer has closed its half. It reports whether the
// stream ends gracefully.
func (l *link) halfClosed() bool {
	q := l.qp
	l.peerEnded.Store(true)
	l.closing.Store(false)
	q.mu.Lock()
	l.limit()
	q.mu.Unlock()
	l.kick() // judge decides
	<-l.writeEnded
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state == Closing
}

// lost ends a link whose connection is no more.
func (l *link) lost(err error, event EventType) {
	q := l.qp
	q.mu.Lock()
	was := q.state
	q.state = Error
	if q.err == nil {
		q.err = err
	}
	why := q.err
	q.mu.Unlock()
	if was == RTS || was == Closing {
		q.pd.dev.report(Event{Type: event, QP: q, Err: why})
	}
	l.finish(false)
}

// ReceiveBuffer implements rdmap.Handler.
func (l *link) ReceiveBuffer(ahead uint32, immediate bool) ddp.Buffer {
	return l.qp.receiveBuffer(ahead, immediate)
}

// Deliver implements rdmap.Handler.
func (l *link) Deliver(d rdmap.Delivery) error { return l.qp.deliver(d) }

// Terminated implements rdmap.Handler.
func (l *link) Terminated(t rdmap.Terminate) { l.peerTerminate = &t }

// Wake implements rdmap.Handler. The receiver passes it on when it has taken
// what has arrived; others call kick themselves.
func (l *link) Wake() { l.woken.Store(true) }

// Completed implements rdmap.Handler.
func (l *link) Completed(o *rdmap.Operation) error {
	w := o.Context.(*sendWQE)
	var err error
	switch {
	case w.op.isAtomic():
		err = w.refuse(StatusLocalProtection, w.storeOriginal())
	case w.op == OpReadInvalidate:
		err = w.invalidate(&l.qp.pd.dev.memory, o.SinkSTag, l.qp.scope())
	}
	if err != nil {
		return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §7.1", Err: err}
	}
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	w.state = done
	if !s.complete(l.accepted.Load()) {
		return &rdmap.Error{Code: rdmap.CodeStreamCatastrophic, Clause: "RFC 5040 §8.1.1", Err: l.qp.sendCQ.fail("complete", ErrOverflow)}
	}
	return nil
}
