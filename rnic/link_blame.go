package rnic

import (
	"errors"

	"urnic/ddp"
	"urnic/internal/memfault"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

// When a stream ends for an error, the request that is to blame completes with a
// status of its own, and all others as flushed (draft-hilland-rddp-verbs
// §6.2.4). Most are blamed where they fail; what follows finds those of which
// something else tells.

// blameRead finds the Read or atomic because of which the peer has ended the
// stream. A Read is known by its header in the Terminate, which has been brought
// up to date (RFC 5040 §4.8); an atomic by the MSN of its request.
func (l *link) blameRead(t *rdmap.Terminate) {
	var match func(o *rdmap.Operation, msn uint32) bool
	if r, err := rdmap.ParseReadRequest(t.RDMAHeader); err == nil {
		match = func(o *rdmap.Operation, _ uint32) bool {
			got := r.SinkTO - o.SinkTO
			return o.Op == rdmap.OpReadRequest && o.SinkSTag == r.SinkSTag && o.STag == r.SrcSTag &&
				r.SrcTO-o.TO == got && got+uint64(r.Size) == o.Length
		}
	} else if seg, err := ddp.ParseSegment(t.DDPHeader); err == nil && !t.SIWLayout() {
		h := seg.Untagged
		if seg.Control.Tagged() || h.QN != rdmap.QueueReadRequest {
			return
		}
		match = func(o *rdmap.Operation, msn uint32) bool { return o.Op == rdmap.OpAtomicRequest && h.MSN == msn }
	} else {
		return
	}
	l.blame(StatusRemoteTermination, &rdmap.PeerError{Terminate: *t}, match)
}

// Refused returns the STag of the peer for which the peer has ended the stream: that of a
// Write or a Read that it did not admit, as far as its Terminate tells (RFC 5040 §4.8).
func (q *QP) Refused() (s stag.STag, ok bool) {
	var e *rdmap.PeerError
	if !errors.As(q.Err(), &e) {
		return 0, false
	}
	t := &e.Terminate
	if r, err := rdmap.ParseReadRequest(t.RDMAHeader); err == nil {
		return r.SrcSTag, true
	}
	if seg, err := ddp.ParseSegment(t.DDPHeader); err == nil && seg.Control.Tagged() {
		return seg.Tagged.STag, true
	}
	return 0, false
}

// blameSink finds the Read whose sink could not be used when its Response came.
func (l *link) blameSink(e *rdmap.Error) {
	var cause error
	if access, ok := errors.AsType[*stag.AccessError](e); ok {
		cause = access
	} else if fault, ok := errors.AsType[*memfault.Error](e); ok {
		cause = fault
	}
	seg, _ := ddp.ParseSegment(e.Header)
	h, n := seg.Tagged, uint64(e.SegmentLen-ddp.TaggedHeaderLen)
	if rdmap.Control(h.RsvdULP).Opcode() != rdmap.OpReadResponse { // as without a tagged header: 0 is a Write
		return
	}
	// Without a cause, blame marks none.
	l.blame(StatusLocalProtection, cause, func(o *rdmap.Operation, _ uint32) bool {
		at := h.TO - o.SinkTO
		return o.Op == rdmap.OpReadRequest && o.SinkSTag == h.STag && at < o.Length && n <= o.Length-at // else it is the peer's fault
	})
}

// blameSource gives the request whose memory was lost before it was sent a status
// other than flushed. It and those behind it won't be sent. Only the transmitter calls
// it.
func (l *link) blameSource(lost *mpa.MemoryError) {
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	l.mark()
	for w := range s.underWay {
		if w.op.sendsData() && (w.state == begun || w.state == posted && w.mark > lost.Position) {
			_ = w.refuse(StatusLocalProtection, lost)
			return
		}
	}
}

// blameReceive gives the receive in turn a status other than flushed, if a message
// was longer.
func (l *link) blameReceive(e *rdmap.Error) {
	if e.Code != rdmap.TermCode(ddp.CodeMessageTooLong.TermWord()) {
		return
	}
	seg, _ := ddp.ParseSegment(e.Header) // an untagged one, as only its message can be too long
	if h := seg.Untagged; h.QN != rdmap.QueueSend || recvOp(rdmap.Control(h.RsvdULP[0]).Opcode()) != OpRecv {
		return
	}
	rq := &l.qp.rq
	rq.mu.Lock()
	defer rq.mu.Unlock()
	w := rq.taken
	if w == nil && rq.ring.n > 0 { // the message of an SRQ's stream may be out of turn, and have none
		w = *rq.ring.at(0)
	}
	if w != nil {
		w.fault, w.status = e, StatusLocalLength
	}
}

// blame gives the first Read or atomic that is under way and matches a status
// other than flushed. match is told the MSN of the request too. Only the
// receiver calls it.
func (l *link) blame(status Status, cause error, match func(o *rdmap.Operation, msn uint32) bool) {
	s := &l.qp.sq
	s.mu.Lock()
	defer s.mu.Unlock()
	msn := l.answered // responses come in the order of the requests
	if l.params.Role == mpa.Initiator && l.params.RTR == mpa.RTRRead {
		msn++
	}
	for w := range s.underWay {
		if w.status != StatusSuccess { // another one came first
			return
		}
	}
	for w := range s.underWay {
		for _, o := range w.awaited() {
			if msn++; match(o, msn) {
				_ = w.refuse(status, cause) // to be told when all requests are flushed
				return
			}
		}
	}
}
