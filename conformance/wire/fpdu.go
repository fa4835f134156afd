package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The geometry of FPDUs (RFC 5044 §4).
const (
	lengthLen      = 2
	crcLen         = 4
	markerLen      = 4
	markerInterval = 512
	MaxULPDU       = 64768 // RFC 5044 §3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Flaw is what is wrong with an FPDU by intent. The zero Flaw is none. Of the fields, RDP's
// messages have CRC, BigEndian, FlipAfter, CutTo and Number.
type Flaw struct {
	Length    int                                // added to ULPDU_Length, and to nothing else
	Pad       byte                               // what pad bytes are, instead of 0
	CRC       func(crc uint32) uint32            // changes the CRC
	BigEndian bool                               // the CRC's bytes stand the other way round
	Marker    func(n int, pointer uint16) uint16 // changes the FPDUPTR of the FPDU's n-th marker, from 0
	Reserved  uint16                             // what markers' reserved fields hold
	FlipAfter func(fpdu []byte)                  // changes the finished FPDU
	NoMarkers bool                               // leaves markers out, though they are due
	Wrong     string                             // says so for people
	AfterCRC  []byte                             // follows it
	CutTo     int                                // if not 0, how many of its bytes are sent
	Number    func(number uint32) uint32         // over RDP: changes the segment's number
}

// A framer makes FPDUs of one direction.
type framer struct {
	markers bool
	crc     bool
	pos     uint64 // bytes of full operation so far, markers among them
}

// frame returns the FPDU of an ULPDU.
func (f *framer) frame(ulpdu []byte, flaw Flaw) []byte {
	var b []byte
	body := binary.BigEndian.AppendUint16(make([]byte, 0, lengthLen+len(ulpdu)+3), uint16(len(ulpdu)+flaw.Length))
	body = append(body, ulpdu...)
	for len(body)%4 != 0 {
		body = append(body, flaw.Pad)
	}
	start := f.pos // of the FPDU's header, in the stream
	var nth int
	put := func(word []byte) {
		b = append(b, word...)
		f.pos += uint64(len(word))
	}
	due := func() {
		if !f.markers || f.pos%markerInterval != 0 || flaw.NoMarkers {
			return
		}
		pointer := uint16(f.pos - start)
		atHeader := len(b) == 0
		if flaw.Marker != nil {
			pointer = flaw.Marker(nth, pointer)
		}
		nth++
		put(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, flaw.Reserved), pointer))
		if atHeader {
			start = f.pos
		}
	}
	for i := 0; i < len(body); i += 4 {
		due()
		put(body[i : i+4])
	}
	due()
	var crc uint32
	if f.crc {
		crc = crc32.Checksum(b, castagnoli)
	}
	if flaw.CRC != nil {
		crc = flaw.CRC(crc)
	}
	if flaw.BigEndian {
		put(binary.BigEndian.AppendUint32(nil, crc))
	} else {
		put(binary.LittleEndian.AppendUint32(nil, crc)) // RFC 5044 §4.4, figures 5 and 6
	}
	if flaw.FlipAfter != nil {
		flaw.FlipAfter(b)
	}
	return append(b, flaw.AfterCRC...)
}

// A deframer takes the FPDUs of one direction apart.
type deframer struct {
	markers bool
	crc     bool
	pos     uint64
}

// An FPDU is one that came; over RDP, a message with a segment.
type FPDU struct {
	Octets  []byte // all of it, markers among them
	ULPDU   []byte
	Pad     []byte
	CRC     uint32
	Markers []Marker
	Faults  []Fault // which rules it breaks
}

// A Marker is one that came.
type Marker struct {
	At       int // where in the FPDU's bytes
	Reserved uint16
	Pointer  uint16
}

