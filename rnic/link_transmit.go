package rnic

import (
	"errors"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic/internal/drive"
	"urnic/rnic/internal/life"
)

// fetch is how many requests the transmitter fetches, or reports as posted,
// under one lock.
const fetch = 32

// Transmit implements drive.Pump: it posts and flushes what there is, completes what the
// LLP has accepted, and decides what to do when nothing is left.
func (l *link) Transmit(wait bool) drive.Result {
	if l.over {
		return drive.Idle
	}
	l.flushFirst, l.exhausted = false, false
	idle, out, err := l.move(wait)
	more := l.complete()
	if e := l.rdmap.Failure(); e != nil { // which no receiver has found
		l.happen(func(m *life.Machine) life.Effects { return m.Fail(e, eventOf(e)) }) // asks for another pass
	}
	if err != nil {
		l.broken(err)
		return drive.Idle
	}
	terminated := l.rdmap.Ended()
	s := life.Sent{All: idle && out, Terminated: terminated}
	ending := l.ending.Load()
	if ending {
		s.Answering, s.Outstanding = l.rdmap.Answering(), l.rdmap.Outstanding()
		l.happen(func(m *life.Machine) life.Effects { return m.Judge(s) })
	}
	switch {
	case !out:
		return drive.Blocked
	case !idle, l.flushFirst, more:
		return drive.More
	case ending || terminated:
		return l.closeHalf(s, wait)
	}
	return drive.Idle
}

// closeHalf closes this side's half of the stream, if its time has come.
func (l *link) closeHalf(s life.Sent, wait bool) drive.Result {
	var half life.HalfClose
	l.happen(func(m *life.Machine) life.Effects {
		half = m.CloseOwn(s, l.conn.Polls(), wait)
		return life.Effects{}
	})
	switch half {
	case life.DeferHalf:
		return drive.Blocked
	case life.CloseHalf:
		if err := l.conn.CloseWrite(); err != nil {
			l.happen(func(m *life.Machine) life.Effects { return m.Abort(err, life.Lost) })
		}
	case life.KeepHalf:
		return drive.Idle
	case life.LeaveHalf:
	}
	l.over = true
	l.happen((*life.Machine).OwnEnded)
	return drive.Idle
}

// broken ends the sending for an error of the LLP.
func (l *link) broken(err error) {
	l.over = true
	lost, isMemory := errors.AsType[*mpa.MemoryError](err)
	l.happen(func(m *life.Machine) life.Effects {
		l.tellSent()
		fx := m.Broken(err)
		if isMemory {
			fx = fx.And(m.MemoryLost(lost, err, lost.Position))
		}
		return fx
	})
}

// move posts and flushes what there is, for a few batches of the LLP. Batches
// are short, so that what has been checksummed is still in the processor's
// cache when the kernel copies it. Completing after each one would be too
// often.
func (l *link) move(wait bool) (idle, out bool, err error) {
	const batches = 4
	for range batches {
		if idle, err = l.rdmap.Transmit(l); err == nil {
			out, err = l.flush(wait)
		}
		l.lease.End()
		if idle || !out || err != nil {
			break
		}
	}
	return idle, out, err
}

// flush hands what is posted to the LLP, which has sent or copied it then. It does
// not wait while it holds memory open: a program that closes a region must not
// wait for a peer that does not read.
func (l *link) flush(wait bool) (out bool, err error) {
	before := l.conn.Accepted()
	out, err = l.conn.Flush(false)
	l.lease.End()
	if wait && !out && err == nil && l.conn.Accepted() == before {
		out, err = l.conn.Flush(true)
	}
	return out, err
}

// complete completes the requests whose bytes the LLP has accepted. It reports
// whether there were any and others wait to be begun.
func (l *link) complete() (more bool) {
	accepted := l.conn.Accepted()
	if accepted == l.accepted { // and nothing that was posted since has been sent
		return false
	}
	l.accepted = accepted
	q := l.qp
	q.mu.Lock()
	defer q.mu.Unlock()
	l.tellSent()
	more = q.life.Accepted(accepted)
	if !q.complete() {
		l.rdmap.Fail(q.sendCQ.noSlot())
	}
	return more
}

// tellSent reports to the life, under the queue pair's mu, what is posted.
func (l *link) tellSent() {
	for _, s := range l.sent {
		l.qp.life.Posted(s.request, s.position)
	}
	l.sent = l.sent[:0]
}

// Next implements rdmap.Submitter: it returns the next request that may be begun, and
// carries out those that send nothing.
func (l *link) Next() *rdmap.Operation {
	switch {
	case l.passedOn < len(l.batch):
		l.passedOn++
		return &l.batch[l.passedOn-1].Messages[0]
	case l.exhausted:
		return nil
	}
	q := l.qp
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		turn, r, message := q.life.Next(l)
		switch turn {
		case life.Send:
			if l.batch == nil {
				l.batch = make([]*life.Request, 0, fetch)
			}
			l.batch, l.exhausted = q.life.Batch(l.batch[:0])
			l.passedOn = 0
			return message
		case life.CarryOut:
			if !l.carryOutLocal(r) {
				return nil
			}
			continue
		case life.Failed:
			l.rdmap.Fail(life.LocalFault(r.Cause)) // the state changes later, under no lock
		case life.Flush:
			l.flushFirst = true
		case life.Wait:
		}
		return nil
	}
}

// carryOutLocal carries out a request that sends nothing, and reports whether that was a
// success. The caller holds the queue pair's mu, which is released meanwhile: the request
// waits for those that use the memory.
func (l *link) carryOutLocal(r *life.Request) bool {
	q := l.qp
	q.mu.Unlock()
	status, err := r.Owner.(*sendWQE).carryOut()
	q.mu.Lock()
	if err != nil {
		l.rdmap.Fail(life.LocalFault(r.Refuse(status, err)))
		return false
	}
	q.life.CarriedOut(r)
	if !q.complete() {
		l.rdmap.Fail(q.sendCQ.noSlot())
		return false
	}
	return true
}

// MayRead implements life.Transmission.
func (l *link) MayRead() bool { return l.rdmap.MayRead() }

// HoldsMemory implements life.Transmission.
func (l *link) HoldsMemory() bool { return !l.lease.Idle() }

// Check implements life.Transmission.
func (l *link) Check(r *life.Request) (life.Status, error) {
	return life.LocalProtection, r.Owner.(*sendWQE).checkSink()
}

// Submitted implements rdmap.Submitter. A Read is done when its response has arrived,
// which may already be so.
func (l *link) Submitted(o *rdmap.Operation, position uint64) {
	w := o.Context.(*sendWQE)
	if w.op.isRead() {
		return
	}
	if len(l.sent) == fetch {
		l.qp.mu.Lock()
		l.tellSent()
		l.qp.mu.Unlock()
	}
	l.sent = append(l.sent, posting{&w.Request, position})
}

// Failed implements rdmap.Submitter. The stream has failed by now, see Transmit.
func (l *link) Failed(o *rdmap.Operation, err error) {
	l.qp.mu.Lock()
	defer l.qp.mu.Unlock()
	_ = o.Context.(*sendWQE).Refuse(life.LocalProtection, err)
}
