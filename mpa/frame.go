package mpa

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	// FrameHeaderLen is the length of a Request or Reply Frame without its
	// Private Data.
	FrameHeaderLen = 20
	// MaxPrivateData is the maximum of Private Data in one frame, in bytes. The
	// enhanced block takes EnhancedLen of them (RFC 6581 §9).
	MaxPrivateData = 512

	keyLen     = 16
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"

	flagMarkers  = 0x80 // M
	flagCRC      = 0x40 // C
	flagRejected = 0x20 // R
	flagEnhanced = 0x10 // S in revision 2, reserved in revision 1
	reservedBits = 0x0F
)

// The revisions of MPA that this package speaks.
const (
	Revision1 uint8 = 1 // RFC 5044
	Revision2 uint8 = 2 // RFC 6581
)

// A Frame is an MPA Request Frame or MPA Reply Frame (RFC 5044 §7.1.1, RFC 6581
// §6). It is sent as plain TCP bytes: no markers, no CRC, no pad.
type Frame struct {
	Reply    bool  // Reply Frame; else Request Frame
	Markers  bool  // M: the sender wants markers in the FPDUs that it receives
	CRC      bool  // C: the sender prefers CRCs
	Rejected bool  // R: the Responder rejects the connection (Reply only)
	Enhanced bool  // S: PrivateData begins with the enhanced block (revision 2)
	Reserved uint8 // the reserved bits as received; not checked, sent as zero
	Revision uint8

	// PrivateData is the whole Private Data field, the enhanced block included,
	// 0 to MaxPrivateData bytes.
	PrivateData []byte
}

// Len returns the length of f on the wire in bytes.
func (f *Frame) Len() int { return FrameHeaderLen + len(f.PrivateData) }

// AppendBinary appends the wire form of f to b. It fails if PrivateData is
// longer than MaxPrivateData.
func (f *Frame) AppendBinary(b []byte) ([]byte, error) {
	if len(f.PrivateData) > MaxPrivateData {
		return b, fmt.Errorf("mpa: %d octets of private data; at most %d fit into a frame", len(f.PrivateData), MaxPrivateData)
	}
	key := requestKey
	if f.Reply {
		key = replyKey
	}
	b = append(b, key...)                                            // Key (128)
	b = append(b, f.flags())                                         // M(1) C(1) R(1) S(1) Res(4)
	b = append(b, f.Revision)                                        // Rev (8)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.PrivateData))) // PD_Length (16)
	return append(b, f.PrivateData...), nil                          // Private Data
}

func (f *Frame) flags() byte {
	flags := f.Reserved
	if f.Revision < Revision2 {
		flags &= reservedBits | flagEnhanced
	} else {
		flags &= reservedBits
		if f.Enhanced {
			flags |= flagEnhanced
		}
	}
	if f.Markers {
		flags |= flagMarkers
	}
	if f.CRC {
		flags |= flagCRC
	}
	if f.Rejected {
		flags |= flagRejected
	}
	return flags
}

// ParseFrame decodes the Request or Reply Frame at the front of b and returns
// its length in bytes. The frame's PrivateData aliases b.
//
// It returns ErrIncomplete while b is a proper prefix of a frame, and an
// *Error with CodeStartup as soon as b can't become one: wrong Key, or a
// PD_Length over MaxPrivateData (RFC 5044 §7.1.2 rules 5 and 9).
func ParseFrame(b []byte) (f Frame, n int, err error) {
	reply, err := parseKey(b)
	if err != nil {
		return Frame{}, 0, err
	}
	if len(b) < FrameHeaderLen {
		return Frame{}, 0, ErrIncomplete
	}
	flags, rev := b[16], b[17]
	f = Frame{
		Reply:    reply,
		Markers:  flags&flagMarkers != 0,
		CRC:      flags&flagCRC != 0,
		Rejected: flags&flagRejected != 0,
		Reserved: flags & reservedBits,
		Revision: rev,
	}
	if rev >= Revision2 {
		f.Enhanced = flags&flagEnhanced != 0
	} else {
		f.Reserved |= flags & flagEnhanced
	}
	pd := int(binary.BigEndian.Uint16(b[18:]))
	if pd > MaxPrivateData {
		return Frame{}, 0, startupError("RFC 5044 §7.1.1", "PD_Length is %d; at most %d octets of private data are allowed", pd, MaxPrivateData)
	}
	if len(b) < FrameHeaderLen+pd {
		return Frame{}, 0, ErrIncomplete
	}
	f.PrivateData = b[FrameHeaderLen : FrameHeaderLen+pd : FrameHeaderLen+pd]
	return f, FrameHeaderLen + pd, nil
}

// parseKey reports whether a Key is a Reply's or a Request's. The two differ
// only in their tenth byte, so a short b may fit both.
func parseKey(b []byte) (reply bool, err error) {
	head := string(b[:min(len(b), keyLen)])
	switch {
	case head == requestKey:
		return false, nil
	case head == replyKey:
		return true, nil
	case head == requestKey[:len(head)], head == replyKey[:len(head)]:
		return false, ErrIncomplete
	}
	return false, startupError("RFC 5044 §7.1.2", "the Key is %q, neither %q nor %q: the peer does not speak MPA", head, requestKey, replyKey)
}

// ULPData returns the part of the Private Data that belongs to the ULP: all of
// it, or, in an enhanced frame, what follows the enhanced block.
func (f *Frame) ULPData() []byte {
	if f.Enhanced && len(f.PrivateData) >= EnhancedLen {
		return f.PrivateData[EnhancedLen:]
	}
	return f.PrivateData
}

// String shows the frame in one line.
func (f *Frame) String() string {
	name := "MPA Request"
	if f.Reply {
		name = "MPA Reply"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s rev=%d", name, f.Revision)
	for _, flag := range []struct {
		set  bool
		name string
	}{{f.Markers, " M"}, {f.CRC, " C"}, {f.Rejected, " R"}, {f.Enhanced, " S"}} {
		if flag.set {
			s.WriteString(flag.name)
		}
	}
	if f.Enhanced {
		if e, err := ParseEnhanced(f.PrivateData); err == nil {
			s.WriteString(" " + e.String())
		}
	}
	return fmt.Sprintf("%s pd=%d", s.String(), len(f.ULPData()))
}
