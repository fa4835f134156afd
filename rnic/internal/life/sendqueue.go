package life

// Room returns how many requests the send queue still takes, if the slots of held ones are
// taken that have completed, see HoldsSlots.
func (m *Machine) Room(held int) int { return m.queue.Limit() - m.queue.Len() - held }

// HoldsSlots reports whether requests that have completed hold their slots in the send
// queue until their completions are polled, if they have one.
func (m *Machine) HoldsSlots() bool { return m.holdsSlots }

// ChecksAtTurn reports whether the memory of requests is not checked when they are posted.
func (m *Machine) ChecksAtTurn() bool { return m.checksAtTurn }

// Admits reports whether requests may be posted now, and whether those that are would
// be late: only to be flushed. This holds for receives too.
func (m *Machine) Admits() (ok, late bool) {
	late = m.state != Idle && (m.state != RTS || m.stream.draining)
	return !late || m.takesLate, late
}

// Draining reports whether the queue pair takes no requests because it is being
// disconnected.
func (m *Machine) Draining() bool { return m.state == RTS && m.stream.draining }

// Post adds a request to the send queue, which has room. One that is late waits for the
// end of the stream, or is flushed at once if there is none.
func (m *Machine) Post(r *Request) {
	r.start()
	m.queue.Push(r)
	if _, late := m.Admits(); !late {
		return
	}
	m.late++
	if !m.stream.live {
		m.flush()
	}
}

// Outstanding returns how many requests have not completed that the stream is for.
func (m *Machine) Outstanding() int { return m.queue.Len() - m.late }

// Posted reports that all of a message has been posted to the LLP. The LLP has
// accepted it when it has accepted position. Messages are posted in their order.
func (m *Machine) Posted(r *Request, position uint64) {
	if r.posts++; r.posts == len(r.Messages) && !r.isRead() {
		r.progress, r.mark = posted, position
	}
}

// Accepted reports to the machine what the LLP has accepted (RFC 5041 §5.4). It returns
// whether requests have completed while others wait to be begun: a fence may have
// opened. After the peer's Terminate, those that are left "SHOULD be considered
// Completed in error" (RFC 5040 §6.2.1), though the last one may still be sent to its
// end.
func (m *Machine) Accepted(position uint64) (more bool) {
	if m.stream.peer == peerTerminated {
		return false
	}
	m.stream.flushed = position
	return m.complete() && m.Outstanding() > m.begun
}

// Answered reports that the response to a message of r has arrived: of a Read or an
// atomic.
func (m *Machine) Answered(r *Request) {
	m.stream.answered++
	m.reads--
	if r.answers++; r.answers < len(r.Messages) {
		return
	}
	r.progress = done
	m.complete()
}

// CarriedOut reports that the owner has carried out a local request, which Next has
// returned.
func (m *Machine) CarriedOut(r *Request) {
	r.progress = done
	m.complete()
}

// complete completes the requests at the front of the queue that are done, in their
// order (RFC 5040 §5.5 rule 15), and reports whether there were any.
func (m *Machine) complete() (some bool) {
	for m.begun > 0 && m.isDone(*m.queue.At(0)) {
		m.retire()
		some = true
	}
	return some
}

// isDone reports whether a request is done: of a Send or Write, whether the LLP has
// accepted it.
func (m *Machine) isDone(r *Request) bool {
	return r.progress == done || r.progress == posted && r.mark <= m.stream.flushed
}

// retire completes the oldest request.
func (m *Machine) retire() {
	m.completed = append(m.completed, m.queue.Pop())
	m.begun--
	m.noteDrained()
}

// Completed returns the requests that have completed, in their order. The owner has
// them from then on; the slice is valid until the next event.
func (m *Machine) Completed() []*Request {
	c := m.completed
	m.completed = m.completed[:0]
	return c
}

// flush completes all requests: the one that is to blame with its own status, the
// others as flushed.
func (m *Machine) flush() {
	m.stopped = false
	blamed := false
	for m.queue.Len() > 0 {
		r := *m.queue.At(0)
		if r.Status == Success || blamed { // several may have failed at once
			r.Status, r.Cause = Flushed, nil
		} else {
			blamed = true
		}
		m.retire()
	}
	m.begun, m.late, m.reads = 0, 0, 0
}

// underWay yields the requests that were begun, and the one that has more messages to
// come.
func (m *Machine) underWay(yield func(*Request) bool) {
	for i := range m.queue.Len() {
		r := *m.queue.At(i)
		if r.progress == queued && i >= m.begun || !yield(r) {
			return
		}
	}
}

// Stop makes further requests wait in the send queue, or continue. It returns false,
// and changes nothing, in a state in which requests don't wait for their turn.
func (m *Machine) Stop(stopped bool) bool {
	if m.state != RTS && m.state != Idle {
		return false
	}
	m.stopped = stopped
	m.noteDrained()
	return true
}

// noteDrained notes that a stopped queue has no request that was begun. The last of
// them has just completed, or the queue been stopped.
func (m *Machine) noteDrained() {
	if m.stopped && m.begun <= 0 && (m.queue.Len() == 0 || (*m.queue.At(0)).progress == queued) {
		m.drained = true
	}
}

// Drained reports once that a stopped queue has no request any more that was begun.
func (m *Machine) Drained() bool {
	d := m.drained
	m.drained = false
	return d
}

// Free gives up the room of the send queue, which is empty.
func (m *Machine) Free() {
	m.queue.Free()
	m.completed = nil
}
