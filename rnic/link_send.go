package rnic

import (
	"errors"

	"urnic/mpa"
	"urnic/rdmap"
)

// Who transmits.
const (
	txIdle   int32 = iota // nobody
	txBusy                // somebody
	txAgain               // somebody, who must look again before stopping
	txParked              // nobody, though there is more: a program that polls comes back to it
)

// inlinePasses is how often a poster transmits before a goroutine goes on for
// it: others may post faster than it can send.
const inlinePasses = 8

// PostSend posts requests to the send queue. If the transmitter is idle, the
// call sends them, as far as the LLP takes them at once. It returns an *OpError
// that wraps a *WRError for the first request that it refuses, or a
// *StateError; those before a refused one are posted.
//
// What a consumer does with the memory before PostSend happens before the RNIC
// reads it.
func (q *QP) PostSend(wrs ...SendWR) error { return q.postSend(wrs, false) }

// PostSendAll is PostSend that posts either all requests or, if it refuses one of
// them, none.
func (q *QP) PostSendAll(wrs ...SendWR) error { return q.postSend(wrs, true) }

func (q *QP) postSend(wrs []SendWR, all bool) error {
	if !q.made() {
		return notMade("post send", "QP")
	}
	// Under mu no stream ends and flushes meanwhile, and leaves these behind.
	q.mu.Lock()
	err := q.mayPost()
	if err == nil {
		err = q.sq.post(wrs, q.isLate(), all)
		q.flushLate()
	}
	l := q.link
	q.mu.Unlock()
	if l != nil {
		l.kick()
	}
	if err != nil {
		return q.fail("post send", err)
	}
	return nil
}

// kick makes sure that somebody transmits what there is to transmit from now
// on.
func (l *link) kick() {
	for {
		switch was := l.tx.Load(); was {
		case txIdle, txParked:
			if l.tx.CompareAndSwap(was, txBusy) {
				l.transmitNow()
				return
			}
		case txBusy:
			if l.tx.CompareAndSwap(txBusy, txAgain) {
				return
			}
		default: // txAgain, or the link has ended, whose role is never given up
			return
		}
	}
}

// transmitNow transmits for a program. It may take longer than the watch waits for the
// next poll of one that polls, which is not away.
func (l *link) transmitNow() {
	polled := l.rx.polled.Load()
	if polled {
		l.rx.posts.Store(true)
	}
	l.transmit(false)
	if polled {
		l.rx.posts.Store(false)
		l.rx.uses.Add(1)
	}
}

// park gives the role up with more to transmit, if a program polls: where all
// processors are busy polling, a goroutine would wait for one. It reports whether
// it has. When the link ends, its goroutine takes over, see unpark.
func (l *link) park() bool {
	if !l.rx.polled.Load() {
		return false
	}
	l.tx.Store(txParked)
	if l.rx.polled.Load() {
		return true
	}
	return !l.tx.CompareAndSwap(txParked, txBusy) // or somebody else has the role now
}

// unpark goes on in a goroutine with what a program has left that polls no more.
func (l *link) unpark() {
	l.rx.polled.Store(false)
	if l.tx.CompareAndSwap(txParked, txBusy) {
		l.handOver()
	}
}

// handOver gives the role to a goroutine, which waits for room.
func (l *link) handOver() {
	l.qp.pd.dev.wg.Add(1)
	go l.carryOn()
}

// A passResult says what one round of transmitting came to.
type passResult uint8

const (
	passIdle    passResult = iota // all is out
	passMore                      // there is more
	passBlocked                   // the LLP is full, or may make one wait
)

// transmit transmits until there is nothing more. The caller holds the role and
// gives it up. Without wait, it leaves the rest to a goroutine, or to a program
// that polls, if the LLP is full; with wait, to a program that has begun to poll.
func (l *link) transmit(wait bool) {
	for passes := 1; ; passes++ {
		l.tx.Store(txBusy)     // what was asked for until now is seen to now, what is asked for later is noted
		if l.stopping.Load() { // the role is never given up again
			close(l.txStopped)
			return
		}
		switch r := l.pass(wait); {
		case r == passIdle:
			if l.tx.CompareAndSwap(txBusy, txIdle) {
				return
			}
		case !wait && (r == passBlocked || passes >= inlinePasses):
			if !l.park() {
				l.handOver()
			}
			return
		case wait && l.park():
			return
		}
	}
}

