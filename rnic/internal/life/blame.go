package life

import (
	"errors"

	"urnic/ddp"
	"urnic/internal/host/memfault"
	"urnic/rdmap"
	"urnic/stag"
)

// When a stream ends for an error, the request that is to blame completes with its own
// status, and all others as flushed (draft-hilland-rddp-verbs §6.2.4). Most are blamed
// where they fail; the code below finds those that something else identifies.

// blameRead finds the Read or atomic because of which the peer has ended the stream. A
// Read is known by its header in the Terminate, which has been brought up to date (RFC
// 5040 §4.8); an atomic by the MSN of its request.
func (m *Machine) blameRead(t *rdmap.Terminate) {
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
	m.blame(RemoteTermination, &rdmap.PeerError{Terminate: *t}, match)
}

// blameSink finds the Read whose sink could not be used when its Response came.
func (m *Machine) blameSink(e *rdmap.Error) {
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
	m.blame(LocalProtection, cause, func(o *rdmap.Operation, _ uint32) bool {
		at := h.TO - o.SinkTO
		return o.Op == rdmap.OpReadRequest && o.SinkSTag == h.STag && at < o.Length && n <= o.Length-at // else it is the peer's fault
	})
}

// blame sets a status other than flushed for the first outstanding Read or atomic
// that matches. match also gets the MSN of the request.
func (m *Machine) blame(status Status, cause error, match func(o *rdmap.Operation, msn uint32) bool) {
	msn := m.stream.answered // responses come in the order of the requests
	if m.stream.Initiator && m.stream.ReadRTR {
		msn++
	}
	for r := range m.underWay {
		if r.Status != Success { // another one came first
			return
		}
	}
	for r := range m.underWay {
		awaited := r.awaited()
		for i := range awaited {
			if msn++; match(&awaited[i], msn) {
				_ = r.Refuse(status, cause) // to report when all requests are flushed
				return
			}
		}
	}
}

// MemoryLost reports that memory was lost that the LLP still had to send, in the middle of a segment: a Terminate can't follow.
// cause is the request's, err the stream's; position is what the LLP had accepted before the lost bytes. The request that they
// belong to fails. It and those behind it won't be sent.
func (m *Machine) MemoryLost(cause, err error, position uint64) Effects {
	for r := range m.underWay {
		if r.sendsData() && (r.progress == begun || r.progress == posted && r.mark > position) {
			_ = r.Refuse(LocalProtection, cause)
			break
		}
	}
	return m.Abort(LocalFault(err), Catastrophic)
}

// LocalFault returns the error with which a stream ends because a request of this side
// has failed.
func LocalFault(err error) *rdmap.Error {
	return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §7.1", Err: err}
}
