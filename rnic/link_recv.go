package rnic

import (
	"errors"
	"fmt"
	"io"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/rdmap"
)

// received goes on after a look at what has come, and reports whether the link
// has ended.
func (l *link) received(err error) bool {
	e, isOurs := errors.AsType[*rdmap.Error](err)
	switch {
	case l.late.Load():
		l.lost(l.badClose(), EventBadClose)
	case l.peerTerminate != nil:
		l.terminated()
	case err == nil:
		return false
	case errors.Is(err, io.EOF):
		l.halfClosed()
	case isOurs && !l.heard.Load() && !l.closing.Load(): // "MUST receive and validate at least one FPDU before sending any": RFC 5044 §7.1.2 rule 4
		l.lost(e, eventOf(e))
	case isOurs:
		l.blameReceive(e)
		l.blameSink(e)
		l.terminating(e, eventOf(e))
		l.linger()
	default:
		l.lost(err, EventLost)
	}
	return true
}

// eventOf returns the event for an error that this side has found in what the
// peer sent.
func eventOf(e *rdmap.Error) EventType {
	switch {
	case e.Code == rdmap.TermCode(mpa.CodeCRC.TermWord()), e.Code == rdmap.TermCode(mpa.CodeMarker.TermWord()):
		return EventIntegrity
	case e.Code.LocalCatastrophic(), errors.Is(e, ErrOverflow):
		return EventCatastrophic
	case e.Code.Layer() != rdmap.LayerLLP && e.Code.EType() == 1:
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
	if was == RTS {
		q.state, q.err = Terminating, err
	}
	l.limit()
	q.mu.Unlock()
	switch was {
	case Closing: // which it became when the message was on its way already
		l.lost(err, EventBadClose)
		return
	case RTS, Terminating:
		q.pd.dev.report(Event{Type: EventTerminateReceived, QP: q, Err: err, Terminate: l.peerTerminate})
	default: // it has ended already
	}
	l.disputed.Store(true)
	l.blameRead(l.peerTerminate)
	l.kick()
	l.linger()
}

// badClose says what came while the connection was closing.
func (l *link) badClose() error {
	if l.peerTerminate == nil {
		return errBadClose
	}
	return fmt.Errorf("%w: %w", errBadClose, &rdmap.PeerError{Terminate: *l.peerTerminate})
}

// linger waits until this side's half is closed and the peer has closed its own,
// and ends the link. To close the connection earlier could destroy a Terminate
// that is on its way to the peer (RFC 5040 §6.2.1: "SHOULD perform a graceful
// LLP teardown"). The time is bounded by limit.
func (l *link) linger() {
	select {
	case <-l.writeEnded:
	case <-l.aborted:
		l.finish(false)
		return
	}
	err := l.rdmap.Discard()
	l.finish(err == nil && l.sendErr == nil)
}

// halfClosed is told that the peer has closed its half, and ends the link when
// this side has closed its own: judge decides how.
func (l *link) halfClosed() {
	q := l.qp
	l.peerEnded.Store(true)
	if n := q.sq.pending(); n > 0 && !l.heard.Load() {
		// "MUST NOT send any FPDUs before receiving one": not even a Terminate
		// (RFC 5044 §7.1.2 rule 4).
		l.lost(errPeerClosed(n), EventBadLLPClose)
		return
	}
	q.mu.Lock()
	l.limit()
	q.mu.Unlock()
	l.kick()
	select {
	case <-l.writeEnded:
	case <-l.aborted:
		l.finish(false)
		return
	}
	if l.sendErr != nil {
		l.lost(l.sendErr, EventLost)
		return
	}
	l.finish(true)
}

// errPeerClosed says why the stream ends when the peer closes its half too
// early.
func errPeerClosed(outstanding int) *rdmap.Error {
	return &rdmap.Error{
		Code: rdmap.CodeStreamCatastrophic, Clause: "draft-hilland-rddp-verbs §6.2",
		Reason: fmt.Sprintf("the peer closed the connection while work was outstanding (%d requests)", outstanding),
	}
}

// lost ends a link whose connection is no more, or is to be reset.
func (l *link) lost(err error, event EventType) {
	l.reset(err, event)
	l.finish(false)
}

// ReceiveBuffer implements rdmap.Handler.
func (l *link) ReceiveBuffer(ahead uint32, immediate bool) ddp.Buffer {
	return l.qp.receiveBuffer(l, ahead, immediate)
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
		err = w.refuse(w.invalidate(o.SinkSTag))
	}
	if err != nil {
		return localFault(err)
	}
	l.answered++
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads--
	if !w.answered() {
		return nil
	}
	w.state = done
	if !s.complete(l.accepted.Load()) {
		return l.qp.sendCQ.noPlace()
	}
	return nil
}
