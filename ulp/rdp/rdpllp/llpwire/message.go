package llpwire

import (
	"encoding/binary"
	"fmt"

	"urnic/internal/host/crc32c"
	"urnic/mpa"
)

// Port is the RDP port of DDP, one of those that both versions have.
const Port = 50

// A Kind says what a message is: its first byte.
type Kind uint8

// The kinds of messages.
const (
	Request Kind = 1 + iota // the initiator's offer
	Accept                  // the answer to it, with the responder's
	Reject                  // the other answer
	Segment                 // of DDP
	End                     // of what its sender sends
	numKinds
)

// String returns the name of the kind.
func (k Kind) String() string {
	if k == 0 || k >= numKinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return [...]string{"", "request", "accept", "reject", "segment", "end"}[k]
}

// A message begins with a header: its kind, three bytes that are zero, and its number.
//
// A segment's number counts the segments of its direction from 0, modulo 2^32; that of an end is how many there were. RDP's
// own numbers do not serve for that: NULs and SYNs have some as well. Others have the number 0.
const (
	HeaderLen  = 8
	TrailerLen = 4 // CRC32c of all before it, as in MPA: the least significant byte first
	Overhead   = HeaderLen + TrailerLen
)

// PutHeader puts a header at the beginning of b, which has at least HeaderLen bytes.
func PutHeader(b []byte, k Kind, number uint32) {
	b[0], b[1], b[2], b[3] = byte(k), 0, 0, 0
	binary.BigEndian.PutUint32(b[4:], number)
}

// Seal appends the checksum of a message.
func Seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32c.Update(0, b))
}

// Parse decodes a message. The body is a part of b. The error is a *mpa.Error with CodeCRC if the message is damaged, and one
// with CodeStartup if it is none of DDP over RDP.
func Parse(b []byte) (k Kind, number uint32, body []byte, err error) {
	if len(b) < Overhead {
		return 0, 0, nil, malformed("a message has %d bytes; the shortest has %d", len(b), Overhead)
	}
	whole := b[:len(b)-TrailerLen]
	if want, got := crc32c.Update(0, whole), binary.LittleEndian.Uint32(b[len(whole):]); want != got {
		return 0, 0, nil, &mpa.Error{Code: mpa.CodeCRC, Reason: fmt.Sprintf("the CRC32c of a message is %#08x; it says %#08x", want, got)}
	}
	k, number, body = Peek(b)
	if k == 0 {
		return 0, 0, nil, malformed("a message begins with %x", b[:4])
	}
	return k, number, body, nil
}

// Peek decodes a message without its checksum. The kind is 0 if it is none of DDP over RDP.
func Peek(b []byte) (k Kind, number uint32, body []byte) {
	if len(b) < Overhead {
		return 0, 0, nil
	}
	k = Kind(b[0])
	if k >= numKinds || b[1]|b[2]|b[3] != 0 {
		return 0, 0, nil
	}
	return k, binary.BigEndian.Uint32(b[4:]), b[HeaderLen : len(b)-TrailerLen]
}

func malformed(format string, args ...any) error {
	return &mpa.Error{Code: mpa.CodeStartup, Reason: fmt.Sprintf(format, args...)}
}
