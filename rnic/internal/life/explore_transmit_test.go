package life

import "urnic/rdmap"

// MayRead implements Transmission.
func (s *modelSide) MayRead() bool { return len(s.orq) < s.ord }

// HoldsMemory implements Transmission.
func (s *modelSide) HoldsMemory() bool { return s.openLease }

// Check implements Transmission.
func (s *modelSide) Check(r *Request) (Status, error) {
	if r.Owner.(*modelRequest).kind == "badread" {
		return LocalProtection, errModel
	}
	return Success, nil
}

// canSend reports whether the LLP may send, if it has room: the responder not before it
// has received something.
func (s *modelSide) canSend() bool { return s.m.stream.heard }

// transmit posts what there is to send and flushes it, until there is nothing more to do
// but to wait: for the LLP, if it is full.
func (s *modelSide) transmit() {
	const most = 100 // passes, and messages of a pass: no script has so many
	for pass := 0; s.kick && !s.over; pass++ {
		s.kick = false
		if s.m.stream.own == ownEnded {
			return
		}
		n := 0
		for n < most && s.postNext() {
			n++
		}
		if n == most || pass == most {
			s.fail("the transmitter does not come to rest")
			return
		}
		s.openLease = false
		if !s.full && s.canSend() {
			s.flush(len(s.unsent))
		}
		if s.failing {
			s.failing = false
			s.act(s.m.Fail(LocalFault(errModel), Catastrophic))
		}
		s.decide()
	}
}

// postNext posts what comes next, and reports whether there was something. A full LLP
// takes little.
func (s *modelSide) postNext() bool {
	switch {
	case s.m.stream.own == ownEnded, s.mute, s.failing, s.full && len(s.unsent) > 1:
		return false
	case s.rtr:
		s.rtr = false
		if s.m.stream.ReadRTR {
			s.orq = append(s.orq, nil)
			return s.put(aReadRequest, nil)
		}
		return s.put(anRTR, nil)
	case s.terminate != nil:
		s.mute = true
		return s.put(aTerminate, nil)
	case len(s.irq) > 0:
		r := s.irq[0]
		s.irq = s.irq[1:]
		return s.put(aReadResponse, r)
	}
	turn, r, o := s.m.Next(s)
	switch turn {
	case Send:
		s.give(r, o)
		s.batch(r)
		return true
	case Flush:
		if !s.openLease {
			s.fail("a flush is asked for, but no memory is open")
		}
		s.kick = true
	case CarryOut:
		return s.carryOut(r)
	case Failed:
		s.refuse(r.Owner.(*modelRequest))
		s.failing = true
	case Wait:
	}
	return false
}

// batch continues with the requests that nothing can hold back.
func (s *modelSide) batch(r *Request) {
	if !s.batches || !r.plain() {
		return
	}
	var room [2]*Request
	batch, all := s.m.Batch(room[:0])
	if all && !s.stopped && s.m.begun < s.m.Outstanding() {
		s.fail("a batch was all there is, and there is more")
	}
	for _, r := range batch {
		s.give(r, &r.Messages[0])
	}
}

// give posts a message of a request that was begun.
func (s *modelSide) give(r *Request, o *rdmap.Operation) {
	q := r.Owner.(*modelRequest)
	s.checkTurn(q)
	if o != &q.Messages[q.given] {
		s.fail("not the next message of a %s", q.kind)
	}
	q.given++
	kind := aSend
	switch {
	case q.isRead():
		s.orq, kind = append(s.orq, q), aReadRequest
	case o.Op == rdmap.OpWrite:
		kind = aWrite
	}
	s.openLease = s.openLease || o.Payload != nil
	s.put(kind, q)
	s.m.Posted(r, s.position)
}

// carryOut carries out a local request.
func (s *modelSide) carryOut(r *Request) bool {
	q := r.Owner.(*modelRequest)
	s.checkTurn(q)
	if s.openLease {
		s.fail("a local request is carried out while memory is open")
	}
	if q.kind == "badlocal" {
		_ = r.Refuse(InvalidateFailed, errModel)
		s.refuse(q)
		s.failing = true
		return false
	}
	q.carried = true
	s.m.CarriedOut(r)
	s.collect()
	return true
}

// put posts an item to the LLP.
func (s *modelSide) put(kind itemKind, r *modelRequest) bool {
	s.position++
	s.unsent = append(s.unsent, item{kind, r, s.position})
	return true
}

// flush has the LLP take the first n items of what is posted.
func (s *modelSide) flush(n int) {
	var err error
	for _, it := range s.unsent[:n] {
		data := it.req != nil && it.req.sendsData() && it.kind != aReadResponse
		if s.gone || s.broken || s.spoiled && data {
			err = errModel
			break
		}
		s.send(it)
	}
	if s.m.Accepted(s.accepted) {
		s.kick = true
	}
	s.collect()
	if err == nil {
		return
	}
	s.act(s.m.Broken(err))
	if s.spoiled && !s.gone && !s.broken {
		s.refuse(s.unsent[0].req)
		s.act(s.m.MemoryLost(err, err, s.accepted))
	}
	s.unsent = nil
}

// send sends the first item that is unsent.
func (s *modelSide) send(it item) {
	if s.quiet || s.finished {
		s.fail("something is sent after the end")
	}
	s.unsent, s.accepted = s.unsent[1:], it.end
	if it.req != nil && it.kind != aReadResponse {
		it.req.accepted++
	}
	if !s.peer.gone {
		s.peer.in = append(s.peer.in, it)
	}
}

// decide decides what the end of what there is to send means.
func (s *modelSide) decide() {
	if s.m.stream.own == ownEnded {
		return
	}
	idle := len(s.irq) == 0 && !s.rtr && (s.terminate == nil || s.mute)
	sent := Sent{All: idle && len(s.unsent) == 0, Answering: len(s.irq), Outstanding: len(s.orq), Terminated: s.mute}
	if s.m.Ending() {
		s.act(s.m.Judge(sent))
	}
	if !sent.All || s.kick {
		return
	}
	half := s.m.CloseOwn(sent, !s.patient, s.mayWait)
	s.checkHalf(half, sent)
	switch half {
	case CloseHalf:
		if s.gone || s.broken {
			s.act(s.m.Abort(errModel, Lost))
		} else {
			s.finished = true
			s.peer.in = append(s.peer.in, item{kind: aFIN})
		}
		s.act(s.m.OwnEnded())
	case LeaveHalf:
		s.act(s.m.OwnEnded())
	case DeferHalf: // to a goroutine
		s.mayWait, s.kick = true, true
	case KeepHalf:
	}
}