// pass transmits one round.
func (l *link) pass(wait bool) passResult {
	if l.ended {
		return passIdle
	}
	l.flushFirst = false
	idle, out, err := l.move(wait)
	more := l.complete()
	if e := l.rdmap.Failure(); e != nil { // which no receiver has found
		l.terminating(e, eventOf(e)) // asks for another pass
	}
	if err != nil {
		l.broken(err)
		if lost, ok := errors.AsType[*mpa.MemoryError](err); ok { // in the middle of a segment: a Terminate can't follow
			l.blameSource(lost)
			l.reset(localFault(err), EventCatastrophic)
		}
		return passIdle
	}
	l.judge(idle && out)
	switch {
	case !out:
		return passBlocked
	case !idle, l.flushFirst, more:
		return passMore
	case (l.endWrite || l.rdmap.Ended()) && !wait && !l.conn.Polls(): // a stream that is no TCP may have to wait for its peer
		return passBlocked
	case l.endWrite && l.peerEnded.Load() && l.conn.Polls(): // the kernel has all: the end of the connection, which comes next, is that of this half
		l.endOfWrite()
	case l.endWrite || l.rdmap.Ended():
		if err := l.conn.CloseWrite(); err != nil {
			l.reset(err, EventLost)
		}
		l.endOfWrite()
	}
	return passIdle
}

// move posts and flushes what there is, for a few batches of the LLP: these are
// short, so that what has been checksummed is still in the processor's cache when
// the kernel copies it; completions would be too many, one for each.
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
// not wait while memory is held open: who closes a region must not wait for a peer
// that does not read.
func (l *link) flush(wait bool) (out bool, err error) {
	before := l.conn.Accepted()
	out, err = l.conn.Flush(false)
	l.lease.End()
	if wait && !out && err == nil && l.conn.Accepted() == before {
		out, err = l.conn.Flush(true)
	}
	return out, err
}

// broken notes that nothing can be sent any more. The receiver goes on: the
// peer may have said why in a Terminate message that it has not reached yet. It
// finds the end of the stream soon, or runs out of time.
func (l *link) broken(err error) {
	l.sendErr = err
	l.endOfWrite()
	l.qp.mu.Lock()
	defer l.qp.mu.Unlock()
	l.limit()
}

// endOfWrite notes that nothing will be sent any more.
func (l *link) endOfWrite() {
	if !l.ended {
		l.ended = true
		close(l.writeEnded)
	}
}

// judge decides, once the peer has closed its half or the consumer wants to
// close, how the stream ends (draft-hilland-rddp-verbs §6.2). out says that all
// there is has been sent.
func (l *link) judge(out bool) {
	peerEnded := l.peerEnded.Load()
	if !peerEnded && !l.closeAsked.Load() || l.endWrite || l.rdmap.Ended() {
		return
	}
	q := l.qp
	q.mu.Lock() // no request is posted meanwhile
	outstanding := q.sq.pending() + l.rdmap.Answering()
	switch {
	case !out || outstanding > 0:
	case !peerEnded && l.rtrPending():
	case q.state == RTS:
		q.state = Closing
		l.endWrite = true
		l.closing.Store(true)
		l.limit()
	}
	q.mu.Unlock()
	if peerEnded && (!out || outstanding > 0) { // it can't be finished
		l.terminating(errPeerClosed(outstanding), EventBadLLPClose)
	}
}

// rtrPending reports whether the ready-to-receive indication, of which the
// programs on both sides know nothing, is not in, or not answered.
func (l *link) rtrPending() bool {
	return l.params.PeerToPeer && (!l.heard.Load() || l.rdmap.Outstanding() > 0)
}

// complete completes the requests whose octets the LLP has taken, and reports
// whether there were any, and others wait to be begun: a fence may have opened.
// After the peer's Terminate, those that are left "SHOULD be considered Completed
// in error" (RFC 5040 §6.2.1), though the last one may still be sent to its end.
func (l *link) complete() bool {
	if l.disputed.Load() {
		return false
	}
	accepted := l.conn.Accepted()
	if l.accepted.Swap(accepted) == accepted { // and nothing that was posted since is out
		return false
	}
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	l.mark()
	before := s.queue.n
	if !s.complete(accepted) {
		l.rdmap.Fail(l.qp.sendCQ.noPlace())
	}
	return s.queue.n < before && s.sendable() > s.begun
}

