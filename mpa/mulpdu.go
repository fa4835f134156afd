package mpa

// MinMULPDU and MaxMULPDU bound the MULPDU, in bytes (RFC 5044 §3).
const (
	MinMULPDU = 128
	MaxMULPDU = 64768
)

// MULPDU returns the largest ULPDU, in bytes, whose FPDU fits into one TCP
// segment of emss bytes, with or without markers (RFC 5044 §4.5). The result
// lies between MinMULPDU and MaxMULPDU.
func MULPDU(emss int, markers bool) int {
	const longest = 1<<16 - 1 // of an IP packet; any that long holds MaxMULPDU
	emss = min(max(emss, 0), longest)
	overhead := lengthLen + CRCLen + emss%4
	if markers {
		overhead += MarkerLen * ((emss + MarkerInterval - 1) / MarkerInterval)
	}
	return min(max(emss-overhead, MinMULPDU), MaxMULPDU)
}
