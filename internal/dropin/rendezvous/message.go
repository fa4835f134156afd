package rendezvous

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A Kind says what a message is for.
type Kind uint8

// The kinds.
const (
	Ask    Kind = iota + 1 // in a Request: let the two queue pairs be connected
	Agree                  // in a Reply that accepts
	Refuse                 // in a Reply that rejects
)

// A Reason says why a request is refused.
type Reason uint16

// The reasons.
const (
	NotUnderstood Reason = iota + 1 // the private data are none of this package's
	NoSuchQP                        // there is no queue pair of that number
	NoPlace                         // too many requests wait already
	NotShown                        // no PSN that shows that it is the peer
)

var reasons = map[Reason]string{
	NotUnderstood: "the peer does not understand the request: it is another version of urnic, or none",
	NoSuchQP:      "the peer has no such queue pair",
	NoPlace:       "the peer has too many pending requests",
	NotShown:      "the peer wants the PSN that its program expects, which comes with RTS, or calls this side itself",
}

// String says the reason in words.
func (r Reason) String() string {
	if s, ok := reasons[r]; ok {
		return s
	}
	return fmt.Sprintf("reason %d", uint16(r))
}

// A Message is the private data of an MPA Request or Reply.
type Message struct {
	Kind Kind
	// From and To are the numbers of the sender's queue pair and of the receiver's.
	From, To uint32
	// PSN is the number of the first packet that the sender's program says that it
	// will send, if HasPSN. Nothing is numbered by it: the receiver's program has
	// been told the same.
	PSN    uint32
	HasPSN bool
	// RNRRetry is how often the sender's program wants its Sends sent again to a receiver that is not ready, if HasPSN;
	// MaxRNRRetry stands for no bound.
	RNRRetry uint8
	Reason   Reason // of Refuse
	// Tie decides which of two requests that cross each other is answered.
	Tie uint64
}

// The form of a message, all of it in network byte order:
//
//	0  magic "uRDV"
//	4  version, 1
//	5  kind
//	6  flags: bit 0 says that there is a PSN; the others are 0
//	8  From, 24 bits in 32
//	12 To, likewise
//	16 PSN, likewise; 0 if there is none
//	20 reason; 0 but in Refuse
//	22 0
//	23 RNRRetry, 3 bits; 0 if there is no PSN
//	24 Tie
const (
	MessageLen = 32
	// MaxRNRRetry is an RNRRetry without bound.
	MaxRNRRetry = 7

	version   = 1
	flagPSN   = 1
	maxNumber = 1<<24 - 1
)

var magic = []byte("uRDV")

// AppendBinary appends the message to b. It returns a *MessageError if a field is out
// of range.
func (m *Message) AppendBinary(b []byte) ([]byte, error) {
	if err := m.check(); err != nil {
		return b, err
	}
	var flags uint16
	if m.HasPSN {
		flags |= flagPSN
	}
	b = append(b, magic...)
	b = append(b, version, byte(m.Kind))
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint32(b, m.From)
	b = binary.BigEndian.AppendUint32(b, m.To)
	b = binary.BigEndian.AppendUint32(b, m.PSN)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Reason))
	b = append(b, 0, m.RNRRetry)
	return binary.BigEndian.AppendUint64(b, m.Tie), nil
}

// Parse reads a message, which must be all of b. It returns a *MessageError if it is
// none, or is not in the one form that it can have.
func Parse(b []byte) (m Message, err error) {
	switch {
	case len(b) < len(magic)+1 || !bytes.Equal(b[:len(magic)], magic):
		return m, &MessageError{"it has no magic: the peer is no rendezvous"}
	case b[4] != version:
		return m, &MessageError{fmt.Sprintf("version %d: this side has version %d", b[4], version)}
	case len(b) != MessageLen:
		return m, &MessageError{fmt.Sprintf("%d bytes: it must be %d", len(b), MessageLen)}
	}
	flags, zero := binary.BigEndian.Uint16(b[6:]), b[22]
	if flags&^flagPSN != 0 || zero != 0 {
		return m, &MessageError{fmt.Sprintf("flags 0x%04x, reserved 0x%02x: version 1 has none of these", flags, zero)}
	}
	m = Message{
		Kind: Kind(b[5]), From: binary.BigEndian.Uint32(b[8:]), To: binary.BigEndian.Uint32(b[12:]),
		PSN: binary.BigEndian.Uint32(b[16:]), HasPSN: flags&flagPSN != 0, RNRRetry: b[23],
		Reason: Reason(binary.BigEndian.Uint16(b[20:])), Tie: binary.BigEndian.Uint64(b[24:]),
	}
	return m, m.check()
}

func (m *Message) check() error {
	switch {
	case m.Kind < Ask || m.Kind > Refuse:
		return &MessageError{fmt.Sprintf("kind %d is not known", m.Kind)}
	case m.From > maxNumber || m.To > maxNumber || m.PSN > maxNumber:
		return &MessageError{fmt.Sprintf("queue pairs 0x%x and 0x%x, PSN 0x%x: each has 24 bits", m.From, m.To, m.PSN)}
	case !m.HasPSN && m.PSN != 0:
		return &MessageError{"a PSN that the flags do not report"}
	case m.RNRRetry > MaxRNRRetry || !m.HasPSN && m.RNRRetry != 0:
		return &MessageError{fmt.Sprintf("RNR retry %d: it has 3 bits, and comes with a PSN", m.RNRRetry)}
	case (m.Kind == Refuse) != (m.Reason != 0):
		return &MessageError{fmt.Sprintf("kind %d with reason %d", m.Kind, m.Reason)}
	}
	return nil
}

// A MessageError says what is wrong with a message.
type MessageError struct{ Problem string }

// Error says what is wrong.
func (e *MessageError) Error() string { return "rendezvous: private data: " + e.Problem }
