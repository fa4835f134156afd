package wire

import (
	"encoding/binary"
	"fmt"
)

// ReadRequestLen, AtomicRequestLen and AtomicResponseLen are the lengths of
// RDMAP headers in bytes.
const (
	ReadRequestLen    = 28
	AtomicRequestLen  = 52
	AtomicResponseLen = 12
)

// ReadHeader is the header of an RDMA Read Request (RFC 5040 §4.4).
type ReadHeader struct {
	SinkSTag   uint32
	SinkTO     uint64
	Length     uint32
	SourceSTag uint32
	SourceTO   uint64
}

// Octets returns the header as it stands on the wire.
func (h ReadHeader) Octets() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, ReadRequestLen), h.SinkSTag)
	b = binary.BigEndian.AppendUint64(b, h.SinkTO)
	b = binary.BigEndian.AppendUint32(b, h.Length)
	b = binary.BigEndian.AppendUint32(b, h.SourceSTag)
	return binary.BigEndian.AppendUint64(b, h.SourceTO)
}

// ParseReadHeader takes a Read Request's payload apart. It returns ErrShort if it
// isn't whole.
func ParseReadHeader(b []byte) (ReadHeader, error) {
	if len(b) < ReadRequestLen {
		return ReadHeader{}, ErrShort
	}
	return ReadHeader{
		SinkSTag: binary.BigEndian.Uint32(b), SinkTO: binary.BigEndian.Uint64(b[4:]),
		Length:     binary.BigEndian.Uint32(b[12:]),
		SourceSTag: binary.BigEndian.Uint32(b[16:]), SourceTO: binary.BigEndian.Uint64(b[20:]),
	}, nil
}

// The atomic operations (RFC 7306 §5.2.1).
const (
	FetchAdd = 0
	CmpSwap  = 2
)

// AtomicHeader is the header of an Atomic Request (RFC 7306 §5.2.1).
type AtomicHeader struct {
	Reserved             uint32 // 28 bits
	Operation            uint8
	RequestID            uint32
	STag                 uint32
	TO                   uint64
	Data, Mask           uint64 // to add or to swap in
	Compare, CompareMask uint64
}

// Octets returns the header as it stands on the wire.
func (h AtomicHeader) Octets() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, AtomicRequestLen), h.Reserved<<4|uint32(h.Operation&0x0F))
	b = binary.BigEndian.AppendUint32(b, h.RequestID)
	b = binary.BigEndian.AppendUint32(b, h.STag)
	for _, v := range []uint64{h.TO, h.Data, h.Mask, h.Compare, h.CompareMask} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// ParseAtomicHeader takes an Atomic Request's payload apart. It returns ErrShort
// if it isn't whole.
func ParseAtomicHeader(b []byte) (AtomicHeader, error) {
	if len(b) < AtomicRequestLen {
		return AtomicHeader{}, ErrShort
	}
	first := binary.BigEndian.Uint32(b)
	at := func(off int) uint64 { return binary.BigEndian.Uint64(b[off:]) }
	return AtomicHeader{
		Reserved: first >> 4, Operation: uint8(first & 0x0F),
		RequestID: binary.BigEndian.Uint32(b[4:]), STag: binary.BigEndian.Uint32(b[8:]), TO: at(12),
		Data: at(20), Mask: at(28), Compare: at(36), CompareMask: at(44),
	}, nil
}

// AtomicResult is the header of an Atomic Response (RFC 7306 §5.2.2).
type AtomicResult struct {
	RequestID uint32
	Original  uint64
}

// Octets returns the header as it stands on the wire.
func (h AtomicResult) Octets() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, h.RequestID), h.Original)
}

// ParseAtomicResult takes an Atomic Response's payload apart. It returns ErrShort
// if it isn't whole.
func ParseAtomicResult(b []byte) (AtomicResult, error) {
	if len(b) < AtomicResponseLen {
		return AtomicResult{}, ErrShort
	}
	return AtomicResult{RequestID: binary.BigEndian.Uint32(b), Original: binary.BigEndian.Uint64(b[4:])}, nil
}

// A Code is what a Terminate says went wrong: layer, error type and error code in
// the 16 bits that they have on the wire (RFC 5040 §4.8).
type Code uint16

// Codes.
const (
	LocalCatastrophic Code = 0x0000 // RFC 5040 §4.8

	RDMAPInvalidSTag     Code = 0x0100
	RDMAPBounds          Code = 0x0101
	RDMAPRights          Code = 0x0102
	RDMAPNotAssociated   Code = 0x0103
	RDMAPWrap            Code = 0x0104
	RDMAPCantInvalidate  Code = 0x0109
	RDMAPProtectionOther Code = 0x01FF

	RDMAPVersion          Code = 0x0205
	RDMAPOpcode           Code = 0x0206
	RDMAPCatastrophic     Code = 0x0207
	RDMAPGlobal           Code = 0x0208
	RDMAPCantInvalidateOp Code = 0x0209
	RDMAPOther            Code = 0x02FF
	DDPCatastrophic       Code = 0x1000 // RFC 5041 §7.2
	DDPInvalidSTag        Code = 0x1100
	DDPBounds             Code = 0x1101
	DDPNotAssociated      Code = 0x1102
	DDPWrap               Code = 0x1103
	DDPTaggedVersion      Code = 0x1104
	DDPInvalidQN          Code = 0x1201
	DDPNoBuffer           Code = 0x1202
	DDPMSNRange           Code = 0x1203
	DDPInvalidMO          Code = 0x1204
	DDPTooLong            Code = 0x1205
	DDPUntaggedVersion    Code = 0x1206
	MPAClosed             Code = 0x2001 // RFC 5044 §8, RFC 6580 §3.3
	MPACRC                Code = 0x2002
	MPAMarker             Code = 0x2003
	MPAFrame              Code = 0x2004
	MPACatastrophic       Code = 0x2005 // RFC 6581 §8
	MPAInsufficientIRD    Code = 0x2006
	MPANoRTR              Code = 0x2007
)

