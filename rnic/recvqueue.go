package rnic

import (
	"fmt"
	"slices"

	"urnic/ddp"
	"urnic/rdmap"
)

// PostRecv posts receives. It returns an *OpError that wraps a *WRError for the
// first one that it refuses; those before it are posted.
//
// What a program does with the memory before PostRecv happens before the RNIC
// places anything there.
func (q *QP) PostRecv(wrs ...RecvWR) error {
	const op = "post receive"
	if !q.made() {
		return notMade(op, "QP")
	}
	if q.srq != nil {
		return q.fail(op, ErrUsesSRQ)
	}
	// Under mu, no stream can end and flush meanwhile, and miss these.
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.mayPost(); err != nil {
		return q.fail(op, err)
	}
	err := q.enqueueRecv(wrs)
	if q.link != nil {
		q.link.posted.raise()
	}
	if _, late := q.life.Admits(); late && !q.life.Live() { // nothing else will do so
		q.flushRecv()
	}
	if err != nil {
		return q.fail(op, err)
	}
	return nil
}

// enqueueRecv adds receives to the queue, those before the first that is refused. The
// caller holds the queue pair's mu.
func (q *QP) enqueueRecv(wrs []RecvWR) error {
	q.rq.mu.Lock()
	defer q.rq.mu.Unlock()
	defer q.rq.lease.End()
	ring := &q.rq.ring
	for i := range wrs {
		err := ErrQueueFull
		if ring.Room(int(q.rq.held.Load())) > 0 {
			err = ring.postFor(&wrs[i], &q.rq.lease, &q.pd.dev.memory, q.scope(), q.attr.MaxSGE)
		}
		if err != nil {
			return &WRError{Index: i, ID: wrs[i].ID, Op: OpRecv, Err: err}
		}
	}
	return nil
}

// blame sets a status other than flushed for the receive that DDP has requested, if a
// message was longer. Only the receiver calls it.
func (r *recvQueue) blame(e *rdmap.Error) {
	if r.asked != nil { // the message of an SRQ's stream may be out of turn, and have none
		r.asked.Blame(e)
	}
}

// receiveBuffer returns the receive for a message, ahead of the oldest one in
// use; nil if there is none.
func (q *QP) receiveBuffer(l *link, ahead uint32, immediate bool) ddp.Buffer {
	var w *recvWQE
	switch {
	case q.srq == nil:
		q.rq.mu.Lock()
		if ahead < uint32(q.rq.ring.Len()) {
			w = q.rq.ring.at(int(ahead))
		}
		q.rq.mu.Unlock()
	case ahead > 0:
		return q.lookAhead(l, int(ahead), immediate)
	default:
		w = q.takeShared()
	}
	q.rq.asked = w
	switch {
	case w == nil:
		return nil
	case immediate:
		return &w.immediate
	}
	w.lease = l.rdmap.Lease()
	return w
}

// takeShared returns the receive for the message in turn. It removes the
// receive from the SRQ when the message begins.
func (q *QP) takeShared() *recvWQE {
	if len(q.rq.taken) > 0 {
		return q.rq.taken[0]
	}
	return q.takeNext()
}

// takeNext removes a receive from the SRQ for the first message that has none.
func (q *QP) takeNext() *recvWQE {
	if q.shareLeft() < 1 {
		q.pd.dev.report(Event{
			Type: EventSRQShare, QP: q, SRQ: q.srq,
			Err: fmt.Errorf("the peer holds %d receives that are not polled, its share is %d", q.srqHeld.Load(), q.srq.attr.PerQP),
		})
		return nil
	}
	w, due := q.srq.take()
	q.srq.tell(due)
	if w != nil {
		q.srqHeld.Add(1)
		q.rq.taken = append(q.rq.taken, w)
	}
	return w
}

// shareLeft returns how many receives of the SRQ the stream may still take.
func (q *QP) shareLeft() int {
	if q.srq.attr.PerQP == 0 {
		return MaxWR
	}
	return q.srq.attr.PerQP - int(q.srqHeld.Load())
}

// lookAhead returns the buffer of a message that is not in turn. The receives of an SRQ are
// for all streams, and one peer must not empty it by sending a high message number (RFC 5040
// §8.1.2 rule 8). So they stay there until something is placed, which DDP does only for
// messages that can be outstanding.
func (q *QP) lookAhead(l *link, ahead int, immediate bool) ddp.Buffer {
	b := earlyBuffer{link: l, ahead: ahead, immediate: immediate}
	if q.rq.asked = nil; ahead < len(q.rq.taken) {
		q.rq.asked = q.rq.taken[ahead]
		b.size = q.rq.asked.size
	} else {
		ok := false
		more := ahead - len(q.rq.taken)
		if b.size, ok = q.srq.sizeOf(more); !ok || more >= q.shareLeft() {
			return nil
		}
	}
	if immediate {
		b.size = rdmap.ImmediateLen
	}
	return &b
}

