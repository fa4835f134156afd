package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Sizes, in bytes.
const (
	// HeaderLen is the length of a header. The document gives 40; with the 16 bytes of
	// extension headers that it describes there are 48, which is what Linux sends.
	HeaderLen = 48
	// FragmentLen is how much of a message each fragment over RDMA carries, apart from the
	// last (RDS 3.1, "Fragmented messages").
	FragmentLen = 4096
	// MaxMessage is the longest message that Linux accepts.
	MaxMessage = 1 << 20
	// ExtensionLen is the space for extension headers in a header.
	ExtensionLen = 16
)

// Ports with a meaning of their own.
const (
	// PingPort is the destination of a ping, and the source of a pong.
	PingPort = 0
	// ProbePort is the source of the ping that asks a peer for its number of paths.
	ProbePort = 1
)

// Flags are the flags of a header.
type Flags uint8

// The flags that RDS 3.1 defines, and those of later kernels: the last one is of Linux since 7.0 and of
// Oracle's kernels (UEK), heartbeats are of Oracle's alone.
const (
	CongestionBitmap Flags = 1 << iota // the message is a congestion map
	AckRequired                        // the receiver sends an acknowledgement at once
	Retransmitted                      // the message was sent before, on an older connection
	HeartbeatPing                      // over RDMA: are you alive? Both ports are 0
	HeartbeatPong                      // the answer
	MoreExtensions                     // RDMA_BYTES follows RDMA
)

var flagNames = [8]string{"CONG_BITMAP", "ACK_REQUIRED", "RETRANSMITTED", "HB_PING", "HB_PONG", "EXTHDR_EXTENSION"}

// Unknown returns those flags that neither the document nor a kernel has.
func (f Flags) Unknown() Flags { return f &^ (MoreExtensions<<1 - 1) }

// String names the flags that are set.
func (f Flags) String() string {
	var names []string
	for bit, name := range flagNames {
		if name != "" && f&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	if rest := f.Unknown(); rest != 0 {
		names = append(names, fmt.Sprintf("0x%02x", uint8(rest)))
	}
	return strings.Join(names, "|")
}

// A Header precedes each message and, over RDMA, each fragment of one.
type Header struct {
	Sequence   uint64 // of the message; 0 for a congestion map and an acknowledgement alone
	Ack        uint64 // the last sequence number that the sender has received
	Len        uint32 // of the whole message, in bytes, without headers
	SourcePort uint16
	DestPort   uint16
	Flags      Flags
	Credit     uint8              // how many more Sends the receiver of this may post
	Padding    [4]byte            // zero; as received
	Checksum   uint16             // as received; AppendTo and Encode decide it themselves
	Extensions [ExtensionLen]byte // see ParseExtensions
}

// Kind is what a header stands in front of.
type Kind uint8

// The kinds of messages.
const (
	Data  Kind = iota // from a socket to a socket
	Ping              // to port 0
	Pong              // from port 0
	Map               // a congestion map
	Ack               // an acknowledgement alone
	Probe             // a ping that asks for the number of paths
)

var kindNames = [...]string{"data", "ping", "pong", "map", "ack", "probe"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Kind reports what the header stands in front of.
func (h *Header) Kind() Kind {
	switch {
	case h.Flags&CongestionBitmap != 0:
		return Map
	case h.SourcePort == 0 && h.DestPort == 0:
		return Ack
	case h.DestPort == PingPort && h.SourcePort == ProbePort:
		return Probe
	case h.DestPort == PingPort:
		return Ping
	case h.SourcePort == PingPort:
		return Pong
	}
	return Data
}

// Sequenced reports whether a message of this kind has a sequence number and is
// acknowledged. Congestion maps and acknowledgements alone have none.
func (k Kind) Sequenced() bool { return k != Map && k != Ack }

// AppendTo appends the header to b. With sum it fills the checksum, as RDS over RDMA
// wants it; without, it leaves it zero, as RDS over TCP does.
func (h *Header) AppendTo(b []byte, sum bool) []byte {
	at := len(b)
	b = append(b, make([]byte, HeaderLen)...)
	h.Encode((*[HeaderLen]byte)(b[at:]), sum)
	return b
}

// Encode writes the header into p, like AppendTo.
func (h *Header) Encode(p *[HeaderLen]byte, sum bool) {
	binary.BigEndian.PutUint64(p[0:], h.Sequence)
	binary.BigEndian.PutUint64(p[8:], h.Ack)
	binary.BigEndian.PutUint32(p[16:], h.Len)
	binary.BigEndian.PutUint16(p[20:], h.SourcePort)
	binary.BigEndian.PutUint16(p[22:], h.DestPort)
	p[24], p[25] = byte(h.Flags), h.Credit
	copy(p[26:30], h.Padding[:])
	p[30], p[31] = 0, 0
	copy(p[32:], h.Extensions[:])
	if sum {
		binary.BigEndian.PutUint16(p[30:], ^Sum(p))
	}
}

// ParseHeader decodes the header at the front of b. It returns a *FormatError if b is
// too short, if there is a checksum that does not fit, or if the message is longer than
// MaxMessage. A checksum of zero says that there is none.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, malformed(TooShort, "a header has %d bytes; there are %d", HeaderLen, len(b))
	}
	p := (*[HeaderLen]byte)(b)
	h := Header{
		Sequence:   binary.BigEndian.Uint64(p[0:]),
		Ack:        binary.BigEndian.Uint64(p[8:]),
		Len:        binary.BigEndian.Uint32(p[16:]),
		SourcePort: binary.BigEndian.Uint16(p[20:]),
		DestPort:   binary.BigEndian.Uint16(p[22:]),
		Flags:      Flags(p[24]),
		Credit:     p[25],
		Padding:    [4]byte(p[26:30]),
		Checksum:   binary.BigEndian.Uint16(p[30:]),
		Extensions: [ExtensionLen]byte(p[32:]),
	}
	if h.Checksum != 0 && Sum(p) != 0xffff {
		return h, malformed(WrongChecksum, "the checksum is 0x%04x; with it, the header sums up to 0x%04x and not to 0xffff", h.Checksum, Sum(p))
	}
	if h.Len > MaxMessage {
		return h, malformed(TooLong, "the header announces %d bytes; a message has at most %d", h.Len, MaxMessage)
	}
	return h, nil
}

