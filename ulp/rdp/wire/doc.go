// Package wire encodes and decodes the segments of RDP, the Reliable Data Protocol: version 1
// (RFC 908) and version 2 (RFC 1151), which differ in the header's layout and in the checksum.
//
// A [Header] is the decoded form of both. [Header.AppendTo] encodes a segment, and
// [Header.Parse] decodes one. Parse accepts a segment only if its form is right: the lengths
// agree, the checksum fits, the flags go together. What it refuses is discarded without an
// answer (RFC 908 §3.4.3); the [*FormatError] says which rule is broken.
//
// Sequence numbers wrap. [Less] and [Diff] compare them modulo 2^32.
//
// All functions are pure. They check a length before they use it, and allocate nothing but
// errors and what append needs.
//
// # Layout
//
// Both headers have a fixed part of 18 bytes, in network byte order. The header's length counts
// units of 2 bytes.
//
//	byte   version 1              version 2
//	0      flags, version         flags, version
//	1      header length          header length
//	2      source port            source port, 2 bytes
//	3      destination port
//	4      data length            destination port
//	6      sequence number        data length
//	8                             sequence number
//	10     acknowledgement
//	12                            acknowledgement
//	14     checksum, 4 bytes
//	16                            checksum, 2 bytes
//	18     variable area          variable area
//
// The variable area of a SYN has the limits of its sender: the number of segments that may be
// unacknowledged, the largest segment, and the options. That of an EACK lists the numbers that
// were received out of sequence.
package wire
