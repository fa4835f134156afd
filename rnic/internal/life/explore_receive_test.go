package life

import "urnic/rdmap"

// mayReceive reports whether the receiver can continue.
func (s *modelSide) mayReceive() bool {
	switch s.course {
	case GoOn:
		return len(s.in) > 0 || s.gone
	case Linger:
		return s.quiet && (len(s.in) > 0 || s.gone)
	case Settle:
		return s.quiet
	}
	return true
}

// receive takes one item, or continues with the end.
func (s *modelSide) receive() {
	switch s.course {
	case GoOn:
		s.take()
	case Linger:
		s.linger()
	case Settle:
		fx, orderly := s.m.Settled()
		s.act(fx)
		s.finish(orderly)
	case Finish:
		s.finish(false)
	}
}

// linger discards what comes until the end of the peer's half.
func (s *modelSide) linger() {
	for ; len(s.in) > 0; s.in = s.in[1:] {
		switch s.in[0].kind {
		case aFIN:
			s.finish(s.m.Lingered(nil))
			return
		case aRST:
			s.finish(s.m.Lingered(errModel))
			return
		}
	}
	if s.gone {
		s.finish(s.m.Lingered(errModel))
	}
}

// take takes one item.
func (s *modelSide) take() {
	if len(s.in) == 0 || s.in[0].kind == aRST {
		s.received(Arrival{Lost: errModel})
		return
	}
	it := s.in[0]
	s.in = s.in[1:]
	if it.kind == aFIN {
		s.received(Arrival{Ended: true})
		return
	}
	closing := s.m.State() == Closing
	if closing && s.m.Watches() {
		s.act(s.m.Arrived())
	}
	a := s.place(it)
	if !closing && s.m.Watches() {
		s.act(s.m.Heard())
	}
	s.received(a)
}

// place does what an item is for, and says what has come of it.
func (s *modelSide) place(it item) Arrival {
	switch it.kind {
	case aSend:
		if s.receives.Len() == 0 {
			return Arrival{Violation: &rdmap.Error{Code: rdmap.CodeStreamCatastrophic, Err: errModel}, Event: RemoteOperation}
		}
		s.checkReceive(s.receives.Pop(), Success)
	case aReadRequest:
		s.irq = append(s.irq, it.req)
		s.kick = true
	case aReadResponse:
		return s.answered(it.req)
	case aTerminate:
		s.mute = true
		return Arrival{Terminate: &rdmap.Terminate{}}
	}
	return Arrival{}
}

// answered takes the response to a Read.
func (s *modelSide) answered(q *modelRequest) Arrival {
	if s.orq[0] != q {
		s.fail("a response out of its turn")
	}
	s.orq = s.orq[1:]
	s.kick = true
	switch {
	case q == nil: // the ready-to-receive indication
		return Arrival{}
	case q.kind == "badsink":
		_ = q.Refuse(LocalProtection, errModel)
		s.refuse(q)
		return Arrival{Violation: LocalFault(errModel), Event: Catastrophic}
	}
	q.answered++
	s.m.Answered(&q.Request)
	s.collect()
	return Arrival{}
}

// received tells the machine what has come, and takes the course that it says.
func (s *modelSide) received(a Arrival) {
	fx, course := s.m.Received(a)
	s.course = course
	s.disputed = s.disputed || a.Terminate != nil && course == Linger
	s.act(fx)
}

// finish ends the stream.
func (s *modelSide) finish(orderly bool) {
	if orderly {
		s.hangUp(aFIN)
	} else {
		s.hangUp(aRST)
	}
	s.over, s.armed, s.stopped = true, false, false
	s.act(s.m.Over(orderly))
	s.flushReceives()
	s.checkOver()
}

// flushReceives completes the receives that no message has come for.
func (s *modelSide) flushReceives() {
	for r := s.receives.Flush(); r != nil; r = s.receives.Flush() {
		s.checkReceive(r, Flushed)
	}
}

// expire is the end of the time that the end may take.
func (s *modelSide) expire() {
	s.armed = false
	s.act(s.m.Expired(errModel))
}
