package ddp

import (
	"encoding/binary"
	"fmt"

	"urnic/stag"
)

const (
	// Version is the DDP version of RFC 5041.
	Version = 1

	// TaggedHeaderLen is the length of the header of a segment that targets a
	// Tagged Buffer, in bytes (RFC 5041 §4.2).
	TaggedHeaderLen = 14
	// UntaggedHeaderLen is that of one that targets an Untagged Buffer (§4.3).
	UntaggedHeaderLen = 18

	controlTagged   = 0x80
	controlLast     = 0x40
	controlReserved = 0x3C
	controlVersion  = 0x03
)

// A Control is the DDP Control Field, the first byte of each DDP segment (RFC
// 5041 §4.1).
type Control uint8

// NewControl returns the control field of a segment that this implementation
// sends.
func NewControl(tagged, last bool) Control {
	c := Control(Version) // Rsvd(4) is "set to zero on transmit"
	if tagged {
		c |= controlTagged
	}
	if last {
		c |= controlLast
	}
	return c
}

// Tagged reports whether the segment targets a Tagged Buffer (T).
func (c Control) Tagged() bool { return c&controlTagged != 0 }

// Last reports whether the segment ends its DDP message (L).
func (c Control) Last() bool { return c&controlLast != 0 }

// Reserved returns the reserved bits, which a receiver does not check.
func (c Control) Reserved() uint8 { return uint8(c&controlReserved) >> 2 }

// Version returns DV.
func (c Control) Version() uint8 { return uint8(c & controlVersion) }

// A TaggedHeader is the DDP header of a segment that targets a Tagged Buffer
// (RFC 5041 §4.2).
type TaggedHeader struct {
	Control Control
	RsvdULP uint8 // RDMAP's control field
	STag    stag.STag
	TO      uint64
}

// AppendBinary appends the TaggedHeaderLen bytes of h to b. It never fails.
func (h TaggedHeader) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, byte(h.Control))                       // T(1)=1 L(1) Rsvd(4) DV(2)
	b = append(b, h.RsvdULP)                             // RsvdULP (8)
	b = binary.BigEndian.AppendUint32(b, uint32(h.STag)) // STag (32)
	return binary.BigEndian.AppendUint64(b, h.TO), nil   // TO (64)
}

// String shows the header in one line.
func (h TaggedHeader) String() string {
	return fmt.Sprintf("tagged%s stag=%v to=0x%x", lastMark(h.Control), h.STag, h.TO)
}

// An UntaggedHeader is the DDP header of a segment that targets an Untagged
// Buffer (RFC 5041 §4.3).
type UntaggedHeader struct {
	Control Control
	RsvdULP [5]byte // RDMAP's control field and Invalidate STag
	QN      uint32
	MSN     uint32
	MO      uint32
}

// AppendBinary appends the UntaggedHeaderLen bytes of h to b. It never fails.
func (h UntaggedHeader) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, byte(h.Control))                     // T(1)=0 L(1) Rsvd(4) DV(2)
	b = append(b, h.RsvdULP[:]...)                     // RsvdULP (40)
	b = binary.BigEndian.AppendUint32(b, h.QN)         // QN (32)
	b = binary.BigEndian.AppendUint32(b, h.MSN)        // MSN (32)
	return binary.BigEndian.AppendUint32(b, h.MO), nil // MO (32)
}

// String shows the header in one line.
func (h UntaggedHeader) String() string {
	return fmt.Sprintf("untagged%s qn=%d msn=%d mo=%d", lastMark(h.Control), h.QN, h.MSN, h.MO)
}

func lastMark(c Control) string {
	if c.Last() {
		return " last"
	}
	return ""
}

// A Segment is a DDP segment as it arrives: one of the two headers, and the ULP
// Payload, which aliases the bytes that were parsed.
type Segment struct {
	Control  Control
	Tagged   TaggedHeader   // valid if Control.Tagged()
	Untagged UntaggedHeader // valid otherwise
	Payload  []byte
}

// HeaderLen returns the length of the segment's header in bytes.
func (s *Segment) HeaderLen() int {
	if s.Control.Tagged() {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// AppendBinary appends the header and payload of s to b. It never fails.
func (s *Segment) AppendBinary(b []byte) ([]byte, error) {
	if s.Control.Tagged() {
		b, _ = s.Tagged.AppendBinary(b)
	} else {
		b, _ = s.Untagged.AppendBinary(b)
	}
	return append(b, s.Payload...), nil
}

// ParseSegment decodes one DDP segment; b is all of it, as the LLP preserves
// its boundaries. ParseSegment does not validate the version; Sink does. It
// fails with CodeLocalCatastrophic if b is shorter than the header that its
// first byte announces, for which RFC 5041 §7.2 has no number of its own.
func ParseSegment(b []byte) (s Segment, err error) {
	if len(b) == 0 {
		return Segment{}, shortSegment(b)
	}
	s.Control = Control(b[0])
	if s.Control.Tagged() {
		if len(b) < TaggedHeaderLen {
			return Segment{}, shortSegment(b)
		}
		s.Tagged = TaggedHeader{
			Control: s.Control,
			RsvdULP: b[1],
			STag:    stag.STag(binary.BigEndian.Uint32(b[2:])),
			TO:      binary.BigEndian.Uint64(b[6:]),
		}
		s.Payload = b[TaggedHeaderLen:]
		return s, nil
	}
	if len(b) < UntaggedHeaderLen {
		return Segment{}, shortSegment(b)
	}
	s.Untagged = UntaggedHeader{
		Control: s.Control,
		RsvdULP: [5]byte(b[1:6]),
		QN:      binary.BigEndian.Uint32(b[6:]),
		MSN:     binary.BigEndian.Uint32(b[10:]),
		MO:      binary.BigEndian.Uint32(b[14:]),
	}
	s.Payload = b[UntaggedHeaderLen:]
	return s, nil
}

func shortSegment(b []byte) error {
	return &Error{
		Code: CodeLocalCatastrophic, Clause: "RFC 5041 §4.4", SegmentLen: len(b),
		Reason: fmt.Sprintf("a segment of %d octets does not hold its DDP header", len(b)),
	}
}
