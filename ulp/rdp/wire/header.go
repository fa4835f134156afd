package wire

// Sizes, in bytes unless another unit is named.
const (
	// FixedLen is the length of a header without its variable area (RFC 908 §4.2,
	// RFC 1151 p.2).
	FixedLen = 18
	// SYNLen is the length of the header of a SYN (RFC 908 §4.3).
	SYNLen = FixedLen + 6
	// MaxEACKs is how many numbers one EACK can list: the header's length is at most 255
	// units of 2 bytes.
	MaxEACKs = (255 - FixedLen/2) / 2
	// MaxHeader is the length of the longest header.
	MaxHeader = FixedLen + eackLen*MaxEACKs
	// MaxData is how much data one segment can carry.
	MaxData = 1<<16 - 1
	// IPLen is what the maximum segment size of a SYN counts for the header of IP, whatever
	// carries RDP (RFC 908 §4.3.2).
	IPLen = 20
	// MinSegment is the smallest maximum segment size that leaves room for a byte of data.
	MinSegment = IPLen + FixedLen + 1

	eackLen = 4
)

// Numbers by which other protocols know RDP.
const (
	// Protocol is RDP's number in the header of IP.
	Protocol = 27
	// UDPPort is the UDP port at which a passive side listens, unless it is set to another one.
	// It is not registered.
	UDPPort = 10908
)

// A Header is the header of a segment, of either version.
type Header struct {
	Version        uint8 // 1 or 2
	Flags          Flags
	Source, Dest   uint16 // ports of RDP; at most 255 in version 1
	Seq            uint32
	Ack            uint32   // the last number received in sequence, if Flags has ACK
	MaxOutstanding uint16   // of a SYN: how many segments its sender may be sent unacknowledged
	MaxSegment     uint16   // of a SYN: the largest segment that its sender takes, in bytes of IP, header and data
	Sequenced      bool     // of a SYN: its sender wants data in the order of their numbers (SDM)
	EACKs          []uint32 // of an EACK: numbers received out of sequence, at most MaxEACKs
}

// The bit of a SYN's options that asks for sequenced delivery. RFC 908 §4.3.2 calls it bit 0,
// and numbers bits from the left, as it does for the flags. Other bits have no meaning.
const optionSequenced = 1 << 15

// Len is the length of the encoded header, in bytes.
func (h *Header) Len() int {
	switch {
	case h.Flags&SYN != 0:
		return SYNLen
	case h.Flags&EACK != 0:
		return FixedLen + eackLen*len(h.EACKs)
	}
	return FixedLen
}

// Numbered reports whether a segment with this header and n bytes of data uses up its sequence
// number, and so is acknowledged and sent again: SYN, NUL and data do. Others carry the number
// that the next of these will have (RFC 908 §3.4.1, §4.4).
func (h *Header) Numbered(n int) bool { return h.Flags&(SYN|NUL) != 0 || n > 0 }

// EACKRoom returns how many numbers an EACK can list, besides n bytes of data, in a segment that
// counts at most maxSegment bytes: no more than MaxEACKs, and 0 if there is no room.
func EACKRoom(maxSegment uint16, n int) int {
	return min(MaxEACKs, max(0, int(maxSegment)-IPLen-FixedLen-max(0, n))/eackLen)
}

// DataRoom returns how many bytes of data fit into a segment that counts at most maxSegment
// bytes, besides a list of n EACKs. It is 0 if there is no room.
func DataRoom(maxSegment uint16, n int) int {
	return max(0, int(maxSegment)-IPLen-FixedLen-eackLen*max(0, n))
}

// Less reports whether the sequence number a is before b, where numbers wrap.
func Less(a, b uint32) bool { return int32(a-b) < 0 }

// Diff returns how far the sequence number a is after b; it is negative if a is before b. Numbers
// that are 2^31 apart are before each other.
func Diff(a, b uint32) int32 { return int32(a - b) }
