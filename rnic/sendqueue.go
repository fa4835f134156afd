package rnic

// PostSend posts requests to the send queue. If the transmitter is idle, the
// call sends them, as far as the LLP accepts them at once. It returns an
// *OpError that wraps a *StateError, or a *WRError for the first request that
// it refuses; those before that one are posted.
//
// What a program does with the memory before PostSend happens before the RNIC
// reads it.
func (q *QP) PostSend(wrs ...SendWR) error { return q.postSend(wrs, false) }

// PostSendAll is like PostSend, but posts either all requests or, if it refuses
// one of them, none.
func (q *QP) PostSendAll(wrs ...SendWR) error { return q.postSend(wrs, true) }

func (q *QP) postSend(wrs []SendWR, all bool) error {
	if !q.made() {
		return notMade("post send", "QP")
	}
	// Under mu, no stream can end and flush meanwhile, and miss these.
	q.mu.Lock()
	err := q.mayPost()
	if err == nil {
		err = q.enqueue(wrs, all)
		q.complete() // what was late
	}
	l := q.link
	q.mu.Unlock()
	if l != nil {
		l.driver.Kick()
	}
	if err != nil {
		return q.fail("post send", err)
	}
	return nil
}

// mayPost checks under mu whether the queue accepts requests.
func (q *QP) mayPost() error {
	if q.closed {
		return ErrClosed
	}
	if ok, _ := q.life.Admits(); ok {
		return nil
	}
	if q.life.Draining() {
		return &StateError{State: RTS, Err: errDraining}
	}
	return &StateError{State: State(q.life.State()), Err: q.life.Why()}
}

// enqueue adds requests to the send queue: all or none, or those before the first that is
// refused. The caller holds mu.
func (q *QP) enqueue(wrs []SendWR, all bool) error {
	defer q.sq.lease.End()
	if all && len(wrs) > 1 {
		for i := range wrs {
			if _, err := q.admit(wrs, i, i); err != nil {
				return err
			}
		}
	}
	for i := range wrs {
		wr := &wrs[i]
		length, err := q.admit(wrs, i, 0)
		if err != nil {
			return err
		}
		w := q.sq.fresh(q)
		w.fill(wr, length)
		q.life.Post(&w.Request)
	}
	return nil
}

// admit refuses request i if it is invalid, or if there is no slot for it behind
// the queue and further other requests. It returns its length. The caller holds
// mu.
func (q *QP) admit(wrs []SendWR, i, others int) (length uint64, err error) {
	wr := &wrs[i]
	if q.life.Room(int(q.sq.held.Load())) <= others {
		err = ErrQueueFull
	} else if length, err = q.check(wr); err == nil {
		return length, nil
	}
	return 0, &WRError{Index: i, ID: wr.ID, Op: wr.Op, Err: err}
}

func (s *sendQueue) fresh(q *QP) *sendWQE {
	if n := len(s.spare); n > 0 {
		r := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return r.Owner.(*sendWQE)
	}
	w := &sendWQE{qp: q}
	w.Owner = w
	return w
}

// complete adds the completions of requests to the completion queue. It returns false if
// there was no slot. The caller holds mu.
func (q *QP) complete() (ok bool) {
	requests := q.life.Completed()
	if len(requests) == 0 {
		q.tellDrained()
		return true
	}
	ok = true
	c := q.sendCQ
	c.mu.Lock()
	for _, r := range requests {
		w := r.Owner.(*sendWQE)
		if ok && !r.Silent() && !q.forgotten.Load() {
			ok = q.completeOne(w)
		}
		w.local, w.Cause = nil, nil // holds no memory of the consumer
		q.sq.spare = append(q.sq.spare, r)
	}
	c.mu.Unlock()
	q.tellDrained()
	return ok
}

// completeOne adds a completion to the completion queue, whose mu the caller holds.
func (q *QP) completeOne(w *sendWQE) bool {
	e := cqe{wc: w.completion()}
	if q.life.HoldsSlots() {
		e.held = &q.sq.held
		q.sq.held.Add(1)
	}
	ok := q.sendCQ.add(e, false)
	if !ok && e.held != nil {
		e.held.Add(-1)
	}
	return ok
}

// tellDrained reports once that a stopped queue has no request that was begun. The
// caller holds mu.
func (q *QP) tellDrained() {
	if q.life.Drained() {
		q.pd.dev.report(Event{Type: eventSQDrained, QP: q})
	}
}

// setStopped makes the send queue hold further requests back, or send them
// again.
func (q *QP) setStopped(op string, stopped bool) error {
	if !q.made() {
		return notMade(op, "QP")
	}
	q.mu.Lock()
	if q.closed || !q.life.Stop(stopped) {
		defer q.mu.Unlock()
		return q.fail(op, &StateError{State: State(q.life.State()), Err: q.life.Why()})
	}
	q.tellDrained()
	l := q.link
	q.mu.Unlock()
	if l != nil {
		l.driver.Kick()
	}
	return nil
}
