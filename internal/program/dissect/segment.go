package dissect

import (
	"encoding/binary"
	"math"

	"urnic/ddp"
	"urnic/internal/capture"
	"urnic/internal/host/plural"
	"urnic/mpa"
	"urnic/rdmap"
)

// newSegment decodes a ULPDU.
func (s *stream) newSegment(raw, ulpdu []byte) Segment {
	seg := Segment{Number: s.fpdus + 1, ULPDU: ulpdu, FPDU: raw}
	if len(ulpdu) >= 2 {
		seg.HasOp, seg.Op = true, rdmap.Control(ulpdu[1]).Opcode()
	}
	if d, err := ddp.ParseSegment(ulpdu); err == nil {
		seg.Whole, seg.DDP = true, d
	}
	return seg
}

// count adds a segment to the statistics.
func (s *stream) count(seg *Segment) {
	c := s.f.con
	if !seg.HasOp || !seg.Op.Valid() {
		c.Other++
		return
	}
	c.Segments[seg.Op]++
	switch seg.Op {
	case rdmap.OpReadRequest, rdmap.OpTerminate, rdmap.OpAtomicRequest, rdmap.OpAtomicResponse:
	default:
		if !seg.BadCRC {
			c.Payload += uint64(len(seg.DDP.Payload))
		}
	}
}

// segment judges an FPDU whose CRC is good, or is not to be checked.
func (s *stream) segment(at capture.At, raw, ulpdu []byte) {
	f := s.f
	f.busy = true
	f.above() // it decides before the first event whether it follows the connection
	seg := s.newSegment(raw, ulpdu)
	s.checkTurn(at, &seg)
	s.fpdus++
	s.checkFPDU(at, raw, ulpdu)
	s.show(at, &seg)
	s.checkAfter(at)
	s.checkAlone(at, &seg)
	if seg.Whole {
		s.message(at, &seg)
	}
	f.settled()
}

// show counts a segment, and hands it on.
func (s *stream) show(at capture.At, seg *Segment) {
	s.count(seg)
	s.f.a.emit(&Event{Kind: KindSegment, Conn: s.f.con, At: at, From: s.f.side(s.id), Segment: seg})
}

// checkAfter judges whether a segment may follow (RFC 5040 §5.4).
func (s *stream) checkAfter(at capture.At) {
	if s.terminated && !s.after {
		s.after = true
		s.f.violate(ruleAfter, s.id, at, "something follows the Terminate message")
	}
}

// checkAlone judges a segment by itself, whatever comes before it, and remembers its header.
func (s *stream) checkAlone(at capture.At, seg *Segment) {
	if !seg.Whole {
		s.f.violate(ruleHeader, s.id, at, "a ULPDU of %s does not hold a DDP header", plural.Count(len(seg.ULPDU), "byte"))
		s.lost = true // what it was to be is unknown
		return
	}
	s.remember(seg)
	s.checkHeader(at, seg)
}

// checkTurn judges who sends the first FPDU (RFC 5044 §7.1.2 rule 4), and what
// it is in the peer-to-peer model (RFC 6581 §9.2).
func (s *stream) checkTurn(at capture.At, seg *Segment) {
	f := s.f
	if s.fpdus > 0 || s.lost || f.reply == nil {
		return
	}
	client := &f.streams[f.client]
	if s != client {
		if client.fpdus == 0 && !client.lost {
			f.violate(ruleFirstFPDU, s.id, at, "the Responder sends an FPDU before the first one of the Initiator (rule 4)")
		}
		return
	}
	if !f.p2p || seg.Op == rdmap.OpTerminate && seg.HasOp {
		return // a Terminate says that there is no matching RTR
	}
	var kind mpa.RTR
	if seg.Whole {
		kind = rtrKind(seg)
	}
	if kind == 0 || kind&f.rtr == 0 {
		f.violate(ruleRTR, s.id, at, "the Initiator's first FPDU is no ready-to-receive indication; negotiated: %v", f.rtr)
	}
}

