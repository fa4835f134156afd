package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The messages of DDP over RDP (docs/ddp-over-rdp.md, Messages).
const (
	messageHeaderLen = 8 // kind, three bytes of 0, number
	messageCRCLen    = 4
	offerLen         = 4 // IRD and ORD

	// MaxOfferPrivate is how many bytes of private data a message of start-up may have.
	MaxOfferPrivate = MaxPrivateData - EnhancedLen
)

// A kind says what a message is.
type kind uint8

const (
	kindRequest kind = 1 + iota
	kindAccept
	kindReject
	kindSegment
	kindEnd
)

// String names the kind.
func (k kind) String() string {
	if names := []string{"", "request", "accept", "reject", "segment", "end"}; k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ErrMessage says that a message came that is none of DDP over RDP, or stands where it may not.
var ErrMessage = errors.New("a message came that DDP over RDP does not have there")

// makeMessage returns a message, with a flaw of its CRC.
func makeMessage(k kind, number uint32, body []byte, flaw Flaw) []byte {
	b := make([]byte, messageHeaderLen, messageHeaderLen+len(body)+messageCRCLen)
	b[0] = byte(k)
	binary.BigEndian.PutUint32(b[4:], number)
	b = append(b, body...)
	crc := crc32.Checksum(b, castagnoli)
	if flaw.CRC != nil {
		crc = flaw.CRC(crc)
	}
	if flaw.BigEndian {
		b = binary.BigEndian.AppendUint32(b, crc)
	} else {
		b = binary.LittleEndian.AppendUint32(b, crc)
	}
	if flaw.FlipAfter != nil {
		flaw.FlipAfter(b)
	}
	return b
}

// A message is one that came.
type message struct {
	kind   kind
	number uint32
	body   []byte
	crc    uint32
	octets []byte
	faults []Fault
}

// parseMessage takes a message apart. What is wrong with it, but its length, is among its faults.
func parseMessage(b []byte) (message, error) {
	if len(b) < messageHeaderLen+messageCRCLen {
		return message{octets: b}, fmt.Errorf("%w: it has %d octets, where the shortest has %d", ErrMessage, len(b), messageHeaderLen+messageCRCLen)
	}
	end := len(b) - messageCRCLen
	m := message{
		kind: kind(b[0]), number: binary.BigEndian.Uint32(b[4:]), body: b[messageHeaderLen:end:end],
		crc: binary.LittleEndian.Uint32(b[end:]), octets: b,
	}
	if want := crc32.Checksum(b[:end], castagnoli); want != m.crc {
		m.faults = append(m.faults, Fault{FaultCRC, fmt.Sprintf("the CRC's octets are %x, not %x", b[end:], binary.LittleEndian.AppendUint32(nil, want))})
	}
	if b[1]|b[2]|b[3] != 0 {
		m.faults = append(m.faults, Fault{FaultHeader, fmt.Sprintf("octets 1 to 3 of the message are %x", b[1:4])})
	}
	if m.kind != kindSegment && m.kind != kindEnd && m.number != 0 {
		m.faults = append(m.faults, Fault{FaultHeader, fmt.Sprintf("the number of the %s is %d", m.kind, m.number)})
	}
	return m, nil
}

// offerOf returns the message that stands for a start-up frame: IRD and ORD of its enhanced block, or DefaultDepth of both
// without one, and the private data behind it.
func offerOf(f Frame) []byte {
	k := kindRequest
	switch {
	case f.Key == RequestKey:
	case f.Flags&FlagR != 0:
		k = kindReject
	default:
		k = kindAccept
	}
	const depth = 16 // of a frame that does not say
	e, private, ok := f.Enhanced()
	if !ok {
		e.IRD, e.ORD = depth, depth
	}
	b := binary.BigEndian.AppendUint16(nil, e.IRD)
	b = binary.BigEndian.AppendUint16(b, e.ORD)
	return makeMessage(k, 0, append(b, private...), Flaw{})
}

// frameOf returns the start-up frame that a message of start-up stands for.
func frameOf(m message) (Frame, error) {
	f := Frame{Key: ReplyKey, Rev: 2, Flags: FlagC | FlagS}
	switch m.kind {
	case kindRequest:
		f.Key = RequestKey
	case kindAccept:
	case kindReject:
		f.Flags |= FlagR
	default:
		return Frame{}, fmt.Errorf("%w: a %s in start-up", ErrMessage, m.kind)
	}
	if len(m.body) < offerLen || len(m.body) > offerLen+MaxOfferPrivate {
		return Frame{}, fmt.Errorf("%w: a %s with %d octets, where it has %d to %d", ErrMessage, m.kind, len(m.body), offerLen, offerLen+MaxOfferPrivate)
	}
	e := Enhanced{IRD: binary.BigEndian.Uint16(m.body), ORD: binary.BigEndian.Uint16(m.body[2:])}
	f.Private = append(e.Octets(), m.body[offerLen:]...)
	return f, nil
}

// describeOffer describes the message that stands for a start-up frame.
func describeOffer(f Frame) string {
	name := "request"
	switch {
	case f.Key == RequestKey:
	case f.Flags&FlagR != 0:
		name = "reject"
	default:
		name = "accept"
	}
	if e, private, ok := f.Enhanced(); ok {
		return fmt.Sprintf("%s, IRD %d, ORD %d, %d octets of private data", name, e.IRD, e.ORD, len(private))
	}
	return name
}
