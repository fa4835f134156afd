package mpa

import (
	"encoding/binary"
	"fmt"
	"slices"

	"urnic/internal/host/crc32c"
)

const (
	lengthLen = 2 // ULPDU_Length

	// MaxULPDU is the longest ULPDU that fits ULPDU_Length. Senders stay at or
	// below MaxMULPDU; a receiver accepts any length.
	MaxULPDU = 1<<16 - 1

	// MaxFPDULen is the length of the longest FPDU that a Deframer can decode,
	// in bytes.
	MaxFPDULen = lengthLen + MaxULPDU + 3 + CRCLen + MarkerLen*(2+MaxULPDU/(MarkerInterval-MarkerLen)+1)

	// sumWhileCopying is from which length on it pays to copy a ULPDU and to
	// compute its CRC in one go.
	sumWhileCopying = 4 << 10
)

// padLen returns how many zero bytes follow a ULPDU of n bytes, so that the
// FPDU is a multiple of four bytes long (RFC 5044 §4.1).
func padLen(n int) int { return -(lengthLen + n) & 3 }

// bodyLen returns the length of an FPDU with a ULPDU of n bytes, markers not
// counted.
func bodyLen(n int) int { return lengthLen + n + padLen(n) + CRCLen }

var zeroPad [3]byte

// A Framer encodes ULPDUs as FPDUs, for one direction of a connection (RFC 5044
// §4). The zero Framer sends without markers and with a CRC field of zero. It
// is not safe for concurrent use.
type Framer struct {
	CRC     bool // compute the CRC; else the field is sent as zero
	Markers bool // insert markers, because the peer declared M

	clock markerClock
}

// FPDULen returns how many bytes the next FPDU will take on the wire with a
// ULPDU of n bytes.
func (f *Framer) FPDULen(n int) int { return fpduLen(f.clock, f.Markers, n) }

func fpduLen(c markerClock, markers bool, n int) int {
	body := bodyLen(n)
	if !markers {
		return body
	}
	lead := 0
	if c.due() {
		lead = MarkerLen
		c = c.after(MarkerLen)
	}
	return lead + body + MarkerLen*c.markersWithin(body)
}

// AppendFPDU appends to b one FPDU whose ULPDU is the pieces joined. It fails
// if they are longer than MaxULPDU bytes together.
func (f *Framer) AppendFPDU(b []byte, pieces ...[]byte) ([]byte, error) {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	if n > MaxULPDU {
		return b, fmt.Errorf("mpa: a ULPDU of %d octets; at most %d fit into an FPDU", n, MaxULPDU)
	}
	if f.Markers {
		return f.appendMarked(b, n, pieces), nil
	}
	if f.CRC && n >= sumWhileCopying {
		return appendSummed(b, n, pieces), nil
	}
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(n)) // ULPDU_Length (16)
	for _, p := range pieces {
		b = append(b, p...) // ULPDU
	}
	b = append(b, zeroPad[:padLen(n)]...) // PAD
	return appendCRC(b, f.checksum(b[start:])), nil
}

// appendSummed is AppendFPDU for long ULPDUs with a CRC: it copies and sums
// them in one pass.
func appendSummed(b []byte, n int, pieces [][]byte) []byte {
	start := len(b)
	b = slices.Grow(b, bodyLen(n))
	b = binary.BigEndian.AppendUint16(b, uint16(n)) // ULPDU_Length (16)
	crc := UpdateCRC(0, b[start:])
	for _, p := range pieces {
		end := len(b)
		b = b[:end+len(p)]
		crc = crc32c.Copy(b[end:], p, crc) // ULPDU
	}
	pad := zeroPad[:padLen(n)]
	return appendCRC(append(b, pad...), UpdateCRC(crc, pad)) // PAD, CRC (32)
}

// checksum returns the CRC field for an FPDU of which b is all that precedes it.
func (f *Framer) checksum(b []byte) uint32 {
	if !f.CRC {
		return 0
	}
	return UpdateCRC(0, b)
}

// appendMarked is AppendFPDU with markers (RFC 5044 §4.3).
func (f *Framer) appendMarked(b []byte, n int, pieces [][]byte) []byte {
	first := len(b) // the CRC covers a marker that leads the FPDU: §4.4 rule 2
	if f.clock.due() {
		b = appendMarker(b, 0)
		f.clock = f.clock.after(MarkerLen)
	}
	start := len(b) // the ULPDU_Length, to which the markers point
	put := func(p []byte) {
		for len(p) > 0 {
			if f.clock.due() {
				b = appendMarker(b, len(b)-start)
				f.clock = f.clock.after(MarkerLen)
			}
			k := min(len(p), f.clock.room())
			b = append(b, p[:k]...)
			f.clock = f.clock.after(k)
			p = p[k:]
		}
	}
	put([]byte{byte(n >> 8), byte(n)})
	for _, p := range pieces {
		put(p)
	}
	put(zeroPad[:padLen(n)])
	if f.clock.due() { // a marker right behind the PAD is covered too: §4.4 rule 1
		b = appendMarker(b, len(b)-start)
		f.clock = f.clock.after(MarkerLen)
	}
	f.clock = f.clock.after(CRCLen)
	return appendCRC(b, f.checksum(b[first:]))
}
