package rdmap

import (
	"fmt"

	"urnic/ddp"
)

// ImmediateLen is the length of Immediate Data in bytes: no more, no less (RFC
// 7306 §6.3).
const ImmediateLen = 8

// Immediate is the data of an Immediate Data message, in the byte order of the
// ULP.
type Immediate [ImmediateLen]byte

// ParseImmediate reads Immediate Data; b is the whole ULP Payload of its DDP
// message. It fails unless b is ImmediateLen bytes long.
func ParseImmediate(o Opcode, b []byte) (Immediate, error) {
	if len(b) != ImmediateLen {
		return Immediate{}, wrongLength(o, len(b))
	}
	return Immediate(b), nil
}

// pieces watches the segments of queue 0, so that no message is part Send, part
// Immediate Data: those go to different buffers, and some of its bytes would
// not lie in the one that is delivered.
type pieces struct {
	msn       uint32 // of the segment before
	open      bool   // which was not the last one of its message,
	immediate bool   // and Immediate Data
	disorder  bool   // segments have arrived out of order
	cut       bool   // Immediate Data has arrived in pieces
}

// admit validates the next segment of queue 0. Immediate Data may arrive in
// pieces, as any message may (RFC 5041 §5.2), from an LLP that preserves the
// order. From other LLPs, a piece of a Send can arrive long after the pieces of
// Immediate Data whose bytes it seems to complete. So no stream may have both,
// pieces and disorder.
func (p *pieces) admit(h *ddp.UntaggedHeader, op Opcode) error {
	immediate := op == OpImmediate || op == OpImmediateSE
	same := p.open && h.MSN == p.msn
	if !same && (p.open || h.MSN != p.msn+1) {
		p.disorder = true
	}
	if immediate && (h.MO != 0 || !h.Control.Last()) {
		p.cut = true
	}
	if same && immediate != p.immediate || p.disorder && p.cut {
		return &Error{
			Code: CodeOperationUnspecified, Clause: "RFC 7306 §6.2",
			Reason: fmt.Sprintf("MSN %d: Immediate Data in pieces, of which some are a Send or out of order", h.MSN),
		}
	}
	p.msn, p.open, p.immediate = h.MSN, !h.Control.Last(), immediate
	return nil
}
