package rnic

import "urnic/rdmap"

// Close ends the queue pair, in any state. It resets a connection and flushes
// work requests. When it returns, no goroutine of the queue pair is left, and
// none accesses memory on its behalf. It fails only if CreateQP has not made
// the queue pair.
func (q *QP) Close() error {
	if !q.made() {
		return notMade("close", "QP")
	}
	q.closing.Do(func() {
		q.mu.Lock()
		q.closed = true
		q.mu.Unlock()
		q.end(ErrClosed)
		q.strip()
		q.release()
		q.pd.dev.retire(q) // last, so that the device waits for it
	})
	return nil
}

// strip releases the memory of the queues: a closed queue pair may still be referred
// to, as by an event that is not fetched, and should then keep little.
func (q *QP) strip() {
	q.mu.Lock()
	q.life.Free()
	q.sq.spare = nil
	q.mu.Unlock()
	q.rq.mu.Lock()
	q.rq.ring.Free()
	q.rq.ring.spare = nil
	q.rq.mu.Unlock()
}

// end brings the queue pair to state Error with all requests flushed, whatever
// it is doing. It reports whether the queue pair was idle at the end, so that
// no stream has the cause.
func (q *QP) end(why error) (wasIdle bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waitFor := func(done <-chan struct{}) {
		q.mu.Unlock()
		<-done
		q.mu.Lock()
	}
	for {
		s, l := q.starting, q.link
		switch {
		case s != nil:
			s.cancel(why)
			waitFor(s.done)
			continue
		case l != nil && !l.isDone():
			q.mu.Unlock()
			l.abort(why)
			q.mu.Lock()
			waitFor(l.done)
			continue
		case q.life.End(why):
			q.complete() // under mu, so that nothing is posted behind what is flushed
			q.flushRecv()
			return true
		}
		return false
	}
}

// catastrophe ends the queue pair, with its stream if it has one, because one of its
// resources has failed, such as a completion queue.
func (q *QP) catastrophe(e *rdmap.Error) {
	q.mu.Lock()
	fx, idle := q.life.CQFailed(e)
	l := q.link
	if l != nil {
		l.settle(fx)
	}
	q.mu.Unlock()
	if l != nil {
		l.carryOut(fx)
	}
	if idle {
		q.pd.dev.wg.Go(func() { // a start-up may take a while to end
			if q.end(e.Err) {
				q.pd.dev.report(Event{Type: EventCatastrophic, QP: q, Err: e.Err})
			}
		})
	}
}