// Check reports what is wrong with a header that ParseHeader has decoded, as far as one
// header alone can tell. The error is a *FormatError.
func (h *Header) Check() error {
	switch k := h.Kind(); {
	case k == Map && h.Flags != CongestionBitmap:
		return malformed(WrongMap, "a congestion map has the flags %v", h.Flags)
	case k == Map && h.Len != MapLen:
		return malformed(WrongMap, "a congestion map has %d bytes; this one announces %d", MapLen, h.Len)
	case k == Ack && h.Len != 0:
		return malformed(WrongAck, "an acknowledgement alone carries no data; this one announces %d bytes", h.Len)
	case k.Sequenced() && h.Sequence == 0:
		return malformed(NoSequence, "a message from port %d to port %d has the sequence number 0; they start at 1", h.SourcePort, h.DestPort)
	}
	_, err := ParseExtensions(h.Extensions)
	return err
}

// Sum returns the one's complement sum of a header's 16-bit words: 0xffff if its
// checksum fits.
func Sum(p *[HeaderLen]byte) uint16 {
	var s uint64
	for i := 0; i < HeaderLen; i += 8 {
		v := binary.BigEndian.Uint64(p[i:])
		s += v>>32 + v&0xffffffff
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// SameMessage reports whether two fragments are of one message. Acknowledgements, credits
// and checksums may differ from fragment to fragment.
func (h *Header) SameMessage(o *Header) bool {
	return h.Sequence == o.Sequence && h.Len == o.Len && h.SourcePort == o.SourcePort && h.DestPort == o.DestPort
}

// String shows the header in one line.
func (h *Header) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v seq=%d ack=%d len=%d %d>%d", h.Kind(), h.Sequence, h.Ack, h.Len, h.SourcePort, h.DestPort)
	if h.Flags != 0 {
		fmt.Fprintf(&s, " %v", h.Flags)
	}
	if h.Credit != 0 {
		fmt.Fprintf(&s, " credit=%d", h.Credit)
	}
	if x, err := ParseExtensions(h.Extensions); err != nil || x.Has != 0 {
		s.WriteString(" " + x.String())
	}
	return s.String()
}
