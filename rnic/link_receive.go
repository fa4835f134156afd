package rnic

import (
	"errors"
	"io"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic/internal/drive"
	"urnic/rnic/internal/life"
)

// Receive implements drive.Pump.
func (l *link) Receive() drive.Outcome {
	l.failed = l.rdmap.Receive()
	l.heard()
	if errors.Is(l.failed, ErrInterrupted) {
		l.failed = nil
		return drive.Interrupted
	}
	return drive.Some
}

// TryReceive implements drive.Pump. An error, a Terminate, or a message that waits for a
// receive is left to the goroutine: a link that closes has called End.
func (l *link) TryReceive() drive.Outcome {
	some, err := l.rdmap.TryReceive()
	l.heard()
	interrupted := err != nil && errors.Is(err, ErrInterrupted)
	if interrupted {
		err = nil
	}
	l.failed = err
	switch {
	case err != nil, l.terminate != nil:
		return drive.ForGoroutine
	case some:
		return drive.Some
	case interrupted:
		return drive.Interrupted
	}
	return drive.Nothing
}

// Await implements drive.Pump.
func (l *link) Await() drive.Outcome {
	if err := l.conn.Await(); err != nil && errors.Is(err, ErrInterrupted) {
		return drive.Interrupted
	}
	return drive.Some
}

// Interrupt implements drive.Pump.
func (l *link) Interrupt() { l.conn.Interrupt() }

// MayLeave implements drive.Pump: an armed completion queue must fire although no
// program polls or waits.
func (l *link) MayLeave() bool { return l.qp.sendCQ.armed.Load() == 0 && l.qp.recvCQ.armed.Load() == 0 }

// Received implements drive.Pump: it processes what has arrived, and reports whether the
// link has ended.
func (l *link) Received() (ended bool) {
	if l.failed == nil && l.terminate == nil && !l.badClose {
		return false
	}
	if errors.Is(l.failed, ddp.ErrDeclined) && l.terminate == nil && !l.badClose {
		l.failed = nil
		l.awaitReceive()
		return false
	}
	a := life.Arrival{Terminate: l.terminate}
	if a.Terminate == nil && !l.badClose {
		l.say(&a)
	}
	var course life.Course
	l.happen(func(m *life.Machine) (fx life.Effects) {
		fx, course = m.Received(a)
		return fx
	})
	l.badClose = false
	if course == life.GoOn {
		return false
	}
	l.end(course)
	return true
}

// say reports to the life what an error of receiving means.
func (l *link) say(a *life.Arrival) {
	e, isOurs := errors.AsType[*rdmap.Error](l.failed)
	switch {
	case isOurs:
		a.Violation, a.Event = e, eventOf(e)
		l.qp.rq.blame(e)
	case errors.Is(l.failed, io.EOF):
		a.Ended = true
	default:
		a.Lost = l.failed
	}
}

// eventOf returns the event for an error that this side has found in what the
// peer sent.
func eventOf(e *rdmap.Error) life.Event {
	switch {
	case e.Code == rdmap.TermCode(mpa.CodeCRC.TermWord()), e.Code == rdmap.TermCode(mpa.CodeMarker.TermWord()):
		return life.Integrity
	case e.Code.LocalCatastrophic(), errors.Is(e, ErrOverflow):
		return life.Catastrophic
	case e.Code.Layer() != rdmap.LayerLLP && e.Code.EType() == 1:
		return life.Protection
	}
	return life.RemoteOperation
}

// Arrived implements rdmap.Handler. Mostly, the life does not want the event.
func (l *link) Arrived() {
	switch l.watches.Load() {
	case watchFirst:
		l.news = true
	case watchAll:
		l.badClose = true
		l.happen((*life.Machine).Arrived)
	}
}

// heard reports to the life that something has arrived from the peer. It is already
// placed.
func (l *link) heard() {
	if l.news {
		l.news = false
		l.happen(func(m *life.Machine) life.Effects {
			if m.Heard().Transmit {
				l.driver.Wake()
			}
			return life.Effects{}
		})
	}
}

// ReceiveBuffer implements rdmap.Handler.
func (l *link) ReceiveBuffer(ahead uint32, immediate bool) (ddp.Buffer, error) {
	if l.posted != nil && l.mustWait() {
		return nil, ddp.ErrDeclined
	}
	return l.qp.receiveBuffer(l, ahead, immediate), nil
}

// Deliver implements rdmap.Handler.
func (l *link) Deliver(d rdmap.Delivery) error { return l.qp.deliver(d) }

// Terminated implements rdmap.Handler.
func (l *link) Terminated(t rdmap.Terminate) { l.terminate = &t }

// Wake implements rdmap.Handler. The receiver passes it on when it has
// processed what has arrived; others call Kick themselves.
func (l *link) Wake() { l.driver.Wake() }

// Completed implements rdmap.Handler.
func (l *link) Completed(o *rdmap.Operation) error {
	w := o.Context.(*sendWQE)
	var err error
	switch {
	case w.op.isAtomic():
		err = w.Refuse(life.LocalProtection, w.storeOriginal())
	case w.op == OpReadInvalidate:
		err = w.Refuse(w.invalidate(o.SinkSTag))
	}
	if err != nil {
		return life.LocalFault(err)
	}
	q := l.qp
	q.mu.Lock()
	defer q.mu.Unlock()
	q.life.Answered(&w.Request)
	if !q.complete() {
		return q.sendCQ.noSlot()
	}
	return nil
}
