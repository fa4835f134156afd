package rnic

import (
	"sync"
	"sync/atomic"

	"urnic/stag"
)

// A sendQueue is the send queue of a queue pair. Requests complete in their
// order (RFC 5040 §5.5 rule 15).
type sendQueue struct {
	qp *QP

	mu    sync.Mutex // taken before that of a completion queue
	queue fifo[*sendWQE]
	begun int        // requests at the front of queue that the transmitter has passed, all messages of each
	late  int        // requests at the end of queue that are only to be flushed
	reads int        // messages of Reads and atomics whose responses are not there yet
	lease stag.Lease // of the SGLs that are checked

	stopped bool // no request is begun, see QP.StopSending

	spare []*sendWQE

	unpolled atomic.Int32 // completions in the queue for them, of QPAttr.HoldSends
}

func (s *sendQueue) init(q *QP) { s.qp, s.queue.limit = q, q.attr.MaxSendWR }

// post adds requests, which are only to be flushed if they are late: all or none,
// or those before the first that is refused. The caller holds the queue pair's mu.
func (s *sendQueue) post(wrs []SendWR, late, all bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.lease.End()
	if all && len(wrs) > 1 {
		for i := range wrs {
			if _, err := s.admit(wrs, i, i); err != nil {
				return err
			}
		}
	}
	for i := range wrs {
		wr := &wrs[i]
		length, err := s.admit(wrs, i, 0)
		if err != nil {
			return err
		}
		w := s.fresh()
		w.fill(wr, length)
		s.queue.push(w)
		if late {
			s.late++
		}
	}
	return nil
}

// admit refuses request i, if it can't be carried out or there is no place for it
// behind the queue and further others. It returns its length. The caller holds mu.
func (s *sendQueue) admit(wrs []SendWR, i, others int) (length uint64, err error) {
	wr := &wrs[i]
	if s.queue.n+int(s.unpolled.Load())+others >= s.queue.limit {
		err = ErrQueueFull
	} else if length, err = s.qp.check(wr); err == nil {
		return length, nil
	}
	return 0, &WRError{Index: i, ID: wr.ID, Op: wr.Op, Err: err}
}

func (s *sendQueue) fresh() *sendWQE {
	if n := len(s.spare); n > 0 {
		w := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return w
	}
	return &sendWQE{qp: s.qp}
}

// complete completes the requests at the front of the queue that are done, of
// Sends and Writes those whose octets up to accepted the LLP has taken. It
// returns false if a completion found no place. The caller holds mu.
func (s *sendQueue) complete(accepted uint64) bool {
	if !s.mature(accepted) {
		return true
	}
	c := s.qp.sendCQ
	c.mu.Lock()
	defer c.mu.Unlock()
	for s.mature(accepted) {
		if !s.retire() {
			return false
		}
	}
	return true
}

// mature reports whether the oldest request is done. The caller holds mu.
func (s *sendQueue) mature(accepted uint64) bool {
	if s.begun == 0 {
		return false
	}
	w := *s.queue.at(0)
	return w.state == done || w.state == posted && !w.op.isRead() && w.mark <= accepted
}

// retire completes the oldest request. The caller holds mu, and that of the
// completion queue.
func (s *sendQueue) retire() bool {
	w := s.queue.pop()
	s.begun--
	ok := true
	if (w.flags&FlagUnsignaled == 0 || w.status != StatusSuccess) && !s.qp.forgotten.Load() {
		e := cqe{wc: w.completion()}
		if s.qp.attr.HoldSends {
			e.held = &s.unpolled
			s.unpolled.Add(1)
		}
		if ok = s.qp.sendCQ.add(e, false); !ok && e.held != nil {
			e.held.Add(-1)
		}
	}
	w.local, w.cause = nil, nil // holds no memory of the consumer
	s.spare = append(s.spare, w)
	s.tellDrained()
	return ok
}

// pending returns how many requests have not completed that the stream is for.
func (s *sendQueue) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sendable()
}

// underWay yields the requests that were begun, and the one that has more messages to
// come. The caller holds mu.
func (s *sendQueue) underWay(yield func(*sendWQE) bool) {
	for i := range s.queue.n {
		w := *s.queue.at(i)
		if w.state == queued && i >= s.begun || !yield(w) {
			return
		}
	}
}

// sendable returns how many requests in the queue are not only to be flushed. The
// caller holds mu.
func (s *sendQueue) sendable() int { return s.queue.n - s.late }

// flush completes all requests: the one that is to blame with its own status,
// the others as flushed.
func (s *sendQueue) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.qp.sendCQ.mu.Lock()
	defer s.qp.sendCQ.mu.Unlock()
	s.stopped = false
	blamed := false
	for s.queue.n > 0 {
		if w := *s.queue.at(0); w.status == StatusSuccess || blamed { // several may have failed at once
			w.status, w.cause = StatusFlushed, nil
		} else {
			blamed = true
		}
		s.retire() // a completion queue that overflows now has failed anyway
	}
	s.begun, s.late, s.reads = 0, 0, 0
}

// StopSending makes further requests wait in the send queue until ResumeSending, the
// end of the stream, or Reset; also before there is a stream. Those that were begun go on; EventSQDrained tells when they
// have completed. Draft-hilland-rddp-verbs has no such state; it is SQD of InfiniBand.
func (q *QP) StopSending() error { return q.setStopped("stop sending", true) }

// ResumeSending makes requests be sent again.
func (q *QP) ResumeSending() error { return q.setStopped("resume sending", false) }

func (q *QP) setStopped(op string, stopped bool) error {
	if !q.made() {
		return notMade(op, "QP")
	}
	q.mu.Lock()
	if q.closed || q.state != RTS && q.state != Idle {
		defer q.mu.Unlock()
		return q.fail(op, &StateError{State: q.state, Err: q.err})
	}
	l := q.link
	q.sq.setStopped(stopped)
	q.mu.Unlock()
	if l != nil {
		l.kick()
	}
	return nil
}

func (s *sendQueue) setStopped(stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = stopped
	s.tellDrained()
}

// tellDrained tells that a stopped queue has no request that was begun. The last of
// them has just completed, or the queue been stopped. The caller holds mu.
func (s *sendQueue) tellDrained() {
	if !s.stopped || s.begun > 0 || s.queue.n > 0 && (*s.queue.at(0)).state != queued {
		return
	}
	s.qp.pd.dev.report(Event{Type: EventSQDrained, QP: s.qp})
}