// An earlyBuffer is the buffer of a message of an SRQ that is not in turn.
type earlyBuffer struct {
	link      *link
	ahead     int
	immediate bool
	size      uint64 // of the receive that the message would get now
}

// Len implements ddp.Buffer.
func (b *earlyBuffer) Len() uint64 { return b.size }

// Place implements ddp.Buffer. It removes the receives of all messages up to this one from
// the SRQ. Another stream may have been quicker, so that there is none, or only a smaller
// one.
func (b *earlyBuffer) Place(off uint32, p []byte) error {
	q := b.link.qp
	for len(q.rq.taken) <= b.ahead {
		if q.takeNext() == nil {
			return noReceive()
		}
	}
	w := q.rq.taken[b.ahead]
	q.rq.asked = w
	switch {
	case b.immediate:
		return w.immediate.Place(off, p)
	case uint64(off)+uint64(len(p)) > w.size:
		return &ddp.Error{
			Code: ddp.CodeMessageTooLong, Clause: "RFC 5041 §7.1",
			Reason: fmt.Sprintf("%d octets at MO %d exceed a buffer of %d octets", len(p), off, w.size),
		}
	}
	w.lease = b.link.rdmap.Lease()
	return w.Place(off, p)
}

// noReceive says that a message that arrived early got no receive.
func noReceive() error {
	return &ddp.Error{
		Code: ddp.CodeMSNNoBuffer, Clause: "RFC 5041 §7.1",
		Reason: "other streams have taken the receives of the SRQ",
	}
}

// deliver completes the oldest receive with a message.
func (q *QP) deliver(d rdmap.Delivery) error {
	if q.rq.pairing.Allowed() && q.pair(d) {
		return nil
	}
	wc := WC{
		Op: recvOp(d.Op), QPN: q.num, ByteLen: d.Length,
		Solicited: d.Op.Solicited(), Invalidated: d.Invalidated,
	}
	if data, some := q.rq.pairing.Take(); some && wc.Op == OpRecv {
		wc.Immediate, wc.paired = data, true
	}
	if q.srq != nil {
		w := q.takeShared() // an empty message that came early has none yet
		if w == nil {
			return noReceive()
		}
		q.rq.taken = slices.Delete(q.rq.taken, 0, 1)
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

// pair takes Immediate Data that belongs to the next Send. The receive into
// which it was placed stays for that Send.
func (q *QP) pair(d rdmap.Delivery) bool {
	if recvOp(d.Op) != OpRecvImmediate {
		return false
	}
	var w *recvWQE
	if q.srq == nil {
		q.rq.mu.Lock()
		w = q.rq.ring.at(0)
		q.rq.mu.Unlock()
	} else if w = q.takeShared(); w == nil {
		return false // deliver finds it too
	}
	return q.rq.pairing.Hold((*rdmap.Immediate)(&w.immediate))
}

// describe fills a completion in with what the receive has.
func (w *recvWQE) describe(wc *WC) {
	wc.ID = w.id
	if wc.Op == OpRecvImmediate {
		wc.Immediate = w.immediate
	}
}

// takeOwn removes the oldest receive of the queue pair's own queue, whose mu the
// caller holds. Its slot may be held until its completion is polled.
func (q *QP) takeOwn() *recvWQE {
	if q.rq.ring.HoldsSlots() {
		q.rq.held.Add(1)
	}
	return q.rq.ring.take()
}

// pushRecv adds the completion of a receive to the completion queue.
func (q *QP) pushRecv(wc WC) error {
	e := cqe{wc: wc}
	switch {
	case q.srq != nil:
		e.held = &q.srqHeld
	case q.rq.ring.HoldsSlots():
		e.held = &q.rq.held
	}
	if !q.recvCQ.push(e, wc.Solicited, &q.forgotten) {
		if e.held != nil {
			e.held.Add(-1)
		}
		return q.recvCQ.noSlot()
	}
	return nil
}

// flushRecv completes all receives: one whose memory could not be used with its
// own status, the others as flushed. Those of an SRQ stay there, except the one
// that a message has begun to fill.
func (q *QP) flushRecv() {
	q.rq.pairing.Drop()
	finish := func(w *recvWQE) {
		wc := WC{ID: w.id, Op: OpRecv, QPN: q.num, Status: Status(w.Status), Cause: w.Cause}
		_ = q.pushRecv(wc) // a completion queue that overflows now has failed anyway
	}
	for _, w := range q.rq.taken {
		w.Flush()
		finish(w)
	}
	clear(q.rq.taken)
	q.rq.taken = q.rq.taken[:0]
	for {
		q.rq.mu.Lock()
		r := q.rq.ring.Flush()
		if r != nil && q.rq.ring.HoldsSlots() {
			q.rq.held.Add(1)
		}
		q.rq.mu.Unlock()
		if r == nil {
			return
		}
		finish(r.Owner.(*recvWQE))
	}
}
