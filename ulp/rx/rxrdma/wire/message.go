package wire

import (
	"encoding/binary"
	"fmt"
)

// HeaderLen is how long the header of each message is, in bytes.
const HeaderLen = 16

// A Type is the type of a message.
type Type uint8

// The types.
const (
	Data      Type = iota + 1 // part Seq of a call's stream
	Placed                    // part Seq of a call's stream, which was written to the offer for it
	Offer                     // memory for part Seq of the stream that the sender reads
	Demand                    // how the sender reads: in large pieces (FlagLarge), or not
	Window                    // the sender has read all parts up to Seq
	Abort                     // the call ends with a code; of call 0: the connection
	Challenge                 // of the security class
	Response                  // its answer
	Credit                    // nothing but credits
	Ping                      // asks for a Pong
	Pong                      // the answer, with the Seq of the Ping
	Closing                   // the sender begins no more calls, or accepts none
)

var typeNames = [...]string{
	Data: "DATA", Placed: "PLACED", Offer: "OFFER", Demand: "DEMAND", Window: "WINDOW", Abort: "ABORT",
	Challenge: "CHALLENGE", Response: "RESPONSE", Credit: "CREDIT", Ping: "PING", Pong: "PONG", Closing: "CLOSING",
}

func (t Type) String() string {
	if t.Known() {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Known reports whether there is such a type.
func (t Type) Known() bool { return t >= Data && t <= Closing }

// bodies are how long the body of a message is, after its header; -1 is any length.
var bodies = [...]int{
	Data: -1, Placed: 4, Offer: 16, Demand: 0, Window: 0, Abort: 4,
	Challenge: -1, Response: -1, Credit: 0, Ping: 0, Pong: 0, Closing: 0,
}

// Flags modify a message.
type Flags uint8

// The flags.
const (
	FlagLast  Flags = 1 << iota // DATA, PLACED: the stream ends with this part
	FlagLarge                   // DEMAND: the sender reads in large pieces, and will make offers
)

// A Message is a message, without the bodies of DATA, CHALLENGE and RESPONSE.
type Message struct {
	Type     Type
	Flags    Flags
	Credits  uint16 // receives that the sender has posted since its last message
	Channel  uint8
	Checksum uint16 // DATA, PLACED: of the security class
	Call     uint32 // 0: of the connection
	Seq      uint32 // of a part of a stream, from 1

	Length uint32 // PLACED: bytes that were written; OFFER: bytes that there are
	STag   uint32 // OFFER
	TO     uint64 // OFFER
	Code   int32  // ABORT
}

// MaxFixed is the length of the longest message that has no body of any length.
const MaxFixed = HeaderLen + 16

// Put encodes the message, without a body of any length, to the beginning of b, which has
// room for MaxFixed bytes, or for HeaderLen if the type has no other fields. It returns how
// long it is.
func (m *Message) Put(b []byte) int {
	_ = b[HeaderLen-1]
	b[0], b[1] = byte(m.Type), byte(m.Flags)
	binary.BigEndian.PutUint16(b[2:], m.Credits)
	b[4], b[5] = m.Channel, 0
	binary.BigEndian.PutUint16(b[6:], m.Checksum)
	binary.BigEndian.PutUint32(b[8:], m.Call)
	binary.BigEndian.PutUint32(b[12:], m.Seq)
	switch m.Type {
	case Placed:
		binary.BigEndian.PutUint32(b[16:], m.Length)
		return HeaderLen + 4
	case Offer:
		binary.BigEndian.PutUint32(b[16:], m.STag)
		binary.BigEndian.PutUint32(b[20:], m.Length)
		binary.BigEndian.PutUint64(b[24:], m.TO)
		return HeaderLen + 16
	case Abort:
		binary.BigEndian.PutUint32(b[16:], uint32(m.Code))
		return HeaderLen + 4
	default:
		return HeaderLen
	}
}

// Parse decodes a message. body is what follows the header of DATA, CHALLENGE and RESPONSE.
// It returns a [*FormatError].
func Parse(b []byte) (m Message, body []byte, err error) {
	if len(b) < HeaderLen {
		return m, nil, &FormatError{What: "message", Fault: TooShort, Value: len(b)}
	}
	m = Message{
		Type:     Type(b[0]),
		Flags:    Flags(b[1]),
		Credits:  binary.BigEndian.Uint16(b[2:]),
		Channel:  b[4],
		Checksum: binary.BigEndian.Uint16(b[6:]),
		Call:     binary.BigEndian.Uint32(b[8:]),
		Seq:      binary.BigEndian.Uint32(b[12:]),
	}
	body = b[HeaderLen:]
	if !m.Type.Known() {
		return m, nil, &FormatError{What: "message", Fault: WrongType, Value: int(m.Type)}
	}
	want := bodies[m.Type]
	if want < 0 {
		return m, body, nil
	}
	if len(body) != want {
		fault := TooShort
		if len(body) > want {
			fault = TooLong
		}
		return m, nil, &FormatError{What: m.Type.String(), Fault: fault, Value: len(b)}
	}
	switch m.Type {
	case Placed:
		m.Length = binary.BigEndian.Uint32(body)
	case Offer:
		m.STag = binary.BigEndian.Uint32(body)
		m.Length = binary.BigEndian.Uint32(body[4:])
		m.TO = binary.BigEndian.Uint64(body[8:])
	case Abort:
		m.Code = int32(binary.BigEndian.Uint32(body))
	default:
	}
	return m, nil, nil
}

// String shows the message on one line.
func (m *Message) String() string {
	s := m.Type.String()
	if m.Call != 0 || m.Type <= Window {
		s += fmt.Sprintf(" call=%d/%d", m.Call, m.Channel)
	}
	switch m.Type {
	case Data, Window, Ping, Pong:
		s += fmt.Sprintf(" seq=%d", m.Seq)
	case Placed:
		s += fmt.Sprintf(" seq=%d length=%d", m.Seq, m.Length)
	case Offer:
		s += fmt.Sprintf(" seq=%d stag=%#08x length=%d to=%#x", m.Seq, m.STag, m.Length, m.TO)
	case Abort:
		s += fmt.Sprintf(" code=%d", m.Code)
	default:
	}
	if m.Flags&FlagLast != 0 {
		s += " LAST"
	}
	if m.Flags&FlagLarge != 0 {
		s += " LARGE"
	}
	if m.Credits != 0 {
		s += fmt.Sprintf(" credits=%d", m.Credits)
	}
	return s
}
