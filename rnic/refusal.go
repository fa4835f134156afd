package rnic

import (
	"errors"

	"urnic/ddp"
	"urnic/rdmap"
)

// A Refusal is what a peer's Terminate tells of the request because of which it has ended
// the stream (RFC 5040 §4.8). The request is known by its completion if it was not complete; a
// Write completes when it has left, and may be refused later.
type Refusal struct {
	// Write and Read say what the request may be: a Write; a Read or an atomic. Both are
	// set if the peer tells that it is about access to its memory, and no more. Neither
	// is set if it is about something else.
	Write, Read bool
	// Unsupported says that the peer does not know the operation.
	Unsupported bool

	// Of a Write: the octets of the segment that was refused. Length is 0 if the peer does not
	// tell it, and so is Remote if it does not tell what is written to. Last is set if they are
	// the last of the Write.
	Remote Remote
	Length uint64
	Last   bool
}

// Refusal returns what the peer has refused, and whether it is a Terminate of the peer that has
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
