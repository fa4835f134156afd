package rdpflow

import (
	"errors"

	"urnic/internal/capture"
	"urnic/ulp/rdp/wire"
)

// A Segment is a segment of RDP, or what is in its place: the event for it.
type Segment struct {
	Header  wire.Header       // if Fault is nil, or of H4, H5 or H6
	Fault   *wire.FormatError // what is wrong with its form, or nil
	Data    []byte            // as far as it was captured
	Length  int               // of the data, in bytes
	Raw     []byte            // all of the segment, as far as it was captured
	Missing int               // bytes that were not captured
	Pseudo  bool              // its checksum covers a pseudo-header
	Again   bool              // its number was seen before
	Stray   bool              // its number has nothing to do with those of the connection

	cut     bool     // too little was captured to decode it
	message *carried // of DDP, or nil
	within  bool     // it is of a connection that carries DDP
}

// Kind says what a segment is, in few letters.
type Kind string

// The kinds of segments (RFC 908 §4.3 to §4.7).
const (
	KindSYN       Kind = "SYN"
	KindSYNACK    Kind = "SYN,ACK"
	KindACK       Kind = "ACK"  // alone
	KindEACK      Kind = "EACK" // without data
	KindData      Kind = "data" // with or without EACKs
	KindNUL       Kind = "NUL"
	KindRST       Kind = "RST"
	KindRSTACK    Kind = "RST,ACK"
	KindMalformed Kind = "malformed"
)

// Kind says what the segment is.
func (s *Segment) Kind() Kind {
	f := s.Header.Flags
	ack := f&wire.ACK != 0
	switch {
	case s.Fault != nil || s.cut:
		return KindMalformed
	case f&wire.SYN != 0 && ack:
		return KindSYNACK
	case f&wire.SYN != 0:
		return KindSYN
	case f&wire.RST != 0 && ack:
		return KindRSTACK
	case f&wire.RST != 0:
		return KindRST
	case f&wire.NUL != 0:
		return KindNUL
	case s.Length > 0:
		return KindData
	case f&wire.EACK != 0:
		return KindEACK
	}
	return KindACK
}

// has reports whether a flag is set.
func (s *Segment) has(f wire.Flags) bool { return s.Header.Flags&f != 0 }

// numbered reports whether the segment uses its number up.
func (s *Segment) numbered() bool { return s.Header.Numbered(s.Length) }

// ported reports whether the ports of the segment were decoded.
func (s *Segment) ported() bool {
	if s.Fault == nil {
		return !s.cut
	}
	r := s.Fault.Rule()
	return r == "H4" || r == "H5" || r == "H6"
}

// maxZeros bounds what is put in the place of what was not captured.
const maxZeros = wire.MaxHeader + wire.MaxData

// decode decodes a datagram. What it returns is valid until the next one.
func (a *Analyzer) decode(d *capture.Datagram, ip bool) *Segment {
	s := &a.seg
	*s = Segment{Header: wire.Header{EACKs: s.Header.EACKs[:0]}, Raw: d.Data, Missing: d.Missing}
	if d.Missing > 0 {
		s.decodePart()
		return s
	}
	data, err := s.Header.Parse(d.Data, nil)
	if ip && s.Header.Version == 2 && isWrongChecksum(err) {
		p := wire.Pseudo{Src: d.Src.Addr(), Dst: d.Dst.Addr()}
		again := wire.Header{EACKs: s.Header.EACKs}
		if more, err2 := again.Parse(d.Data, &p); !isWrongChecksum(err2) {
			s.Header, s.Pseudo = again, true
			data, err = more, err2
		}
	}
	s.Fault, _ = errors.AsType[*wire.FormatError](err)
	s.Data, s.Length = data, len(data)
	if s.Fault != nil && s.ported() {
		s.Data = d.Data[2*int(d.Data[1]):]
		s.Length = len(s.Data)
	}
	return s
}

// decodePart decodes a segment of which not all was captured. Its checksum can't be known.
func (s *Segment) decodePart() {
	n := len(s.Raw)
	if n < wire.FixedLen || 2*int(s.Raw[1]) > n || s.Missing > maxZeros {
		s.cut = true
		return
	}
	whole := make([]byte, n+s.Missing)
	copy(whole, s.Raw)
	_, err := s.Header.Parse(whole, nil)
	s.Fault, _ = errors.AsType[*wire.FormatError](err)
	if !s.ported() {
		return
	}
	s.Data = s.Raw[2*int(s.Raw[1]):]
	s.Length = len(s.Data) + s.Missing
	if isWrongChecksum(err) {
		s.Fault, _ = errors.AsType[*wire.FormatError](s.Header.Check(s.Length))
	}
}

func isWrongChecksum(err error) bool {
	e, ok := errors.AsType[*wire.FormatError](err)
	return ok && e.Fault == wire.WrongChecksum
}
