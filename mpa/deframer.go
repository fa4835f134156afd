package mpa

import (
	"encoding/binary"
	"fmt"
)

// A Deframer finds the FPDUs in one direction of an ordered TCP stream
// (RFC 5044 §6). The zero Deframer expects no markers and checks no CRC. It is
// not safe for concurrent use.
type Deframer struct {
	CRC     bool // check the CRC
	Markers bool // we declared M, so the stream carries markers

	clock markerClock
}

// FPDULen returns the length in bytes of the FPDU with which b begins, or 0 if
// b is too short.
func (d *Deframer) FPDULen(b []byte) int {
	lead := d.lead()
	if len(b) < lead+lengthLen {
		return 0
	}
	return fpduLen(d.clock, d.Markers, int(binary.BigEndian.Uint16(b[lead:])))
}

// lead returns how many bytes of marker precede the next ULPDU_Length.
func (d *Deframer) lead() int {
	if d.Markers && d.clock.due() {
		return MarkerLen
	}
	return 0
}

// Next decodes the FPDU at the front of b. It returns its ULPDU and the number
// of bytes of the FPDU. Zero bytes and no error mean that the FPDU continues
// beyond b.
//
// The ULPDU aliases b; where markers interrupt it, Next closes the gaps within
// b. Errors are of type *Error, with CodeCRC or CodeMarker; after one, nothing
// more of the stream may be decoded (RFC 5044 §8).
func (d *Deframer) Next(b []byte) (ulpdu []byte, n int, err error) {
	total := d.FPDULen(b)
	if total == 0 || len(b) < total {
		return nil, 0, nil
	}
	fpdu := b[:total]
	// The CRC comes first: nothing in an FPDU is to be believed before it (§6).
	if d.CRC {
		if got, want := readCRC(fpdu[total-CRCLen:]), UpdateCRC(0, fpdu[:total-CRCLen]); got != want {
			return nil, 0, &Error{
				Code: CodeCRC, Clause: "RFC 5044 §8",
				Reason: fmt.Sprintf("an FPDU of %d octets carries CRC 0x%08x, but its octets give 0x%08x", total, got, want),
			}
		}
	}
	lead := d.lead()
	length := int(binary.BigEndian.Uint16(fpdu[lead:]))
	if !d.Markers {
		return fpdu[lengthLen : lengthLen+length : lengthLen+length], total, nil
	}
	if err := d.checkMarkers(fpdu, lead); err != nil {
		return nil, 0, err
	}
	ulpdu = d.unmark(fpdu, lead)[lengthLen:]
	d.clock = d.clock.after(total)
	return ulpdu[:length:length], total, nil
}

// Skip skips the next n bytes of the stream, FPDUs and markers, which are
// missing, as in an incomplete capture. The bytes behind them must begin an
// FPDU, or the marker before one.
func (d *Deframer) Skip(n int) { d.clock = d.clock.after(n) }

// checkMarkers compares each marker in fpdu with where the FPDU began.
func (d *Deframer) checkMarkers(fpdu []byte, lead int) error {
	if lead > 0 {
		if err := checkMarker(fpdu, 0); err != nil {
			return err
		}
	}
	for at := d.firstInner(lead); at < len(fpdu); at += MarkerInterval {
		if err := checkMarker(fpdu[at:], at-lead); err != nil {
			return err
		}
	}
	return nil
}

// firstInner returns the offset of the first marker inside an FPDU that begins
// at the clock's place, leading marker aside.
func (d *Deframer) firstInner(lead int) int {
	return lead + d.clock.after(lead).room()
}

// unmark closes the gaps that markers leave in fpdu and returns it without its
// leading marker and without the inner ones.
func (d *Deframer) unmark(fpdu []byte, lead int) []byte {
	out := fpdu[lead:]
	at := d.firstInner(lead)
	w := at - lead
	for at < len(fpdu) {
		end := min(at+MarkerInterval, len(fpdu))
		w += copy(out[w:], fpdu[at+MarkerLen:end])
		at = end
	}
	return out[:min(w, len(out))]
}