// fetch is how many requests the transmitter takes, or reports as posted, under
// one lock.
const fetch = 32

// Next implements rdmap.Submitter: it returns the next request that may be
// begun, and carries out those that send nothing.
func (l *link) Next() *rdmap.Operation {
	if l.passed < len(l.ready) {
		w := l.ready[l.passed]
		l.passed++
		return &w.operation
	}
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.begun < s.sendable() {
		w := *s.queue.at(s.begun)
		switch {
		case s.stopped && w.state == queued:
			return nil
		case w.plain():
			return l.begin(w)
		case w.flags&FlagLocalFence != 0 && s.begun > 0:
			return nil
		case w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued: // to RDMAP a Read is over a little before Completed has done its part
			return nil
		case w.op.isLocal() && !l.lease.Idle(): // it may wait for its end
			l.flushFirst = true
			return nil
		case w.op.isLocal():
			s.begun++
			s.mu.Unlock() // it waits for whoever uses the memory
			status, err := w.carryOut()
			s.mu.Lock()
			if w.refuse(status, err) != nil {
				l.failed(err)
				return nil
			}
			w.state = done
			if !s.complete(l.accepted.Load()) {
				l.rdmap.Fail(l.qp.sendCQ.noPlace())
				return nil
			}
			continue
		case w.op.isRead() && l.params.ORD == 0:
			l.failed(w.refuse(StatusNoReadResources, errors.New("the connection was set up with an ORD of 0")))
			return nil
		case w.op.isRead() && !l.rdmap.MayRead():
			return nil
		case w.op.isRead() && w.state == queued:
			if err := w.judgeSink(); err != nil {
				l.failed(err)
				return nil
			}
		}
		w.state, w.link = begun, l
		o, last := w.next()
		if last {
			s.begun++
		}
		if w.op.isRead() {
			s.reads++
		}
		return o
	}
	return nil
}

// plain reports whether a request may be begun as soon as those before it are.
func (w *sendWQE) plain() bool {
	return w.flags&(FlagLocalFence|FlagReadFence) == 0 && !w.op.isLocal() && !w.op.isRead() && !w.op.isPair()
}

// begin begins w, the first request that has not been begun, and the plain ones
// behind it, which are ready then. The caller holds the send queue.
func (l *link) begin(w *sendWQE) *rdmap.Operation {
	s := &l.qp.sq
	l.ready, l.passed = l.ready[:0], 1
	for {
		w.state, w.link = begun, l
		s.begun++
		l.ready = append(l.ready, w)
		if s.begun == s.sendable() || len(l.ready) == fetch {
			break
		}
		if w = *s.queue.at(s.begun); !w.plain() {
			break
		}
	}
	return &l.ready[0].operation
}

// failed ends the stream for an error in a request of this side. The state
// changes later, as the caller holds the send queue.
func (l *link) failed(err error) {
	l.rdmap.Fail(localFault(err))
}

// Submitted implements rdmap.Submitter. A Read is done when its response is in,
// which may have been quicker.
func (l *link) Submitted(o *rdmap.Operation, position uint64) {
	w := o.Context.(*sendWQE)
	switch {
	case w.inFirstHalf():
		w.secondHalf()
		return
	case w.op.isRead():
		return
	}
	if len(l.submitted) == fetch {
		s := &l.qp.sq
		s.mu.Lock()
		l.mark()
		s.mu.Unlock()
	}
	w.mark = position
	l.submitted = append(l.submitted, w)
}

// mark tells the send queue, which the caller holds, what is posted.
func (l *link) mark() {
	for _, w := range l.submitted {
		w.state = posted
	}
	l.submitted = l.submitted[:0]
}

// Failed implements rdmap.Submitter. The stream has failed by now, see pass.
func (l *link) Failed(o *rdmap.Operation, err error) {
	w := o.Context.(*sendWQE)
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = w.refuse(StatusLocalProtection, err)
}
