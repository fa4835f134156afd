package rnic

import (
	"errors"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/stag"
)

// A Refusal is what a peer's Terminate reports about the request for which the peer has ended
// the stream (RFC 5040 §4.8). If that request was not complete, its completion identifies it.
// A Write completes when it is sent, and may be refused later.
type Refusal struct {
	// Write is set if the request may be a Write, Read if it may be a Read or an atomic.
	// Both are set if the peer only reports that its memory was accessed wrongly.
	// Neither is set if the error is about something else.
	Write, Read bool
	// Unsupported says that the peer does not know the operation.
	Unsupported bool

	// For a Write: the bytes of the segment that was refused. Length and Remote are 0 if the
	// peer does not report them. Last is set if the segment is the last of the Write.
	Remote Remote
	Length uint64
	Last   bool
}

// Refusal returns what the peer has refused. ok reports whether a Terminate of the peer has
// ended the stream.
func (q *QP) Refusal() (r Refusal, ok bool) {
	var e *rdmap.PeerError
	if !errors.As(q.Err(), &e) {
		return r, false
	}
	t := &e.Terminate
	reason := t.Reason()
	r.Unsupported = reason == rdmap.CodeUnexpectedOpcode
	seg, err := ddp.ParseSegment(t.DDPHeader)
	switch {
	case err != nil: // there is none
		remote := reason.Layer() <= 1 && reason.EType() == 1 // errors of remote protection, and of tagged buffers
		r.Write, r.Read = remote, remote
	case !seg.Control.Tagged():
		r.Read = seg.Untagged.QN == rdmap.QueueReadRequest
	default:
		h := &seg.Tagged
		r.Write, r.Remote, r.Last = true, Remote{h.STag, h.TO}, h.Control.Last()
		if t.SegmentLen > ddp.TaggedHeaderLen && !t.SIWLayout() {
			r.Length = uint64(t.SegmentLen) - ddp.TaggedHeaderLen
		}
	}
	return r, true
}

// Refused returns the STag of the peer because of which the peer has ended the stream:
// that of a Write or a Read that it refused, if its Terminate has it (RFC 5040 §4.8).
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
