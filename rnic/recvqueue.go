package rnic

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/stag"
)

var errOutOfTurn = errors.New("a message came before its turn")

// A recvQueue is where the receives of a queue pair come from: a queue of its
// own, or a shared one.
type recvQueue struct {
	mu    sync.Mutex
	ring  recvRing     // the queue pair's own
	held  atomic.Int32 // its completions in the queue, of QPAttr.HoldReceives
	lease stag.Lease   // of the SGLs that are checked

	// taken is the receive of the SRQ that belongs to the message in turn, or
	// nil. Only the receiver uses it.
	taken *recvWQE

	// paired is the immediate data of the Send that comes next, if hasPaired. Only
	// the receiver uses them.
	paired    rdmap.Immediate
	hasPaired bool
}

// PostRecv posts receives. It returns an *OpError that wraps a *WRError for the
// first one that it refuses; those before it are posted.
//
// What a consumer does with the memory before PostRecv happens before the RNIC
// places anything there.
func (q *QP) PostRecv(wrs ...RecvWR) error {
	const op = "post receive"
	if !q.made() {
		return notMade(op, "QP")
	}
	if q.srq != nil {
		return q.fail(op, ErrUsesSRQ)
	}
	// Under mu no stream ends and flushes meanwhile, and leaves these behind.
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.mayPost(); err != nil {
		return q.fail(op, err)
	}
	defer q.flushLate()
	defer func() {
		if q.link != nil {
			q.link.feed()
		}
	}()
	q.rq.mu.Lock()
	defer q.rq.mu.Unlock()
	defer q.rq.lease.End()
	for i := range wrs {
		if q.rq.ring.n+int(q.rq.held.Load()) >= q.rq.ring.limit {
			return q.fail(op, &WRError{Index: i, ID: wrs[i].ID, Op: OpRecv, Err: ErrQueueFull})
		}
		if err := q.rq.ring.postFor(&wrs[i], &q.rq.lease, &q.pd.dev.memory, q.scope(), q.attr.MaxSGE, q.judgesLate()); err != nil {
			return q.fail(op, &WRError{Index: i, ID: wrs[i].ID, Op: OpRecv, Err: err})
		}
	}
	return nil
}

// mayPost checks under mu whether requests are taken.
func (q *QP) mayPost() error {
	switch {
	case q.closed:
		return ErrClosed
	case q.state == Idle, q.state == RTS && !q.link.draining, q.judgesLate():
		return nil
	case q.state == RTS:
		return &StateError{State: q.state, Err: errDraining}
	}
	return &StateError{State: q.state, Err: q.err}
}

func (q *QP) judgesLate() bool { return q.pd.dev.cfg.JudgeLate }

// isLate reports under mu whether what is posted now is only to be flushed.
func (q *QP) isLate() bool { return q.state != Idle && (q.state != RTS || q.link.draining) }

// flushLate flushes under mu what was posted when there was nobody any more to do
// so.
func (q *QP) flushLate() {
	if q.state == Error && (q.link == nil || q.link.isDone()) {
		q.flush()
	}
}

// receiveBuffer returns the receive for a message, ahead of the oldest one in
// use; nil if there is none.
func (q *QP) receiveBuffer(l *link, ahead uint32, immediate bool) ddp.Buffer {
	var w *recvWQE
	switch {
	case q.srq == nil:
		q.rq.mu.Lock()
		if ahead < uint32(q.rq.ring.n) {
			w = *q.rq.ring.at(int(ahead))
		}
		q.rq.mu.Unlock()
	case ahead > 0:
		return q.lookAhead(int(ahead), immediate)
	default:
		w = q.takeShared()
	}
	switch {
	case w == nil:
		return nil
	case immediate:
		return &w.immediate
	}
	w.lease = l.rdmap.Lease()
	return w
}

// takeShared returns the receive for the message in turn, which it takes off the
// SRQ when the message begins.
func (q *QP) takeShared() *recvWQE {
	if q.rq.taken != nil {
		return q.rq.taken
	}
	if q.shareLeft() < 1 {
		q.pd.dev.report(Event{
			Type: EventSRQShare, QP: q, SRQ: q.srq,
			Err: fmt.Errorf("the peer holds %d receives that are not polled, its share is %d", q.srqHeld.Load(), q.srq.attr.PerQP),
		})
		return nil
	}
	if q.rq.taken = q.srq.take(); q.rq.taken != nil {
		q.srqHeld.Add(1)
	}
	return q.rq.taken
}

// shareLeft returns how many receives of the SRQ the stream may still take.
func (q *QP) shareLeft() int {
	if q.srq.attr.PerQP == 0 {
		return MaxWR
	}
	return q.srq.attr.PerQP - int(q.srqHeld.Load())
}

