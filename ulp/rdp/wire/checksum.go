package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Where the checksums stand in a header.
const (
	checksum1 = 14
	checksum2 = 16
)

// A Pseudo is the pseudo-header that the checksum of version 2 may cover besides the segment: the
// addresses, the number of the protocol and the segment's length, as that of TCP does. RFC 1151
// p.1 cites a page of RFC 793 that breaks off where it begins, and RFC 908 §3.4.2 says that the
// checksum covers header and data; so the default is to have none.
type Pseudo struct{ Src, Dst netip.Addr }

// Checksum1 returns the checksum of a segment of version 1, whatever its checksum field holds
// (RFC 908 §4.2.1). It is 0 for what is shorter than a header.
//
// Words are in network byte order. RFC 908 speaks of memory words, but its figures are in network
// order, and RFC 1151 p.1 complains of what the checksum costs on hosts of another order.
func Checksum1(b []byte) uint32 {
	if len(b) < FixedLen {
		return 0
	}
	s := (*[FixedLen]byte)(b)
	sum := add1(0, binary.BigEndian.Uint32(s[0:]))
	sum = add1(sum, binary.BigEndian.Uint32(s[4:]))
	sum = add1(sum, binary.BigEndian.Uint32(s[8:]))
	// The field has a half of each of two words.
	sum = add1(sum, uint32(binary.BigEndian.Uint16(s[12:]))<<16)
	b = b[FixedLen:]
	switch len(b) {
	case 0:
		return add1(sum, 0)
	case 1:
		return add1(sum, uint32(b[0])<<8)
	}
	sum = add1(sum, uint32(binary.BigEndian.Uint16(b)))
	b = b[2:]
	for len(b) >= 16 {
		sum = add1(sum, binary.BigEndian.Uint32(b[0:]))
		sum = add1(sum, binary.BigEndian.Uint32(b[4:]))
		sum = add1(sum, binary.BigEndian.Uint32(b[8:]))
		sum = add1(sum, binary.BigEndian.Uint32(b[12:]))
		b = b[16:]
	}
	for len(b) >= 4 {
		sum = add1(sum, binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) > 0 {
		var last [4]byte
		copy(last[:], b)
		sum = add1(sum, binary.BigEndian.Uint32(last[:]))
	}
	return sum
}

// add1 adds a word to the checksum of version 1: the carry is lost, and the sum is rotated left.
func add1(sum, word uint32) uint32 { return bits.RotateLeft32(sum+word, 1) }

// Checksum2 returns the checksum of a segment of version 2, whatever its checksum field holds:
// that of TCP (RFC 1151 p.1). With p, it covers the pseudo-header. It is 0 for what is shorter
// than a header.
func Checksum2(b []byte, p *Pseudo) uint16 {
	if len(b) < FixedLen {
		return 0
	}
	sum := add2(0, b[:checksum2])
	sum = add2(sum, b[FixedLen:])
	if p != nil {
		sum = addAddr(sum, p.Src)
		sum = addAddr(sum, p.Dst)
		sum = carry(bits.Add64(sum, Protocol+uint64(len(b)), 0))
	}
	sum = sum>>32 + sum&0xffffffff
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// add2 adds the 16-bit words of b to a one's complement sum. A last odd byte is the high one of
// a word. It takes words of 64 bits: as 2^16 is 1 modulo 2^16-1, so are they worth the sum of the
// words in them.
func add2(sum uint64, b []byte) uint64 {
	for len(b) >= 64 {
		var c uint64
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[0:]), 0)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[32:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[40:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[48:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[56:]), c)
		sum = carry(bits.Add64(sum, c, 0))
		b = b[64:]
	}
	for len(b) >= 8 {
		sum = carry(bits.Add64(sum, binary.BigEndian.Uint64(b), 0))
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		sum = carry(bits.Add64(sum, binary.BigEndian.Uint64(last[:]), 0))
	}
	return sum
}

// carry adds a carry at the other end.
func carry(sum, c uint64) uint64 { return sum + c }

// addAddr adds an address to a one's complement sum. What is no address is worth nothing.
func addAddr(sum uint64, a netip.Addr) uint64 {
	switch a = a.Unmap(); {
	case a.Is4():
		b := a.As4()
		return add2(sum, b[:])
	case a.Is6():
		b := a.As16()
		return add2(sum, b[:])
	}
	return sum
}

// verify verifies the checksum of a segment, which has at least a header. It returns the checksum
// that is there and the one that would be right.
func verify(b []byte, version uint8, p *Pseudo) (have, want uint32, ok bool) {
	if version == 1 {
		have, want = binary.BigEndian.Uint32(b[checksum1:]), Checksum1(b)
		return have, want, have == want
	}
	have, want = uint32(binary.BigEndian.Uint16(b[checksum2:])), uint32(Checksum2(b, p))
	// One's complement has two zeros: a receiver that sums all words takes either.
	return have, want, have == want || want == 0 && have == 0xffff
}
