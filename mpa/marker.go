package mpa

import (
	"encoding/binary"
	"fmt"
)

const (
	// MarkerLen is the length of a marker in bytes.
	MarkerLen = 4
	// MarkerInterval is the distance between the first bytes of two markers in
	// the TCP stream, markers included (RFC 5044 §4.3).
	MarkerInterval = 512
)

// appendMarker appends a marker whose containing FPDU began distance bytes ago
// (RFC 5044 §4.2).
func appendMarker(b []byte, distance int) []byte {
	b = append(b, 0, 0)                                       // Reserved (16)
	return binary.BigEndian.AppendUint16(b, uint16(distance)) // FPDUPTR (16)
}

// checkMarker compares a received marker with the distance at which the FPDU
// began by its ULPDU_Length. The low two bits of FPDUPTR count as zero (RFC
// 5044 §4.2). FPDUPTR is at most 65532, which an FPDU exceeds only with a ULPDU
// that no sender may send (§3); the distance is taken modulo 2^16.
func checkMarker(m []byte, distance int) error {
	if ptr := binary.BigEndian.Uint16(m[2:]) &^ 3; ptr != uint16(distance) {
		return &Error{
			Code: CodeMarker, Clause: "RFC 5044 §8",
			Reason: fmt.Sprintf("a marker points %d octets back, but its FPDU began %d octets back", ptr, distance),
		}
	}
	return nil
}

// A markerClock counts the bytes of one direction of the stream, as far as
// markers depend on them.
type markerClock int // bytes since the last marker's first byte, 0..511

// due reports whether a marker is due at this position in the stream.
func (c markerClock) due() bool { return c == 0 }

// room returns how many bytes go before the next marker.
func (c markerClock) room() int { return MarkerInterval - int(c) }

func (c markerClock) after(n int) markerClock {
	return markerClock((int(c) + n) % MarkerInterval)
}

// markersWithin returns how many markers interrupt n bytes that begin at c,
// where no marker is due. A marker due right behind the n bytes isn't one of
// them.
func (c markerClock) markersWithin(n int) int {
	if n <= c.room() {
		return 0
	}
	return 1 + (n-c.room()-1)/(MarkerInterval-MarkerLen)
}
