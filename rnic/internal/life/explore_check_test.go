package life

// checkEffects judges the effects of an event.
func (s *modelSide) checkEffects(fx *Effects) {
	if s.over && (fx.Tell.Event != 0 && fx.Tell.Event != CloseComplete || fx.Terminate != nil || fx.Arm || fx.Quiet) {
		s.fail("something happens after the end: %+v", *fx)
	}
	if fx.Quiet && s.quiet {
		s.fail("the end of sending was told twice")
	}
	if fx.Terminate != nil && (s.finished && !s.gone || s.m.stream.own == ownEnding) {
		s.fail("a Terminate is to be sent after this side's half")
	}
	if fx.Arm && s.armed {
		s.fail("the time for the end begins twice")
	}
	if e := fx.Tell.Event; e != 0 {
		for _, before := range s.told {
			if before == e || before == CloseComplete || e != TerminateReceived && before != TerminateReceived {
				s.fail("event %d was told after %d", e, before)
			}
		}
	}
}

// checkTurn judges that the next message of a request may be sent now.
func (s *modelSide) checkTurn(q *modelRequest) {
	switch {
	case q.late:
		s.fail("a %s was begun that was only to be flushed", q.kind)
	case s.stopped && q.given == 0:
		s.fail("a %s was begun in a stopped queue", q.kind)
	case q.isRead() && len(s.orq) >= s.ord:
		s.fail("a %s was begun beyond ORD", q.kind)
	case q.Flags&LocalFence != 0 && s.posted[s.order] != q:
		s.fail("a %s has passed its fence", q.kind)
	}
	for _, before := range s.posted[s.order:] {
		if before == q {
			return
		}
		if before.given < len(before.Messages) || before.isLocal() && !before.carried {
			s.fail("a %s was begun before a %s", q.kind, before.kind)
		}
		if q.Flags&ReadFence != 0 && before.isRead() && !before.isDone() {
			s.fail("a %s has passed its fence", q.kind)
		}
	}
	s.fail("a %s was begun that has completed", q.kind)
}

// checkCompletion judges that a request completes now, as it does.
func (s *modelSide) checkCompletion(q *modelRequest) {
	if q.completed {
		s.fail("a %s has completed twice", q.kind)
	}
	q.completed = true
	if s.order >= len(s.posted) || s.posted[s.order] != q {
		s.fail("a %s has completed out of its turn", q.kind)
	}
	s.order++
	if q.late {
		s.late--
	}
	switch {
	case q.Status == Success && !q.isDone():
		s.fail("a %s has completed with success that was not done", q.kind)
	case q.Status == Success && s.disputed:
		s.fail("a %s has completed with success after the peer's Terminate", q.kind)
	case q.Status == Success && (s.over || q == s.refused):
		s.fail("a %s has completed with success after the end", q.kind)
	case q.Status == Success:
	case !s.over:
		s.fail("a %s was flushed before the end", q.kind)
	case s.m.State() == Idle && !q.late:
		s.fail("a %s was flushed, but the close was graceful", q.kind)
	case (q.Status == Flushed) == (q == s.refused):
		s.fail("a %s has completed with status %d", q.kind, q.Status)
	case (q.Status == Flushed) != (q.Cause == nil):
		s.fail("a %s with status %d has the cause %v", q.kind, q.Status, q.Cause)
	}
	if want := q.Status == Success && q.Flags&Unsignaled != 0; q.Silent() != want {
		s.fail("a %s with status %d is silent: %v", q.kind, q.Status, !want)
	}
	if got, want := s.m.Outstanding(), len(s.posted)-s.order-s.late; s.m.queue.Len() == len(s.posted)-s.order && got != want {
		s.fail("%d requests are outstanding, not %d", got, want)
	}
}

// refuse notes that a request has failed: the first one of the queue is the one to blame.
func (s *modelSide) refuse(q *modelRequest) {
	if s.refused == nil {
		s.refused = q
	}
	for _, r := range s.posted[s.order:] {
		if r == q || r == s.refused {
			s.refused = r
			return
		}
	}
}

// checkReceive judges that a receive completes now, as it does.
func (s *modelSide) checkReceive(r *Receive, want Status) {
	if len(s.waiting) == 0 || s.waiting[0] != r {
		s.fail("a receive has completed out of its turn")
		return
	}
	s.waiting = s.waiting[1:]
	if r.Status != want || r.Cause != nil {
		s.fail("a receive has completed with status %d, not %d", r.Status, want)
	}
	if want == Success && s.over {
		s.fail("a receive has completed with success after the end")
	}
}

// checkDrained judges that a stopped queue has no request now that was begun.
func (s *modelSide) checkDrained() {
	if !s.isDrained() || s.drained > 0 {
		s.fail("a queue is told to be drained that is not, or again")
	}
}

// isDrained reports whether the queue is stopped, and no request is begun.
func (s *modelSide) isDrained() bool {
	if !s.stopped {
		return false
	}
	for _, q := range s.posted[s.order:] {
		if q.given > 0 || q.carried {
			return false
		}
	}
	return true
}

// checkHalf judges that this side's half is closed when it may be.
func (s *modelSide) checkHalf(half HalfClose, sent Sent) {
	if half == KeepHalf {
		return
	}
	if !s.mute && s.m.State() == Closing && (s.m.Outstanding() > 0 || len(s.irq) > 0) {
		s.fail("this side's half is closed with work left")
	}
	if half == LeaveHalf && (s.patient || s.m.stream.peer != peerEnded) || half == DeferHalf && !s.patient {
		s.fail("HalfClose %d, after %+v", half, sent)
	}
}

// checkOver judges the state in which a stream has ended.
func (s *modelSide) checkOver() {
	if n := s.order; n != len(s.posted) {
		s.fail("%d of %d requests have completed at the end", n, len(s.posted))
	}
	if len(s.waiting) > 0 {
		s.fail("%d receives are left at the end", len(s.waiting))
	}
	graceful := len(s.told) > 0 && s.told[len(s.told)-1] == CloseComplete
	switch st := s.m.State(); {
	case st != Idle && st != Error:
		s.fail("the stream is over in state %v", st)
	case graceful != (st == Idle):
		s.fail("the stream is over in state %v, told %v", st, s.told)
	case graceful != (s.m.Why() == nil):
		s.fail("the stream is over in state %v because of %v", st, s.m.Why())
	case len(s.told) == 0 && !s.asked:
		s.fail("the stream is over, and nobody was told")
	}
	if s.m.Live() {
		s.fail("the stream is over, and live")
	}
}

// settled judges what is left when nothing can happen any more but that time passes.
func (s *modelSide) settled() {
	st := s.m.State()
	switch {
	case s.over && st == Error && s.order != len(s.posted):
		s.fail("%d requests were left behind", len(s.posted)-s.order)
	case s.over:
		if !s.m.Reset() || s.m.State() != Idle {
			s.fail("no way out of state %v", st)
		}
	case st != RTS:
		s.fail("stuck in state %v", st)
	case s.full || s.peer.full || s.stopped: // what waits, waits for the script
	case s.m.Draining() && (s.m.stream.PeerToPeer || s.canSend()):
		s.fail("a disconnect does not end")
	case s.canSend() && s.m.Outstanding() > 0:
		s.fail("%d requests don't complete", s.m.Outstanding())
	}
	if s.isDrained() && s.drained == 0 {
		s.fail("nobody was told that the queue is drained")
	}
}