// rtrKind returns which ready-to-receive indication a segment is.
func rtrKind(seg *Segment) mpa.RTR {
	if !seg.DDP.Control.Last() {
		return 0
	}
	switch seg.Op {
	case rdmap.OpSend:
		if len(seg.DDP.Payload) == 0 {
			return mpa.RTRSend
		}
	case rdmap.OpWrite:
		if len(seg.DDP.Payload) == 0 {
			return mpa.RTRWrite
		}
	case rdmap.OpReadRequest:
		if r, err := rdmap.ParseReadRequest(seg.DDP.Payload); err == nil && r.Size == 0 {
			return mpa.RTRRead
		}
	default:
	}
	return 0
}

// checkFPDU judges what MPA put around the ULPDU.
func (s *stream) checkFPDU(at capture.At, raw, ulpdu []byte) {
	if len(ulpdu) > mpa.MaxMULPDU {
		s.f.violate(ruleULPDULength, s.id, at, "a ULPDU of %s; at most %d may be sent", plural.Count(len(ulpdu), "byte"), mpa.MaxMULPDU)
	}
	// "The pad data MUST be set to zero by the sender": RFC 5044 §4.1
	if n := -(2 + len(ulpdu)) & 3; n > 0 && !s.d.Markers {
		end := len(raw) - mpa.CRCLen
		for _, v := range raw[end-n : end] {
			if v != 0 {
				s.f.violate(rulePad, s.id, at, "the pad is %x, not zero", raw[end-n:end])
				break
			}
		}
	}
}

// checkHeader judges a segment by itself: RFC 5041 §4.1, RFC 5040 §4.1.
func (s *stream) checkHeader(at capture.At, seg *Segment) {
	f, c, r := s.f, seg.DDP.Control, seg.Control()
	if c.Version() != ddp.Version {
		f.violate(ruleDDPVersion, s.id, at, "DDP version %d; there is only %d", c.Version(), ddp.Version)
	}
	if c.Reserved() != 0 {
		f.violate(ruleDDPReserved, s.id, at, "reserved bits 0x%x are set in the DDP control field", c.Reserved())
	}
	if r.Reserved() != 0 {
		f.violate(ruleRDMAPReserved, s.id, at, "reserved bits 0x%x are set in the RDMAP control field", r.Reserved())
	}
	op := seg.Op
	extension := op >= rdmap.OpImmediate
	if !r.ValidVersion() {
		f.violate(ruleVersion, s.id, at, "RDMAP version %d", r.Version())
	} else if extension && op.Valid() && r.Version() != rdmap.Version {
		f.violate(ruleVersion7, s.id, at, "%v with RDMAP version %d; it has version 1", op, r.Version())
	}
	if !op.Valid() {
		f.violate(ruleOpcode, s.id, at, "%v", op)
		return
	}
	tagged, queue, invalidate := ruleTagged, ruleQueue, ruleInvalidate
	if extension {
		tagged, queue, invalidate = ruleTagged7, ruleQueue7, ruleInvalidate7
	}
	if op.Tagged() != c.Tagged() {
		f.violate(tagged, s.id, at, "%v with T=%d", op, bit(c.Tagged()))
	}
	if c.Tagged() {
		t := &seg.DDP.Tagged
		if n := len(seg.DDP.Payload); n > 0 && t.TO > math.MaxUint64-uint64(n-1) {
			f.violate(ruleTOWrap, s.id, at, "TO 0x%x and %s go beyond 2^64", t.TO, plural.Count(n, "byte"))
		}
		return
	}
	u := &seg.DDP.Untagged
	if !op.Tagged() && u.QN != op.Queue() {
		f.violate(queue, s.id, at, "%v on queue %d; its queue is %d", op, u.QN, op.Queue())
	}
	if stag := binary.BigEndian.Uint32(u.RsvdULP[1:]); stag != 0 && !op.Invalidates() {
		f.violate(invalidate, s.id, at, "%v with Invalidate STag 0x%08x; it must be zero", op, stag)
	}
}