// read takes the next FPDU from get, which returns the n bytes that follow.
func (d *deframer) read(get func(n int) ([]byte, error)) (FPDU, error) {
	var p FPDU
	start := d.pos
	word := func() ([]byte, error) {
		if d.markers && d.pos%markerInterval == 0 {
			m, err := get(markerLen)
			if err != nil {
				return nil, err
			}
			marker := Marker{At: len(p.Octets), Reserved: binary.BigEndian.Uint16(m), Pointer: binary.BigEndian.Uint16(m[2:])}
			if want := d.pos - start; uint64(marker.Pointer) != want {
				p.fault(FaultMarker, "the marker %d octets into the FPDU says %d", want, marker.Pointer)
			}
			if marker.Reserved != 0 {
				p.fault(FaultMarkerReserved, "a marker's reserved field is 0x%04x", marker.Reserved)
			}
			p.Markers = append(p.Markers, marker)
			p.Octets = append(p.Octets, m...)
			d.pos += markerLen
			if len(p.Octets) == markerLen {
				start = d.pos
			}
		}
		w, err := get(4)
		if err == nil {
			p.Octets = append(p.Octets, w...)
			d.pos += 4
		}
		return w, err
	}
	first, err := word()
	if err != nil {
		return p, err
	}
	n := int(binary.BigEndian.Uint16(first))
	body := append([]byte(nil), first[lengthLen:]...)
	if whole := (n - len(body) + 3) / 4 * 4; !d.markers && whole > 0 {
		w, err := get(whole)
		if err != nil {
			return p, err
		}
		p.Octets = append(p.Octets, w...)
		d.pos += uint64(whole)
		body = append(body, w...)
	}
	for len(body) < n {
		w, err := word()
		if err != nil {
			return p, err
		}
		body = append(body, w...)
	}
	p.ULPDU, p.Pad = body[:n], body[n:]
	for _, b := range p.Pad {
		if b != 0 {
			p.fault(FaultPad, "the pad is %x", p.Pad)
			break
		}
	}
	// The CRC's own word: a marker may stand before it, and is covered.
	covered := len(p.Octets)
	if d.markers && d.pos%markerInterval == 0 {
		covered += markerLen
	}
	last, err := word()
	if err != nil {
		return p, err
	}
	p.CRC = binary.LittleEndian.Uint32(last)
	if want := crc32.Checksum(p.Octets[:covered], castagnoli); d.crc && want != p.CRC {
		p.fault(FaultCRC, "the CRC's octets are %x, not %x", last, binary.LittleEndian.AppendUint32(nil, want))
	}
	if n == 0 {
		p.fault(FaultLength, "ULPDU_Length is 0")
	}
	if n > MaxULPDU {
		p.fault(FaultLength, "ULPDU_Length is %d", n)
	}
	return p, nil
}

func (p *FPDU) fault(rule Rule, format string, args ...any) {
	p.Faults = append(p.Faults, Fault{Rule: rule, What: fmt.Sprintf(format, args...)})
}

// A Rule is one of those that are watched in all that a target sends.
type Rule string

// The rules.
const (
	FaultMarker         Rule = "marker"          // RFC 5044 §4.2
	FaultMarkerReserved Rule = "marker reserved" // RFC 5044 §4.2
	FaultPad            Rule = "pad"             // RFC 5044 §4.1
	FaultCRC            Rule = "CRC"             // RFC 5044 §4.4
	FaultLength         Rule = "length"          // RFC 5044 §3
	FaultShort          Rule = "short segment"   // RFC 5041 §4.4
	FaultReserved       Rule = "DDP reserved"    // RFC 5041 §4.1
	FaultVersion        Rule = "DDP version"     // RFC 5041 §4.1
	FaultRV             Rule = "RDMAP version"   // RFC 5040 §4.1
	FaultRDMAPReserved  Rule = "RDMAP reserved"  // RFC 5040 §4.1
	FaultOpcode         Rule = "opcode"          // RFC 5040 §4.1
	FaultQueue          Rule = "queue"           // RFC 5040 §4.2
	FaultTagged         Rule = "tagged"          // RFC 5040 §4.3
	FaultMSN            Rule = "MSN"             // RFC 5041 §4.3
	FaultMO             Rule = "MO"              // RFC 5041 §4.3
	FaultTO             Rule = "TO"              // RFC 5041 §5.2
	FaultInvalidate     Rule = "Invalidate STag" // RFC 5040 §4.1
	FaultMessage        Rule = "message"         // RFC 5041 §5.2: a message's segments agree
	FaultNumber         Rule = "segment number"  // docs/ddp-over-rdp.md, Messages
	FaultHeader         Rule = "message header"  // docs/ddp-over-rdp.md, Messages
)

// A Fault is a rule that the target has broken.
type Fault struct {
	Rule Rule
	What string
}
