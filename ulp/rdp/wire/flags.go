package wire

import (
	"fmt"
	"strings"
)

// Flags are the control flags of a segment (RFC 908 §4.2.1).
type Flags uint8

// The flags.
const (
	SYN  Flags = 1 << (7 - iota) // opens a connection; has the variable area of a SYN
	ACK                          // the acknowledgement number has a meaning
	EACK                         // the variable area lists numbers received out of sequence
	RST                          // ends the connection
	NUL                          // a numbered segment without data, that asks whether the other side is there

	// unused has to be zero.
	unused Flags = 1 << 2
	// versionMask is of the bits that the flags share their byte with.
	versionMask = 3
)

var flagNames = [8]string{"", "", "0x04", "NUL", "RST", "EACK", "ACK", "SYN"}

// String names the flags that are set, joined by commas.
func (f Flags) String() string {
	var set []string
	for bit := 7; bit >= 2; bit-- {
		if f&(1<<bit) != 0 {
			set = append(set, flagNames[bit])
		}
	}
	if rest := f & versionMask; rest != 0 {
		set = append(set, fmt.Sprintf("0x%02x", uint8(rest)))
	}
	return strings.Join(set, ",")
}

// String shows the header in one line.
func (h *Header) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "v%d %v %d>%d seq=%d", h.Version, h.Flags, h.Source, h.Dest, h.Seq)
	if h.Flags&ACK != 0 {
		fmt.Fprintf(&s, " ack=%d", h.Ack)
	}
	switch {
	case h.Flags&SYN != 0:
		fmt.Fprintf(&s, " max=%d size=%d", h.MaxOutstanding, h.MaxSegment)
		if h.Sequenced {
			s.WriteString(" sequenced")
		}
	case h.Flags&EACK != 0:
		s.WriteString(" eacks=" + Ranges(h.EACKs))
	}
	return s.String()
}

// Ranges shows sequence numbers in the order in which they are listed, those that follow one
// another as a range: "5,7-9,11".
func Ranges(numbers []uint32) string {
	var s strings.Builder
	for i := 0; i < len(numbers); {
		end := i + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, "%d", numbers[i])
		if end > i+1 {
			fmt.Fprintf(&s, "-%d", numbers[end-1])
		}
		i = end
	}
	return s.String()
}
