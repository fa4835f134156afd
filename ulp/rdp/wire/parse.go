package wire

import (
	"encoding/binary"
	"math/bits"
)

// Parse decodes the segment that is all of b, and returns its data, which aliases b. With p, the
// checksum of version 2 has to cover a pseudo-header too. Parse reuses the memory of h.EACKs.
//
// The error is a *FormatError. It is nil only if the segment has the right form:
//
//   - H1: b holds a header of version 1 or 2
//   - H2: the header is no shorter than its fixed part, and no longer than b
//   - H3: header and data together are b
//   - H4: the checksum fits
//   - H5: the flags go together, and with the data and the variable area
//   - H6: no port is 0
//
// After an error of H4, H5 or H6, h holds what the bytes say; before, it is not changed. What has
// an error of H4 may have any error besides.
func (h *Header) Parse(b []byte, p *Pseudo) (data []byte, err error) {
	if len(b) < FixedLen {
		return nil, &FormatError{Fault: TooShort, Have: len(b), Want: FixedLen}
	}
	version := b[0] & versionMask
	if version != 1 && version != 2 {
		return nil, &FormatError{Fault: WrongVersion, Have: int(version)}
	}
	n := 2 * int(b[1])
	if n < FixedLen || n > len(b) {
		return nil, &FormatError{Fault: WrongHeaderLength, Have: n, Want: len(b)}
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if version == 2 {
		length = int(binary.BigEndian.Uint16(b[6:]))
	}
	if n+length != len(b) {
		return nil, &FormatError{Fault: WrongLength, Have: len(b), Want: n + length}
	}
	h.decode(b, version)
	variable := b[FixedLen:n]
	err = h.decodeVariable(variable)
	if have, want, ok := verify(b, version, p); !ok {
		return nil, &FormatError{Fault: WrongChecksum, Version: version, Have: int(have), Want: int(want)}
	}
	if err != nil {
		return nil, err
	}
	if err := h.allowed(length); err != nil {
		return nil, err
	}
	return b[n:], nil
}

// decode decodes the fixed part of the header at the front of b.
func (h *Header) decode(b []byte, version uint8) {
	s := (*[FixedLen]byte)(b)
	h.Version, h.Flags = version, Flags(s[0]&^versionMask)
	if version == 1 {
		h.Source, h.Dest = uint16(s[2]), uint16(s[3])
		h.Seq, h.Ack = binary.BigEndian.Uint32(s[6:]), binary.BigEndian.Uint32(s[10:])
		return
	}
	h.Source, h.Dest = binary.BigEndian.Uint16(s[2:]), binary.BigEndian.Uint16(s[4:])
	h.Seq, h.Ack = binary.BigEndian.Uint32(s[8:]), binary.BigEndian.Uint32(s[12:])
}

// decodeVariable decodes the variable area. What a SYN has behind its options is ignored, and
// so is the area of a segment that has no use for one.
func (h *Header) decodeVariable(v []byte) error {
	h.MaxOutstanding, h.MaxSegment, h.Sequenced, h.EACKs = 0, 0, false, h.EACKs[:0]
	switch {
	case h.Flags&SYN != 0:
		if len(v) < SYNLen-FixedLen {
			return &FormatError{Fault: ShortSYN, Have: FixedLen + len(v), Want: SYNLen}
		}
		h.MaxOutstanding = binary.BigEndian.Uint16(v)
		h.MaxSegment = binary.BigEndian.Uint16(v[2:])
		h.Sequenced = binary.BigEndian.Uint16(v[4:])&optionSequenced != 0
	case h.Flags&EACK != 0:
		if len(v)%eackLen != 0 {
			return &FormatError{Fault: OddEACKs, Have: len(v), Want: eackLen}
		}
		for ; len(v) > 0; v = v[eackLen:] {
			h.EACKs = append(h.EACKs, binary.BigEndian.Uint32(v))
		}
	}
	return nil
}

// allowed judges what flags a segment with n bytes of data has, and its ports: H5, H6
// (RFC 908 §4.2.1, §4.3 to §4.7).
func (h *Header) allowed(n int) error {
	f := h.Flags
	fault := noFault
	switch {
	case f&unused != 0:
		fault = UnusedFlag
	case bits.OnesCount8(uint8(f&(SYN|RST|NUL))) > 1:
		fault = ExclusiveFlags
	case f&(SYN|RST|NUL) != 0 && n > 0:
		fault = UnexpectedData
	case f&EACK != 0 && f&(SYN|RST) != 0:
		fault = UnexpectedEACK
	case f&EACK != 0 && f&ACK == 0:
		fault = EACKWithoutACK
	case f&ACK == 0 && n > 0:
		fault = DataWithoutACK
	case f&(SYN|ACK|RST|NUL) == 0:
		fault = NoFlag
	case h.Source == 0 || h.Dest == 0:
		fault = WrongPort
	}
	if fault == noFault {
		return nil
	}
	return &FormatError{Fault: fault, Flags: f, Have: n}
}
