package rdmap

import (
	"encoding/binary"
	"fmt"

	"urnic/ddp"
)

const (
	// TerminateControlLen is the length of the fixed part of a Terminate Header
	// in bytes.
	TerminateControlLen = 4
	// MaxTerminateLen is the longest Terminate message that a peer may send:
	// all the parts of RFC 5040 Figure 7 with an untagged DDP header.
	MaxTerminateLen = TerminateControlLen + segmentLenLen + ddp.UntaggedHeaderLen + ReadRequestLen

	segmentLenLen = 2

	hdrctM = 0x80 // DDP Segment Length valid
	hdrctD = 0x40 // DDP header included
	hdrctR = 0x20 // RDMAP header included

	// Linux siw writes HdrCt into the low bits of the byte instead, and has
	// only these two values.
	siwHdrctMD  = 0x03
	siwHdrctMDR = 0x07
)

// A Terminate is a Terminate message (RFC 5040 §4.8).
type Terminate struct {
	Code  TermCode
	HdrCt uint8 // third byte: M, D and R in its three high bits
	Rsvd  uint8 // fourth byte: zero on transmit, ignored on receipt

	SegmentLen uint16 // valid if M
	DDPHeader  []byte // the terminated DDP header, if D
	RDMAHeader []byte // the terminated RDMA Read Request Header, if R
	Rest       []byte // bytes behind what HdrCt announces; ignored
}

// M reports whether SegmentLen is valid, D whether a DDP header is included, R
// whether an RDMAP header is. They also accept the bits where siw puts them.
func (t *Terminate) M() bool { return t.HdrCt&hdrctM != 0 || t.SIWLayout() }

// D reports whether a DDP header is included.
func (t *Terminate) D() bool { return t.HdrCt&hdrctD != 0 || t.SIWLayout() }

// R reports whether an RDMAP header is included.
func (t *Terminate) R() bool {
	return t.HdrCt&hdrctR != 0 || t.SIWLayout() && t.HdrCt == siwHdrctMDR
}

// SIWLayout reports whether HdrCt stands where Linux siw puts it, not where
// RFC 5040 Figure 8 does. These bits are reserved there, and ignored: only with
// the headers that they announce do they mean anything.
func (t *Terminate) SIWLayout() bool {
	return (t.HdrCt == siwHdrctMD || t.HdrCt == siwHdrctMDR) && len(t.DDPHeader) > 0
}

// Reason returns the code that the peer means. Linux siw reverses the order of
// the fields within each byte of the Terminate Control field, so that layer and
// error type are swapped too. If the peer is siw, which HdrCt shows, or if the
// code is defined only when swapped, Reason swaps them back.
func (t *Terminate) Reason() TermCode {
	other := t.Code.swapped()
	if t.SIWLayout() || t.HdrCt == 0 && !t.Code.Defined() && other.Defined() {
		return other
	}
	return t.Code
}

// AppendBinary appends the wire form of t to b. It never fails.
func (t *Terminate) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(t.Code)) // Layer(4) EType(4) Error Code(8)
	b = append(b, t.HdrCt)                               // M(1) D(1) R(1) Reserved(5)
	b = append(b, t.Rsvd)                                // Reserved (8)
	if t.M() || t.D() {
		b = binary.BigEndian.AppendUint16(b, t.SegmentLen) // DDP Segment Length (16)
	}
	b = append(b, t.DDPHeader...)  // Terminated DDP Header
	b = append(b, t.RDMAHeader...) // Terminated RDMA Header
	return append(b, t.Rest...), nil
}

// ParseTerminate reads a Terminate message; b is the whole ULP Payload of its
// DDP message, and the result aliases it. It fails if b is too short for what
// HdrCt announces.
func ParseTerminate(b []byte) (Terminate, error) {
	if len(b) < TerminateControlLen {
		return Terminate{}, shortTerminate(len(b))
	}
	t := Terminate{Code: TermCode(binary.BigEndian.Uint16(b)), HdrCt: b[2], Rsvd: b[3]}
	rest := b[TerminateControlLen:]
	if t.HdrCt == siwHdrctMD || t.HdrCt == siwHdrctMDR {
		if siw := t; siw.parseHeaders(rest, true, true, t.HdrCt == siwHdrctMDR) {
			return siw, nil
		}
	}
	// RFC 5040 §7.1 has unused fields set to zero, Figure 10 leaves them out:
	// what HdrCt does not announce is Rest.
	if !t.parseHeaders(rest, t.HdrCt&hdrctM != 0, t.HdrCt&hdrctD != 0, t.HdrCt&hdrctR != 0) {
		return Terminate{}, shortTerminate(len(b))
	}
	return t, nil
}

// parseHeaders decodes the parts that M, D and R announce, and reports whether
// they are there.
func (t *Terminate) parseHeaders(b []byte, m, d, r bool) bool {
	if m || d {
		if len(b) < segmentLenLen {
			return false
		}
		t.SegmentLen, b = binary.BigEndian.Uint16(b), b[segmentLenLen:]
	}
	if d {
		n := ddp.UntaggedHeaderLen
		if len(b) > 0 && ddp.Control(b[0]).Tagged() {
			n = ddp.TaggedHeaderLen
		}
		if len(b) < n {
			return false
		}
		t.DDPHeader, b = b[:n:n], b[n:]
	}
	if r {
		if len(b) < ReadRequestLen {
			return false
		}
		t.RDMAHeader, b = b[:ReadRequestLen:ReadRequestLen], b[ReadRequestLen:]
	}
	t.Rest = b
	return true
}

func shortTerminate(n int) error {
	return &Error{
		Code: CodeOperationUnspecified, Clause: "RFC 5040 §4.8",
		Reason: fmt.Sprintf("a Terminate message of %d octets ends before what its header announces", n),
	}
}

// String shows the message in one line.
func (t *Terminate) String() string {
	s := t.Reason().String()
	if t.Reason() != t.Code {
		s += fmt.Sprintf(" (sent as 0x%04x, as Linux siw does)", uint16(t.Code))
	}
	if t.D() {
		if seg, err := ddp.ParseSegment(t.DDPHeader); err == nil {
			if seg.Control.Tagged() {
				s += fmt.Sprintf(", on %v %v", Control(seg.Tagged.RsvdULP).Opcode(), seg.Tagged)
			} else {
				s += fmt.Sprintf(", on %v %v", Control(seg.Untagged.RsvdULP[0]).Opcode(), seg.Untagged)
			}
		}
	}
	if t.R() {
		if r, err := ParseReadRequest(t.RDMAHeader); err == nil {
			s += ", " + r.String()
		}
	}
	return s
}

// Terminate returns the message that reports e to the peer, with the parts that
// RFC 5040 Figure 10 requires for its kind.
func (e *Error) Terminate() Terminate {
	t := Terminate{Code: e.Code}
	// Errors of the LLP, local catastrophic errors and errors that no incoming
	// message caused carry no header.
	if e.Code.Layer() == LayerLLP || e.Code.EType() == 0 || len(e.Header) == 0 {
		return t
	}
	t.HdrCt = hdrctM | hdrctD
	t.SegmentLen = uint16(min(e.SegmentLen, 1<<16-1))
	t.DDPHeader = e.Header
	// Figure 10 says "Yes" for each remote protection error, but only a Read
	// Request has an RDMAP header to send back.
	if e.Code.Layer() == LayerRDMAP && len(e.RDMAHeader) == ReadRequestLen {
		t.HdrCt |= hdrctR
		t.RDMAHeader = e.RDMAHeader
	}
	return t
}
