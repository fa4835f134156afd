package datagram

import (
	"encoding/binary"
	"errors"

	"urnic/internal/host/crc32c"
)

// An Op says what a datagram is for.
type Op uint8

// The operations.
const (
	Send    Op = iota + 1 // a message of a UD queue pair, or a part of one
	UCSend                // the same of a UC queue pair
	Ack                   // there is room for more: see Flow
	UCWrite               // an RDMA Write of a UC queue pair, or a part of one
)

// Flags are what goes with a message, and what is asked of its receiver.
type Flags uint16

// The flags. The first two are the same in all fragments of a message.
const (
	Immediate Flags = 1 << iota // Imm is there
	Solicited                   // its completion is solicited
	AskAck                      // an Ack is wanted once there is room for more

	knownFlags = Immediate | Solicited | AskAck
)

// A Header precedes the payload in each UDP datagram.
type Header struct {
	Op    Op
	Flags Flags
	// Dest and Source are the numbers of the queue pairs, 24 bits. Dest is
	// Multicast in what goes to a group.
	Dest, Source uint32
	// Key is the Q_Key of a Send. In a UCSend and a UCWrite it is the PSN that the sender's program
	// has set with RTS, by which nothing is numbered.
	Key uint32
	Imm [4]byte // immediate data, as the program has them in memory
	// Sequence counts the datagrams that the sender's process has sent to this one,
	// from 1 on. The fragments of a message have successive ones. In an Ack, it is that
	// of the datagram that has asked for it.
	Sequence uint32
	// Length is that of the whole message, and Offset that of the payload in it. In an Ack,
	// Length is how many messages there are receives for, at least one.
	Length, Offset uint32
	// Address and RKey are where the message of a UCWrite goes, in all of its fragments.
	Address uint64
	RKey    uint32
}

// The form of a header, all of it in network byte order:
//
//	0  magic "uRDG"
//	4  version, 1
//	5  operation
//	6  flags
//	8  Dest, 24 bits in 32
//	12 Source, likewise
//	16 Key
//	20 immediate data, or 0
//	24 Sequence
//	28 Length
//	32 Offset
//	36 CRC32c of all that precedes and of the payload
//	40 Address, 64 bits, and RKey, of a UCWrite only; its payload is behind them
const (
	HeaderLen = 40
	// WriteLen is how much longer the header of a UCWrite is.
	WriteLen = 12
	crcAt    = 36

	version = 1
)

const (
	// MTU is the length of the longest message of a UD queue pair.
	MTU = 4096
	// MaxMessage is that of a UC queue pair.
	MaxMessage = 1 << 31
	// MaxPayload is the most that one UDP datagram carries.
	MaxPayload = 32 << 10
	// Multicast is the number of the queue pair that messages to a group name.
	Multicast = 1<<24 - 1

	maxNumber = 1<<24 - 1
)

const magic = 'u'<<24 | 'R'<<16 | 'D'<<8 | 'G'

// ErrMalformed says that a UDP datagram is none of this package's, or breaks its rules.
var ErrMalformed = errors.New("datagram: no header that this version understands")

// Len returns the length of a header.
func (h *Header) Len() int {
	if h.Op == UCWrite {
		return HeaderLen + WriteLen
	}
	return HeaderLen
}

// OfUC reports whether it is a message of a UC queue pair.
func (h *Header) OfUC() bool { return h.Op == UCSend || h.Op == UCWrite }

// TakesReceive reports whether the message takes a receive.
func (h *Header) TakesReceive() bool {
	return h.Op == Send || h.Op == UCSend || h.Op == UCWrite && h.Flags&Immediate != 0
}

// Put writes a header into the first Len bytes of b, and then the CRC of all of b. The
// payload is there already.
func (h *Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	binary.BigEndian.PutUint32(b, magic)
	b[4], b[5] = version, byte(h.Op)
	binary.BigEndian.PutUint16(b[6:], uint16(h.Flags))
	binary.BigEndian.PutUint32(b[8:], h.Dest)
	binary.BigEndian.PutUint32(b[12:], h.Source)
	binary.BigEndian.PutUint32(b[16:], h.Key)
	copy(b[20:24], h.Imm[:])
	binary.BigEndian.PutUint32(b[24:], h.Sequence)
	binary.BigEndian.PutUint32(b[28:], h.Length)
	binary.BigEndian.PutUint32(b[32:], h.Offset)
	if h.Op == UCWrite {
		binary.BigEndian.PutUint64(b[HeaderLen:], h.Address)
		binary.BigEndian.PutUint32(b[HeaderLen+8:], h.RKey)
	}
	binary.BigEndian.PutUint32(b[crcAt:], sum(b))
}

func sum(b []byte) uint32 {
	return crc32c.Update(crc32c.Update(0, b[:crcAt]), b[HeaderLen:])
}

// Parse reads the header of a UDP datagram, and returns the payload, which is a part
// of b. It does not look at the CRC: see Intact. The error is ErrMalformed.
func Parse(b []byte) (h Header, payload []byte, err error) {
	if len(b) < HeaderLen || binary.BigEndian.Uint32(b) != magic || b[4] != version {
		return h, nil, ErrMalformed
	}
	h = Header{
		Op: Op(b[5]), Flags: Flags(binary.BigEndian.Uint16(b[6:])),
		Dest: binary.BigEndian.Uint32(b[8:]), Source: binary.BigEndian.Uint32(b[12:]), Key: binary.BigEndian.Uint32(b[16:]),
		Imm:      [4]byte(b[20:24]),
		Sequence: binary.BigEndian.Uint32(b[24:]), Length: binary.BigEndian.Uint32(b[28:]), Offset: binary.BigEndian.Uint32(b[32:]),
	}
	payload = b[HeaderLen:]
	if h.Op == UCWrite {
		if len(payload) < WriteLen {
			return Header{}, nil, ErrMalformed
		}
		h.Address, h.RKey = binary.BigEndian.Uint64(payload), binary.BigEndian.Uint32(payload[8:])
		payload = payload[WriteLen:]
	}
	if !h.valid(uint32(min(len(payload), MaxPayload+1))) {
		return Header{}, nil, ErrMalformed
	}
	return h, payload, nil
}

// valid reports whether a header goes with a payload of n bytes.
func (h *Header) valid(n uint32) bool {
	most := uint32(MTU)
	switch h.Op {
	case Send:
	case UCSend, UCWrite:
		most = MaxMessage
	case Ack:
		return *h == Header{Op: Ack, Sequence: h.Sequence, Length: h.Length} && n == 0
	default:
		return false
	}
	switch {
	case h.Flags&^knownFlags != 0, h.Flags&Immediate == 0 && h.Imm != [4]byte{}:
		return false
	case h.Dest > maxNumber, h.Source > maxNumber, h.OfUC() && h.Key > maxNumber:
		return false
	case h.Length > most, n > MaxPayload, n > h.Length, h.Offset > h.Length-n:
		return false
	}
	return n > 0 || h.Length == 0 // an empty fragment would be of no use
}

// Intact reports whether a UDP datagram that Parse takes is as it was sent.
func Intact(b []byte) bool {
	return len(b) >= HeaderLen && binary.BigEndian.Uint32(b[crcAt:]) == sum(b)
}

// Whole reports whether a payload of n bytes is all of its message.
func (h *Header) Whole(n int) bool { return uint32(n) == h.Length }