// lookAhead returns what DDP needs to say what is wrong with a message that is
// not in turn. MPA keeps the order, so that it has no right to a receive: those
// of an SRQ are for all streams, and one peer must not empty it by naming a
// number (RFC 5040 §8.1.2 rule 8).
func (q *QP) lookAhead(ahead int, immediate bool) ddp.Buffer {
	if q.rq.taken != nil {
		ahead-- // the message in turn has its receive
	}
	size, ok := q.srq.sizeOf(ahead)
	switch {
	case !ok || ahead >= q.shareLeft():
		return nil
	case immediate:
		size = rdmap.ImmediateLen
	}
	return outOfTurn(size)
}

// outOfTurn is the size of a receive that stays in the SRQ.
type outOfTurn uint64

// Len implements ddp.Buffer.
func (o outOfTurn) Len() uint64 { return uint64(o) }

// Place implements ddp.Buffer: nothing is placed out of turn.
func (outOfTurn) Place(uint32, []byte) error { return errOutOfTurn }

// deliver completes the oldest receive with a message.
func (q *QP) deliver(d rdmap.Delivery) error {
	if q.attr.PairImmediate && q.pair(d) {
		return nil
	}
	wc := WC{
		Op: recvOp(d.Op), QPN: q.num, ByteLen: d.Length,
		Solicited: d.Op.Solicited(), Invalidated: d.Invalidated,
	}
	if q.rq.hasPaired {
		q.rq.hasPaired = false
		if wc.Op == OpRecv {
			wc.Immediate, wc.Paired = q.rq.paired, true
		}
	}
	if q.srq != nil {
		w := q.rq.taken
		q.rq.taken = nil
		w.describe(&wc)
		q.srq.putBack(w)
	} else {
		q.rq.mu.Lock()
		w := q.takeOwn()
		w.describe(&wc)
		q.rq.ring.recycle(w)
		q.rq.mu.Unlock()
	}
	return q.pushRecv(wc)
}

// pair takes Immediate Data that belongs to the next Send. The receive into which
// it was placed stays for that.
func (q *QP) pair(d rdmap.Delivery) bool {
	if recvOp(d.Op) != OpRecvImmediate {
		return false
	}
	w := q.rq.taken
	if q.srq == nil {
		q.rq.mu.Lock()
		w = *q.rq.ring.at(0)
		q.rq.mu.Unlock()
	}
	if at := rdmap.ImmediateLen - len(PairMark); string(w.immediate[at:]) == PairMark {
		q.rq.paired, q.rq.hasPaired = rdmap.Immediate(w.immediate), true
		clear(q.rq.paired[at:])
		return true
	}
	return false
}

// describe completes a completion with what the receive knows.
func (w *recvWQE) describe(wc *WC) {
	wc.ID = w.id
	if wc.Op == OpRecvImmediate {
		wc.Immediate = w.immediate
	}
}

// takeOwn removes the oldest receive of the queue pair's own queue, whose mu the
// caller holds. Its place may be held until its completion is polled.
func (q *QP) takeOwn() *recvWQE {
	if q.attr.HoldReceives {
		q.rq.held.Add(1)
	}
	return q.rq.ring.take()
}

// pushRecv pushes the completion of a receive.
func (q *QP) pushRecv(wc WC) error {
	e := cqe{wc: wc}
	switch {
	case q.srq != nil:
		e.held = &q.srqHeld
	case q.attr.HoldReceives:
		e.held = &q.rq.held
	}
	if !q.recvCQ.push(e, wc.Solicited, &q.forgotten) {
		if e.held != nil {
			e.held.Add(-1)
		}
		return q.recvCQ.noPlace()
	}
	return nil
}

// flushRecv completes all receives: one whose memory could not be used with its
// own status, the others as flushed. Those of an SRQ stay there, but for the
// one that a message has begun to fill.
func (q *QP) flushRecv() {
	q.rq.hasPaired = false
	finish := func(w *recvWQE) {
		wc := WC{ID: w.id, Op: OpRecv, QPN: q.num, Status: StatusFlushed}
		if w.fault != nil {
			wc.Status, wc.Cause = w.status, w.fault
		}
		_ = q.pushRecv(wc) // a completion queue that overflows now has failed anyway
	}
	if w := q.rq.taken; w != nil {
		q.rq.taken = nil
		finish(w)
	}
	for {
		q.rq.mu.Lock()
		if q.rq.ring.n == 0 {
			q.rq.mu.Unlock()
			return
		}
		w := q.takeOwn()
		q.rq.mu.Unlock()
		finish(w)
	}
}
