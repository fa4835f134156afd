//go:build linux

package dropin

import (
	"errors"

	"urnic/ddp"
	"urnic/internal/dropin/ack"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// vendorRevoked is vendor_err of a request whose rkey the peer has refused as invalid, though it
// was good before: the peer has revoked it. The others are the codes of RFC 5040 Figure 9.
const (
	vendorRevoked = 0x0110
	saysRevoked   = "the rkey is not valid any more: the peer has revoked it"
)

// verdict returns what a machine is to know of the end of a stream.
func (q *qp) verdict(cause error) ack.End {
	if peer, is := errors.AsType[*rdmap.PeerError](cause); is {
		return q.place(&peer.Terminate)
	}
	ours, is := errors.AsType[*rdmap.Error](cause)
	switch {
	case cause == nil, q.closed.Load(): // it had no work outstanding then
		return ack.End{Cause: ack.Closed}
	case q.given.Load(), errors.Is(cause, rnic.ErrAborted), errors.Is(cause, rnic.ErrOverflow):
		return ack.End{Cause: ack.Given}
	case is && ours.Code == rdmap.CodeStreamCatastrophic: // the peer has closed, and there is work outstanding
		return ack.End{Cause: ack.Closed}
	case is:
		return ack.End{Cause: ack.Given}
	}
	return ack.End{Cause: ack.Lost}
}

// place returns where in the stream the peer has found what it refuses: the header of the
// segment is in its Terminate (RFC 5040 §4.8).
func (q *qp) place(t *rdmap.Terminate) ack.End {
	e := ack.End{Cause: ack.Refused}
	seg, err := ddp.ParseSegment(t.DDPHeader)
	switch {
	case err != nil: // there is none
	case seg.Control.Tagged():
		op := rdmap.Control(seg.Tagged.RsvdULP).Opcode()
		e.Tagged, e.STag, e.TO = true, uint32(seg.Tagged.STag), seg.Tagged.TO
		e.Elsewhere = op != rdmap.OpWrite
	case seg.Untagged.QN == rdmap.QueueSend:
		e.Untagged, e.MSN = true, seg.Untagged.MSN-1 // MSNs count from 1 (RFC 5041 §5.3)
		if p, some := q.verbs.Params(); some && p.Role == rnic.Initiator && p.RTR == mpa.RTRSend {
			e.MSN-- // the first one was start-up's (RFC 6581 §9.2)
		}
	default: // package rnic knows which Read it was
		e.Elsewhere = true
	}
	return e
}

// explain says what has gone wrong with a request that has a status of its own, as an
// adapter of InfiniBand does.
func (q *qp) explain(wc *rnic.WC, out *WC, done *ack.Completion) {
	peer, is := errors.AsType[*rdmap.PeerError](wc.Cause)
	if wc.Status != rnic.StatusRemoteTermination || !is {
		out.Status = localStatus(wc.Status)
		out.VendorErr = terminateCode(wc.Cause)
		q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d: %v", q.num, wc.ID, out.Status, wc.Err())
		return
	}
	code := plainCode(peer.Terminate.Reason())
	out.Status, out.VendorErr = refusalStatus(code), uint32(code)
	why := refusals[code]
	if code == rdmap.CodeInvalidSTag && q.send.acks.m.Used(done.STag) {
		out.VendorErr, why = vendorRevoked, saysRevoked
	}
	if why == "" {
		why = "the peer has refused it"
	}
	q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d, vendor_err 0x%04x: %s: %v", q.num, wc.ID, out.Status, out.VendorErr, why, peer)
}

// refusals are the causes that programs can tell apart by vendor_err.
var refusals = map[rdmap.TermCode]string{
	rdmap.CodeInvalidSTag:       "the peer has no such rkey",
	rdmap.CodeBaseBounds:        "it is out of bounds of the peer's memory, or that is gone",
	rdmap.CodeTOWrap:            "it is out of bounds of the peer's memory, or that is gone",
	rdmap.CodeAccessRights:      "the peer's memory does not allow it",
	rdmap.CodeSTagNotAssociated: "the peer's memory belongs to another protection domain",
	codeNotForWrites:            "the peer's memory does not allow it, or belongs to another protection domain: the peer's log says which",
	codeNoReceive:               "the peer has posted no receive",
	codeTooLong:                 "the peer's receive is too short",
}

// What DDP says that RDMAP has no code for. For a Write without rights there is none at all
// (RFC 5041 §7.2), and peers say that the STag is not associated with the stream.
const (
	codeNotForWrites = rdmap.TermCode(0x1000 | ddp.CodeSTagNotAssociated)
	codeNoReceive    = rdmap.TermCode(0x1000 | ddp.CodeMSNNoBuffer)
	codeTooLong      = rdmap.TermCode(0x1000 | ddp.CodeMessageTooLong)
)

// plainCode returns the code of RDMAP for one of DDP that says the same: which layer has
// found it is of no interest to a program.
func plainCode(c rdmap.TermCode) rdmap.TermCode {
	if c.Layer() != rdmap.LayerDDP {
		return c
	}
	switch ddp.Code(c & 0xfff) {
	case ddp.CodeInvalidSTag:
		return rdmap.CodeInvalidSTag
	case ddp.CodeBaseBounds:
		return rdmap.CodeBaseBounds
	case ddp.CodeTOWrap:
		return rdmap.CodeTOWrap
	default:
		return c
	}
}

// refusalStatus returns the status of a request that the peer has refused with a code, which
// plainCode has returned.
func refusalStatus(c rdmap.TermCode) uint32 {
	switch {
	case c == codeNoReceive:
		return wcRNRRetryExceeded
	case c == codeTooLong, c == rdmap.CodeUnexpectedOpcode:
		return wcRemoteRequest
	case c.Layer() == rdmap.LayerRDMAP && c.EType() == 1, c.Layer() == rdmap.LayerDDP && c.EType() == 1:
		return wcRemoteAccess
	}
	return wcRemoteOp
}

// localStatus returns the status of a request that has failed on this side.
func localStatus(s rnic.Status) uint32 {
	switch s {
	case rnic.StatusLocalProtection, rnic.StatusBadSTag:
		return wcLocalProtect
	case rnic.StatusInvalidateFailed, rnic.StatusRegisterFailed, rnic.StatusBindFailed:
		return wcBind
	case rnic.StatusLocalLength:
		return wcLocalLength
	case rnic.StatusNoReadResources:
		return wcLocalOperation
	default:
		return wcGeneral
	}
}
