package wire

import "encoding/binary"

// AppendTo appends a segment to b: the header, with its checksum, and then data. With p, the
// checksum of version 2 covers a pseudo-header as well. It allocates nothing if b has room for
// Len()+len(data) bytes.
//
// AppendTo encodes forbidden combinations of flags too; see Check. What can't be encoded it
// leaves out, and returns b as it is: a version that is neither 1 nor 2, a port of version 1 over
// 255, more than MaxEACKs numbers, more than MaxData bytes.
//
// Data may lie in b's memory already if it is exactly where it goes.
func (h *Header) AppendTo(b, data []byte, p *Pseudo) []byte {
	if h.fits(len(data)) != nil {
		return b
	}
	at, n := len(b), h.Len()
	var fixed [FixedLen]byte
	b = append(b, fixed[:]...)
	switch {
	case h.Flags&SYN != 0:
		options := uint16(0)
		if h.Sequenced {
			options = optionSequenced
		}
		b = binary.BigEndian.AppendUint16(b, h.MaxOutstanding)
		b = binary.BigEndian.AppendUint16(b, h.MaxSegment)
		b = binary.BigEndian.AppendUint16(b, options)
	case h.Flags&EACK != 0:
		for _, number := range h.EACKs {
			b = binary.BigEndian.AppendUint32(b, number)
		}
	}
	b = append(b, data...)
	s := b[at:]
	s[0], s[1] = byte(h.Flags&^versionMask)|h.Version, byte(n/2)
	if h.Version == 1 {
		s[2], s[3] = byte(h.Source), byte(h.Dest)
		binary.BigEndian.PutUint16(s[4:], uint16(len(data)))
		binary.BigEndian.PutUint32(s[6:], h.Seq)
		binary.BigEndian.PutUint32(s[10:], h.Ack)
		binary.BigEndian.PutUint32(s[checksum1:], Checksum1(s))
		return b
	}
	binary.BigEndian.PutUint16(s[2:], h.Source)
	binary.BigEndian.PutUint16(s[4:], h.Dest)
	binary.BigEndian.PutUint16(s[6:], uint16(len(data)))
	binary.BigEndian.PutUint32(s[8:], h.Seq)
	binary.BigEndian.PutUint32(s[12:], h.Ack)
	binary.BigEndian.PutUint16(s[checksum2:], Checksum2(s, p))
	return b
}

// fits says what of a segment with n bytes of data has no place in its format. The error is a
// *FormatError, or nil.
func (h *Header) fits(n int) error {
	switch {
	case h.Version != 1 && h.Version != 2:
		return &FormatError{Fault: WrongVersion, Have: int(h.Version)}
	case h.Flags&SYN == 0 && h.Flags&EACK != 0 && len(h.EACKs) > MaxEACKs:
		return &FormatError{Fault: TooManyEACKs, Have: len(h.EACKs), Want: MaxEACKs}
	case n > MaxData:
		return &FormatError{Fault: TooMuchData, Have: n, Want: MaxData}
	case h.Version == 1 && max(h.Source, h.Dest) > maxPort1:
		return &FormatError{Fault: WrongPort, Have: int(max(h.Source, h.Dest)), Want: maxPort1}
	}
	return nil
}

// maxPort1 is the highest port of version 1.
const maxPort1 = 255

// Check reports whether a segment with this header and n bytes of data may be sent: it has a
// place in the format, and Parse would accept it. The error is a *FormatError.
func (h *Header) Check(n int) error {
	if err := h.fits(n); err != nil {
		return err
	}
	return h.allowed(n)
}
