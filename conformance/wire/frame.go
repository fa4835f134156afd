package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The keys of start-up frames (RFC 5044 §7.1.1).
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Flags of start-up frames.
const (
	FlagM    = 0x80 // the frame's sender wants markers (RFC 5044 §7.1.1)
	FlagC    = 0x40 // it wants CRCs
	FlagR    = 0x20 // of a Reply: it rejects
	FlagS    = 0x10 // of revision 2: the private data begin with an Enhanced block (RFC 6581 §6)
	Reserved = 0x0F // what is left
)

// FrameLen is the length of a start-up frame without private data, and
// MaxPrivateData how many of those it may have, in bytes.
const (
	FrameLen       = 20
	MaxPrivateData = 512
)

// A Frame is a start-up frame (RFC 5044 §7.1.1). Bytes writes down whatever it
// is given, right or wrong.
type Frame struct {
	Key     string
	Flags   uint8
	Rev     uint8
	Length  int // PD_Length if it isn't len(Private); negative stands for 0
	Private []byte
}

// PDLength returns what stands in the field PD_Length.
func (f Frame) PDLength() int {
	switch {
	case f.Length < 0:
		return 0
	case f.Length > 0:
		return f.Length
	}
	return len(f.Private)
}

// Octets returns the frame as it stands on the wire.
func (f Frame) Octets() []byte {
	b := append(make([]byte, 0, FrameLen+len(f.Private)), f.Key...)
	b = append(b, f.Flags, f.Rev)
	b = binary.BigEndian.AppendUint16(b, uint16(f.PDLength()))
	return append(b, f.Private...)
}

// parseFrameHeader takes the first FrameLen bytes of a frame apart.
func parseFrameHeader(b []byte) Frame {
	f := Frame{Key: string(b[:16]), Flags: b[16], Rev: b[17]}
	f.Length = int(binary.BigEndian.Uint16(b[18:20]))
	return f
}

// Enhanced returns the block at the beginning of the private data, and the data
// behind it. It reports false if the frame has none.
func (f Frame) Enhanced() (e Enhanced, ulp []byte, ok bool) {
	if f.Flags&FlagS == 0 || f.Rev < 2 || len(f.Private) < EnhancedLen {
		return Enhanced{}, f.Private, false
	}
	return parseEnhanced(f.Private), f.Private[EnhancedLen:], true
}

// String describes the frame in a line.
func (f Frame) String() string {
	name := fmt.Sprintf("frame with key %q", f.Key)
	switch f.Key {
	case RequestKey:
		name = "MPA Request"
	case ReplyKey:
		name = "MPA Reply"
	}
	var flags []string
	for bit, c := range map[uint8]string{FlagM: "M", FlagC: "C", FlagR: "R", FlagS: "S"} {
		if f.Flags&bit != 0 {
			flags = append(flags, c)
		}
	}
	s := fmt.Sprintf("%s, revision %d, flags 0x%02x", name, f.Rev, f.Flags)
	if len(flags) > 0 {
		s += " (" + orderFlags(flags) + ")"
	}
	if e, ulp, ok := f.Enhanced(); ok {
		return fmt.Sprintf("%s, %s, %d octets of private data", s, e, len(ulp))
	}
	return fmt.Sprintf("%s, PD_Length %d", s, f.PDLength())
}

func orderFlags(flags []string) string {
	var out []string
	for _, c := range []string{"M", "C", "R", "S"} {
		for _, f := range flags {
			if f == c {
				out = append(out, c)
			}
		}
	}
	return strings.Join(out, " ")
}

// EnhancedLen is the length of an Enhanced block in bytes.
const EnhancedLen = 4

// NoDepth instead of an IRD or ORD leaves it to the ULP (RFC 6581 §9.1).
const NoDepth = 0x3FFF

// Enhanced is the block that enhanced private data begin with (RFC 6581 §9).
type Enhanced struct {
	PeerToPeer bool // A
	RTRSend    bool // B: zero-length FPDU
	RTRWrite   bool // C: zero-length RDMA Write
	RTRRead    bool // D: zero-length RDMA Read
	IRD, ORD   uint16
}

// Octets returns the block as it stands on the wire.
func (e Enhanced) Octets() []byte {
	bit := func(set bool, mask uint16) uint16 {
		if set {
			return mask
		}
		return 0
	}
	b := binary.BigEndian.AppendUint16(nil, e.IRD&NoDepth|bit(e.PeerToPeer, 0x8000)|bit(e.RTRSend, 0x4000))
	return binary.BigEndian.AppendUint16(b, e.ORD&NoDepth|bit(e.RTRWrite, 0x8000)|bit(e.RTRRead, 0x4000))
}

func parseEnhanced(b []byte) Enhanced {
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return Enhanced{
		PeerToPeer: ird&0x8000 != 0, RTRSend: ird&0x4000 != 0,
		RTRWrite: ord&0x8000 != 0, RTRRead: ord&0x4000 != 0,
		IRD: ird & NoDepth, ORD: ord & NoDepth,
	}
}

// String describes the block.
func (e Enhanced) String() string {
	s := fmt.Sprintf("IRD %d, ORD %d", e.IRD, e.ORD)
	if !e.PeerToPeer && !e.RTRSend && !e.RTRWrite && !e.RTRRead {
		return s
	}
	var kinds []string
	for _, k := range []struct {
		set  bool
		name string
	}{{e.RTRSend, "Send"}, {e.RTRWrite, "Write"}, {e.RTRRead, "Read"}} {
		if k.set {
			kinds = append(kinds, k.name)
		}
	}
	if e.PeerToPeer {
		s += ", peer-to-peer"
	}
	return s + ", RTR by " + strings.Join(append(kinds, "nothing else"), ", ")
}
