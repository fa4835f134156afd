package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An Opcode is what an RDMAP message is (RFC 5040 §4.1, RFC 7306 §4.1).
type Opcode uint8

// The opcodes.
const (
	Write               Opcode = 0
	ReadRequest         Opcode = 1
	ReadResponse        Opcode = 2
	Send                Opcode = 3
	SendInvalidate      Opcode = 4
	SendSE              Opcode = 5
	SendSEInvalidate    Opcode = 6
	Terminate           Opcode = 7
	ImmediateData       Opcode = 8
	ImmediateDataSE     Opcode = 9
	AtomicRequest       Opcode = 10
	AtomicResponse      Opcode = 11
	opcodes                    = 12
	controlTagged              = 0x80
	controlLast                = 0x40
	controlReserved            = 0x3C
	controlVersion             = 0x03
	rdmapVersion               = 0xC0
	rdmapReserved              = 0x30
	rdmapOpcode                = 0x0F
	taggedLen                  = 14
	untaggedLen                = 18
	defaultDDPVersion          = 1
	defaultRDMAPVersion        = 1
)

var opcodeNames = [opcodes]string{
	"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send", "Send with Invalidate",
	"Send with SE", "Send with SE and Invalidate", "Terminate", "Immediate Data",
	"Immediate Data with SE", "Atomic Request", "Atomic Response",
}

// String names the opcode.
func (o Opcode) String() string {
	if o < opcodes {
		return opcodeNames[o]
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// Tagged reports whether the opcode's messages are tagged (RFC 5040 §4.3).
func (o Opcode) Tagged() bool { return o == Write || o == ReadResponse }

// Queue returns the queue of the opcode's untagged messages (RFC 5040 §4.2, RFC
// 7306 §4).
func (o Opcode) Queue() uint32 {
	switch o {
	case ReadRequest, AtomicRequest:
		return 1
	case Terminate:
		return 2
	case AtomicResponse:
		return 3
	default:
		return 0
	}
}

// A Segment is a DDP segment with RDMAP's control field (RFC 5041 §4, RFC 5040
// §4.1). Bytes writes down whatever it is given, right or wrong.
type Segment struct {
	Tagged, Last bool
	Reserved     uint8 // DDP's four reserved bits, 0 to 15
	Version      uint8 // DV

	RV            uint8 // RDMAP's version
	RDMAPReserved uint8 // RDMAP's two reserved bits
	Opcode        Opcode

	STag uint32 // tagged
	TO   uint64

	Invalidate uint32 // untagged: the Invalidate STag
	QN         uint32
	MSN        uint32
	MO         uint32

	Payload []byte

	// Wrong says, human-readable, what is deliberately wrong with the segment.
	Wrong string
}

// Tagged returns a tagged message that is one segment.
func Tagged(op Opcode, stag uint32, to uint64, payload []byte) Segment {
	return Segment{
		Tagged: true, Last: true, Version: defaultDDPVersion, RV: defaultRDMAPVersion, Opcode: op,
		STag: stag, TO: to, Payload: payload,
	}
}

// Untagged returns an untagged message that is one segment, for the queue that
// its opcode has. The MSN is left to who sends it.
func Untagged(op Opcode, payload []byte) Segment {
	return Segment{
		Last: true, Version: defaultDDPVersion, RV: defaultRDMAPVersion, Opcode: op,
		QN: op.Queue(), Payload: payload,
	}
}

// Octets returns the segment as it stands on the wire: an ULPDU.
func (s Segment) Octets() []byte {
	control := s.Version&controlVersion | s.Reserved<<2&controlReserved
	if s.Tagged {
		control |= controlTagged
	}
	if s.Last {
		control |= controlLast
	}
	b := append(make([]byte, 0, untaggedLen+len(s.Payload)),
		control, s.RV<<6|s.RDMAPReserved<<4&rdmapReserved|uint8(s.Opcode)&rdmapOpcode)
	if s.Tagged {
		b = binary.BigEndian.AppendUint32(b, s.STag)
		b = binary.BigEndian.AppendUint64(b, s.TO)
	} else {
		b = binary.BigEndian.AppendUint32(b, s.Invalidate)
		b = binary.BigEndian.AppendUint32(b, s.QN)
		b = binary.BigEndian.AppendUint32(b, s.MSN)
		b = binary.BigEndian.AppendUint32(b, s.MO)
	}
	return append(b, s.Payload...)
}

// Header returns the DDP header, without payload.
func (s Segment) Header() []byte {
	s.Payload = nil
	return s.Octets()
}

// ErrShort says that a segment has no room for its headers.
var ErrShort = errors.New("the segment is shorter than its header")

// ParseSegment takes an ULPDU apart. The payload is not copied. It returns ErrShort
// if the header isn't whole.
func ParseSegment(b []byte) (Segment, error) {
	if len(b) < 2 {
		return Segment{}, ErrShort
	}
	s := Segment{
		Tagged: b[0]&controlTagged != 0, Last: b[0]&controlLast != 0,
		Reserved: b[0] & controlReserved >> 2, Version: b[0] & controlVersion,
		RV: b[1] & rdmapVersion >> 6, RDMAPReserved: b[1] & rdmapReserved >> 4, Opcode: Opcode(b[1] & rdmapOpcode),
	}
	if s.Tagged {
		if len(b) < taggedLen {
			return s, ErrShort
		}
		s.STag = binary.BigEndian.Uint32(b[2:])
		s.TO = binary.BigEndian.Uint64(b[6:])
		s.Payload = b[taggedLen:]
		return s, nil
	}
	if len(b) < untaggedLen {
		return s, ErrShort
	}
	s.Invalidate = binary.BigEndian.Uint32(b[2:])
	s.QN = binary.BigEndian.Uint32(b[6:])
	s.MSN = binary.BigEndian.Uint32(b[10:])
	s.MO = binary.BigEndian.Uint32(b[14:])
	s.Payload = b[untaggedLen:]
	return s, nil
}
