package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	ackFixed    = 18 // up to and including the number of entries
	ackReserved = 3  // between the entries and the trailer
	word        = 4
)

// A Reason says why an acknowledgement was sent (draft §5, §9.2).
type Reason uint8

// The reasons.
const (
	ReasonRequested     Reason = 1 + iota // a data packet asked for it
	ReasonDuplicate                       // a packet came again
	ReasonOutOfSequence                   // a packet came, and one before it is missing
	ReasonExceedsWindow                   // a packet beyond the receive window was dropped
	ReasonNoSpace                         // a packet was dropped for want of buffers
	ReasonPing                            // to see whether the peer is alive
	ReasonPingResponse                    // answers a ping
	ReasonDelay                           // some time after the packet; no sample of a round trip
	ReasonIdle                            // at once, for no other reason; OTHER in the draft
)

var reasonNames = [...]string{
	ReasonRequested: "requested", ReasonDuplicate: "duplicate", ReasonOutOfSequence: "out-of-sequence",
	ReasonExceedsWindow: "exceeds-window", ReasonNoSpace: "no-space", ReasonPing: "ping",
	ReasonPingResponse: "ping-response", ReasonDelay: "delay", ReasonIdle: "idle",
}

func (r Reason) String() string {
	if ReasonRequested <= r && r <= ReasonIdle {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// An Ack is the body of an acknowledgement (draft §9.2):
//
//	0              2          4       8          12       16       17      18
//	+--------------+----------+-------+----------+--------+--------+-------+------+----------+---------+---------+
//	| buffer space | max skew | first | previous | serial | reason | count | acks | reserved | trailer | padding |
//	+--------------+----------+-------+----------+--------+--------+-------+------+----------+---------+---------+
//	                                                                        count       3      0 to 16
//
// Packets below First have been read by the peer's application: the sender may forget
// them. Acks tells about those from First on.
type Ack struct {
	BufferSpace uint16
	MaxSkew     uint16
	First       uint32 // the lowest sequence number that the application has not read
	Previous    uint32 // the highest sequence number that came; the draft wants 0, and nobody sends it
	Serial      uint32 // of the packet that caused the acknowledgement; 0 if none
	Reason      Reason
	Count       uint8   // the number of entries, as sent: it may be more than there are
	Acks        []byte  // the entries that are there, at most Count; see Held
	Reserved    [3]byte // there if the trailer is; any value
	Trailer     Trailer
	Padding     []byte // what follows; pings are padded to find the path's MTU
}

// A Trailer is what newer peers append to their acknowledgements.
type Trailer struct {
	Words      int    // how many of the fields are there: 0, 2, 3 or 4
	MaxMTU     uint32 // the largest packet, header included, that the peer takes
	IfMTU      uint32 // the size that it prefers
	Window     uint32 // its receive window, in packets
	MaxPackets uint32 // how many packets it takes in a jumbogram
}

// Held reports whether an entry of Acks says that the peer holds the packet. Only the
// lowest bit counts: OpenAFS and Linux look at no other.
func Held(entry byte) bool { return entry&1 != 0 }

// words is the number of the trailer's fields on the wire.
func (t *Trailer) words() int {
	switch {
	case t.Words >= 4:
		return 4
	case t.Words < 2:
		return 0
	}
	return t.Words
}

// ParseAck decodes the body of an acknowledgement. Its slices alias b. It returns a
// *ShortError if b has fewer than 18 bytes, and no other error: if the number of entries is
// larger than what is there, the entries that are there count, as with OpenAFS. Bytes that
// are too few for two words of a trailer are padding.
func ParseAck(b []byte) (Ack, error) {
	if len(b) < ackFixed {
		return Ack{}, &ShortError{What: "acknowledgement", Have: len(b), Want: ackFixed}
	}
	a := Ack{
		BufferSpace: binary.BigEndian.Uint16(b[0:]),
		MaxSkew:     binary.BigEndian.Uint16(b[2:]),
		First:       binary.BigEndian.Uint32(b[4:]),
		Previous:    binary.BigEndian.Uint32(b[8:]),
		Serial:      binary.BigEndian.Uint32(b[12:]),
		Reason:      Reason(b[16]),
		Count:       b[17],
	}
	rest := b[ackFixed:]
	n := min(int(a.Count), len(rest))
	a.Acks, rest = rest[:n:n], rest[n:]

	words := min((len(rest)-ackReserved)/word, 4)
	if words < 2 {
		a.Padding = rest
		return a, nil
	}
	copy(a.Reserved[:], rest)
	rest = rest[ackReserved:]
	a.Trailer.Words = words
	for i, field := range a.Trailer.fields() {
		if i < words {
			*field = binary.BigEndian.Uint32(rest[i*word:])
		}
	}
	a.Padding = rest[words*word:]
	return a, nil
}

func (t *Trailer) fields() [4]*uint32 {
	return [4]*uint32{&t.MaxMTU, &t.IfMTU, &t.Window, &t.MaxPackets}
}

// Len is the number of bytes that Append appends.
func (a *Ack) Len() int {
	n := ackFixed + len(a.Acks) + len(a.Padding)
	if w := a.Trailer.words(); w > 0 {
		n += ackReserved + w*word
	}
	return n
}

// Append appends the acknowledgement to b. Count goes out as it is: set it to len(Acks).
// Without a trailer there are no reserved bytes.
func (a *Ack) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, a.BufferSpace)
	b = binary.BigEndian.AppendUint16(b, a.MaxSkew)
	b = binary.BigEndian.AppendUint32(b, a.First)
	b = binary.BigEndian.AppendUint32(b, a.Previous)
	b = binary.BigEndian.AppendUint32(b, a.Serial)
	b = append(b, byte(a.Reason), a.Count)
	b = append(b, a.Acks...)
	if w := a.Trailer.words(); w > 0 {
		b = append(b, a.Reserved[:]...)
		for i, field := range a.Trailer.fields() {
			if i < w {
				b = binary.BigEndian.AppendUint32(b, *field)
			}
		}
	}
	return append(b, a.Padding...)
}

// String shows the acknowledgement in one line. The entries are a string of + and -.
func (a *Ack) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v first=%d previous=%d serial=%d", a.Reason, a.First, a.Previous, a.Serial)
	if len(a.Acks) > 0 {
		s.WriteByte(' ')
		for _, e := range a.Acks {
			if Held(e) {
				s.WriteByte('+')
			} else {
				s.WriteByte('-')
			}
		}
	}
	if int(a.Count) != len(a.Acks) {
		fmt.Fprintf(&s, " (of %d)", a.Count)
	}
	for i, field := range a.Trailer.fields() {
		if i < a.Trailer.words() {
			fmt.Fprintf(&s, " %s=%d", [...]string{"max", "mtu", "window", "jumbo"}[i], *field)
		}
	}
	if len(a.Padding) > 0 {
		fmt.Fprintf(&s, " padding=%d", len(a.Padding))
	}
	return s.String()
}