var codeNames = map[Code]string{
	LocalCatastrophic: "local catastrophic error", RDMAPInvalidSTag: "RDMAP: invalid STag",
	RDMAPBounds: "RDMAP: base or bounds violation", RDMAPRights: "RDMAP: access rights violation",
	RDMAPNotAssociated: "RDMAP: STag not associated with the stream", RDMAPWrap: "RDMAP: TO wrap",
	RDMAPCantInvalidate: "RDMAP: STag cannot be invalidated", RDMAPProtectionOther: "RDMAP: unspecified protection error",
	RDMAPVersion: "RDMAP: invalid version", RDMAPOpcode: "RDMAP: unexpected opcode",
	RDMAPCatastrophic: "RDMAP: catastrophic error, localized to the stream", RDMAPGlobal: "RDMAP: catastrophic error, global",
	RDMAPCantInvalidateOp: "RDMAP: STag cannot be invalidated (operation)", RDMAPOther: "RDMAP: unspecified error",
	DDPCatastrophic: "DDP: local catastrophic error", DDPInvalidSTag: "DDP: invalid STag",
	DDPBounds: "DDP: base or bounds violation", DDPNotAssociated: "DDP: STag not associated with the stream",
	DDPWrap: "DDP: TO wrap", DDPTaggedVersion: "DDP: invalid version (tagged)", DDPInvalidQN: "DDP: invalid QN",
	DDPNoBuffer: "DDP: invalid MSN, no buffer available", DDPMSNRange: "DDP: invalid MSN, out of range",
	DDPInvalidMO: "DDP: invalid MO", DDPTooLong: "DDP: message too long for the buffer",
	DDPUntaggedVersion: "DDP: invalid version (untagged)", MPAClosed: "MPA: connection closed, lost or timed out",
	MPACRC: "MPA: CRC error", MPAMarker: "MPA: marker and length disagree", MPAFrame: "MPA: invalid start-up frame",
	MPACatastrophic: "MPA: local catastrophic error", MPAInsufficientIRD: "MPA: insufficient IRD", MPANoRTR: "MPA: no matching RTR",
}

// String gives the code's digits and its name, or that of its swapped form: see Is.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return fmt.Sprintf("0x%04x (%s)", uint16(c), name)
	}
	if name, ok := codeNames[c.swapped()]; ok {
		return fmt.Sprintf("0x%04x (no code, but with layer and error type swapped %s)", uint16(c), name)
	}
	return fmt.Sprintf("0x%04x (no code that the RFCs know)", uint16(c))
}

// Is reports whether the code says what want does, if need be with layer and error
// type in each other's place, as Linux siw has them. Cases on the Terminate itself
// compare codes for equality; others don't find that fault again.
func (c Code) Is(want Code) bool { return c == want || c == want.swapped() }

func (c Code) swapped() Code { return c&0x00FF | c>>4&0x0F00 | c<<4&0xF000 }

// Bits of a Terminate's header control field (RFC 5040 §4.8), in its third
// byte.
const (
	TermM = 0x80 // a DDP segment length follows
	TermD = 0x40 // a DDP header follows
	TermR = 0x20 // an RDMAP header follows
)

// TerminateHeader is a Terminate's payload (RFC 5040 §4.8).
type TerminateHeader struct {
	Code    Code
	Control uint8  // the byte of the header control bits, with the reserved bits beside them
	Rest    uint8  // the byte of reserved bits
	Tail    []byte // segment length, DDP header and RDMAP header, as far as they're there
}

// Octets returns the payload as it stands on the wire.
func (h TerminateHeader) Octets() []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(h.Code))
	return append(append(b, h.Control, h.Rest), h.Tail...)
}

// ParseTerminate takes a Terminate's payload apart, leniently: only the code has
// to be there, else it returns ErrShort.
func ParseTerminate(b []byte) (TerminateHeader, error) {
	if len(b) < 2 {
		return TerminateHeader{}, ErrShort
	}
	h := TerminateHeader{Code: Code(binary.BigEndian.Uint16(b))}
	if len(b) >= 4 {
		h.Control, h.Rest, h.Tail = b[2], b[3], b[4:]
	}
	return h, nil
}

// Headers decodes what follows the control bits, by the bits that are set: the DDP
// segment length, the DDP header and the RDMAP header. It returns ErrShort if
// something that they announce is missing.
func (h TerminateHeader) Headers() (length uint16, ddp, rdmap []byte, err error) {
	b := h.Tail
	if h.Control&TermM != 0 {
		if len(b) < 2 {
			return 0, nil, nil, ErrShort
		}
		length, b = binary.BigEndian.Uint16(b), b[2:]
	}
	if h.Control&TermD != 0 {
		n := untaggedLen
		if len(b) > 0 && b[0]&controlTagged != 0 {
			n = taggedLen
		}
		if len(b) < n {
			return length, nil, nil, ErrShort
		}
		ddp, b = b[:n], b[n:]
	}
	if h.Control&TermR != 0 {
		if len(b) < ReadRequestLen {
			return length, ddp, nil, ErrShort
		}
		rdmap = b
	}
	return length, ddp, rdmap, nil
}
