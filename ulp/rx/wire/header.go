package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Sizes, in bytes unless another unit is named.
const (
	// HeaderLen is the length of a header (draft §9.1).
	HeaderLen = 28
	// JumboBody is the length of the body of every packet of a jumbogram but the last
	// (draft §7).
	JumboBody = 1412
	// JumboHeaderLen is the length of the short header between the packets of a jumbogram
	// (draft §7).
	JumboHeaderLen = 4
	// Channels is how many calls a connection carries at a time (draft §3).
	Channels = 4
	// DefaultPacket is the largest packet, header included, for a peer that has announced
	// no sizes (draft §5).
	DefaultPacket = 1444
	// MaxAcks is the number of packets that one acknowledgement can list (draft §5).
	MaxAcks = 255

	channelMask = Channels - 1
)

// HighBit is the bit of an epoch that says: a packet of this connection may come from any
// address and port (draft §3).
const HighBit uint32 = 1 << 31

// A Header stands in front of each packet (draft §9.1).
type Header struct {
	Epoch      uint32 // of the client: when it started, or a random number
	CID        uint32 // connection ID; the channel is in the low two bits
	Call       uint32 // on its channel; 0 if the packet is about the connection
	Seq        uint32 // of a data packet, from 1; else 0
	Serial     uint32 // of all packets of the connection in this direction, from 1
	Type       Type
	Flags      Flags
	UserStatus uint8  // not the protocol's; 1 in a client's first packet asks for a service upgrade
	Security   uint8  // security index
	Checksum   uint16 // for the security class, in data packets; stale in others
	Service    uint16 // of the connection, as its first packet has it
}

// ParseHeader decodes the header at the front of b. It returns a *ShortError if b is too
// short, and no other error.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, &ShortError{What: "header", Have: len(b), Want: HeaderLen}
	}
	p := (*[HeaderLen]byte)(b)
	return Header{
		Epoch:      binary.BigEndian.Uint32(p[0:]),
		CID:        binary.BigEndian.Uint32(p[4:]),
		Call:       binary.BigEndian.Uint32(p[8:]),
		Seq:        binary.BigEndian.Uint32(p[12:]),
		Serial:     binary.BigEndian.Uint32(p[16:]),
		Type:       Type(p[20]),
		Flags:      Flags(p[21]),
		UserStatus: p[22],
		Security:   p[23],
		Checksum:   binary.BigEndian.Uint16(p[24:]),
		Service:    binary.BigEndian.Uint16(p[26:]),
	}, nil
}

// Put writes the header to the front of b. If b has fewer than HeaderLen bytes, Put writes
// nothing.
func (h *Header) Put(b []byte) {
	if len(b) < HeaderLen {
		return
	}
	p := (*[HeaderLen]byte)(b)
	binary.BigEndian.PutUint32(p[0:], h.Epoch)
	binary.BigEndian.PutUint32(p[4:], h.CID)
	binary.BigEndian.PutUint32(p[8:], h.Call)
	binary.BigEndian.PutUint32(p[12:], h.Seq)
	binary.BigEndian.PutUint32(p[16:], h.Serial)
	p[20], p[21], p[22], p[23] = byte(h.Type), byte(h.Flags), h.UserStatus, h.Security
	binary.BigEndian.PutUint16(p[24:], h.Checksum)
	binary.BigEndian.PutUint16(p[26:], h.Service)
}

// Append appends the header to b.
func (h *Header) Append(b []byte) []byte {
	var p [HeaderLen]byte
	h.Put(p[:])
	return append(b, p[:]...)
}

// Channel is the channel of the connection, 0 to 3.
func (h *Header) Channel() uint8 { return uint8(h.CID & channelMask) }

// ConnID is the connection ID with the channel's bits zero.
func (h *Header) ConnID() uint32 { return h.CID &^ channelMask }

// FromClient reports whether the sender is the client of the connection, or asks, in a
// debug or version packet.
func (h *Header) FromClient() bool { return h.Flags&FlagClient != 0 }

// AnyAddress reports whether the packet's connection is known by epoch and connection ID
// alone, and not by address and port too (draft §3).
func (h *Header) AnyAddress() bool { return h.Epoch&HighBit != 0 }

// String shows the header in one line.
func (h *Header) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v epoch=%08x cid=%08x/%d call=%d", h.Type, h.Epoch, h.ConnID(), h.Channel(), h.Call)
	if h.Seq != 0 || h.Type == TypeData {
		fmt.Fprintf(&s, " seq=%d", h.Seq)
	}
	fmt.Fprintf(&s, " serial=%d", h.Serial)
	if h.Flags != 0 {
		fmt.Fprintf(&s, " %s", h.Flags.Names(h.Type))
	}
	if h.UserStatus != 0 {
		fmt.Fprintf(&s, " status=%d", h.UserStatus)
	}
	fmt.Fprintf(&s, " security=%d", h.Security)
	if h.Checksum != 0 {
		fmt.Fprintf(&s, " checksum=%04x", h.Checksum)
	}
	fmt.Fprintf(&s, " service=%d", h.Service)
	return s.String()
}
