package dissect

import (
	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/rdmap"
)

// ask remembers a Read or an Atomic, and judges how many there are at a time
// (RFC 5040 §6.1, RFC 6581 §9.1; Atomics count as Reads).
func (s *stream) ask(at capture.At, p *pending) {
	f := s.f
	switch {
	case s.asked.len() >= maxAsked:
		if !s.full {
			s.full = true
			f.note(s.id, at, "more than %d Reads and Atomics of the %v wait for their responses, which are not all matched", maxAsked, f.side(s.id))
		}
		s.lost = true
		return
	case f.a.outstanding >= maxOutstanding:
		s.lost = true // responses can't be matched any more
		return
	}
	f.a.outstanding++
	s.asked.add(p)
	limit := f.limit[s.id]
	// Without the responses that were lost, there is no telling how many are open.
	// One report does for all that go beyond the limit until it is kept again.
	if limit >= 0 && s.asked.len() == limit+1 && !s.peer().lost && !s.unsure() {
		f.violate(ruleIRD, s.id, at, "more Reads or Atomics are outstanding than the %d that were negotiated", limit)
	}
}

// answered removes an outstanding Read or Atomic.
func (s *stream) answered(p *pending) {
	if s.asked.remove(p) {
		s.f.a.outstanding--
	}
}

// answeredBefore removes those that were asked for before p: their responses
// were lost.
func (s *stream) answeredBefore(p *pending) {
	for q := s.asked.first(); q != p; q = s.asked.first() {
		s.answered(q)
	}
}

// readRequest judges an RDMA Read Request.
func (s *stream) readRequest(at capture.At, m *Message, head []byte) {
	r, err := rdmap.ParseReadRequest(head)
	if err != nil {
		s.f.violate(ruleHeaderLength, s.id, at, "a Read Request of %s; it has %d", plural.Count(m.Length, "byte"), rdmap.ReadRequestLen)
		if len(head) < rdmap.ReadRequestLen {
			s.lost = true // whatever answers it can't be matched
			return
		}
		r, _ = rdmap.ParseReadRequest(head[:rdmap.ReadRequestLen])
	}
	m.ReadRequest = &r
	p := &pending{read: r}
	s.readAbove(at, m, p)
	s.ask(at, p)
}

// response matches a Read Response to the Read that it answers when its first
// segment comes, and watches its length (RFC 5040 §5.2.2).
func (s *stream) response(at capture.At, m *Message, seg *Segment) {
	if m.Segments == 1 {
		s.match(at, m, len(seg.DDP.Payload) == 0 && seg.DDP.Control.Last())
	}
	if m.answers != nil && m.Length > uint64(m.answers.read.Size) && !m.tooLong && !m.Partial && !m.unsure {
		m.tooLong = true
		s.f.violate(ruleResponse, s.id, at, "a Read Response goes beyond the %s that were asked for", plural.Count(m.answers.read.Size, "byte"))
	}
}

// unsure reports whether a response may answer another request than the one that fits, as that one is not known. Over MPA, what is
// lost is known before the response is there.
func (s *stream) unsure() bool { return s.f.carries && (s.lost || s.peer().lost) }

// match finds the Read that m answers. empty reports that m has no data, in which
// case its STag and TO need not be valid (RFC 5041 §5.2).
func (s *stream) match(at capture.At, m *Message, empty bool) {
	asker := s.peer()
	p := asker.asked.findRead(m.STag, m.TO, empty)
	if p == nil && s.lost { // the rest of a response whose beginning was lost, perhaps
		if p = asker.asked.findInside(m.STag, m.TO); p != nil {
			m.answers, m.Partial, m.Use = p, true, p.use
			return
		}
	}
	first := asker.asked.first()
	if p != nil {
		m.answers, m.Use = p, p.use
		m.unsure = s.unsure()
		switch {
		case p == first:
		case s.lost, m.unsure:
			asker.answeredBefore(p)
		default:
			s.f.violate(ruleResponse, s.id, at, "a Read Response to STag %v TO 0x%x overtakes that to %v, which was asked for before", m.STag, m.TO, first)
		}
		return
	}
	if asker.lost || s.lost {
		return
	}
	if first == nil {
		s.f.violate(ruleResponse, s.id, at, "a Read Response to STag %v TO 0x%x, and no Read is outstanding", m.STag, m.TO)
		return
	}
	if first.atomic {
		s.f.violate(ruleResponse, s.id, at, "a Read Response where Atomic %d comes next to be answered", first.id)
		return
	}
	m.answers = first
	s.f.violate(ruleResponse, s.id, at, "a Read Response to STag %v TO 0x%x, where the Read asked for STag %v TO 0x%x",
		m.STag, m.TO, first.read.SinkSTag, first.read.SinkTO)
}

// readDone judges a Read Response that is there to its end.
func (s *stream) readDone(at capture.At, m *Message) {
	if m.answers == nil {
		return
	}
	if size := uint64(m.answers.read.Size); m.Length < size && !m.unsure {
		s.f.violate(ruleResponse, s.id, at, "a Read Response of %s to a Read of %d", plural.Count(m.Length, "byte"), size)
	}
	s.peer().answered(m.answers)
}

// atomicRequest judges an Atomic Request (RFC 7306 §5.2.1).
func (s *stream) atomicRequest(at capture.At, m *Message, head []byte) {
	f := s.f
	r, err := rdmap.ParseAtomicRequest(head)
	if err != nil {
		f.violate(ruleAtomic, s.id, at, "an Atomic Request of %s; it has %d", plural.Count(m.Length, "byte"), rdmap.AtomicRequestLen)
		s.lost = true // whatever answers it can't be matched
		return
	}
	m.AtomicRequest = &r
	s.atomicAbove(at, m)
	if !r.Op.Valid() {
		f.violate(ruleAtomicOp, s.id, at, "%v", r.Op)
	}
	if r.Reserved != 0 {
		f.violate(ruleAtomic, s.id, at, "reserved bits 0x%x are set in an Atomic Request", r.Reserved)
	}
	if r.Op == rdmap.AtomicFetchAdd && (r.Compare != 0 || r.CompareMask != ^uint64(0)) {
		f.violate(ruleAtomic, s.id, at, "a FetchAdd with Compare Data 0x%x and Mask 0x%x; they must be zero and all ones", r.Compare, r.CompareMask)
	}
	s.ask(at, &pending{atomic: true, id: r.RequestID})
}

// atomicResponse judges an Atomic Response (RFC 7306 §5.2.2).
func (s *stream) atomicResponse(at capture.At, m *Message, head []byte) {
	f, asker := s.f, s.peer()
	r, err := rdmap.ParseAtomicResponse(head)
	if err != nil {
		f.violate(ruleAtomicReply, s.id, at, "an Atomic Response of %s; it has %d", plural.Count(m.Length, "byte"), rdmap.AtomicResponseLen)
		return
	}
	m.AtomicResponse = &r
	if p := asker.asked.find(askKey{atomic: true, to: uint64(r.RequestID)}); p != nil {
		if first := asker.asked.first(); p != first && !s.lost && !s.unsure() {
			f.violate(ruleAtomicReply, s.id, at, "the response to Atomic %d overtakes that to %v, which was asked for before", r.RequestID, first)
		} else {
			asker.answeredBefore(p)
		}
		asker.answered(p)
		return
	}
	if !asker.lost && !s.lost {
		f.violate(ruleAtomicReply, s.id, at, "a response to Atomic %d, which is not outstanding", r.RequestID)
	}
}
