// Package crc32c computes CRC32c, the checksum of MPA (RFC 5044 §4.4) and of
// iSCSI (RFC 3720 §12.1), as fast as the processor can.
//
// # What is computed
//
// A message is a polynomial over GF(2): its first octet's least significant bit
// is the coefficient of the highest power of x. Its CRC is the remainder of the
// message, times x^32, modulo
//
//	P = x^32 + 0x1EDC6F41
//
// where the first 32 bits of the message and the CRC itself are inverted.
//
// # How
//
// There are three ways; the processor and the length decide.
//
// Up to 71 octets, the processor's CRC32 instruction takes 8 octets after the
// other.
//
// From there on, the message is folded. A piece of it that lies n bits before the
// end stands for itself times x^n, so it can be replaced by what is congruent to
// that modulo P: by its product with x^n mod P, which has few bits, at the end. All
// that is so moved to one place is added up, which is an exclusive or. Finally
// 16 octets are left, for two CRC32 instructions. With AVX-512 and VPCLMULQDQ one
// instruction makes four such products. Long messages are folded over 256 octets
// at a time, into four registers, and these onto the end.
//
// AMD's processors from Zen 5 on execute three CRC32 instructions in a cycle, but
// one VPCLMULQDQ of 512 bits in two. There, both ways run at the same time, on
// different octets; package crc32c then sums more than 25 octets in a cycle.
//
// Processors without these instructions, and builds with the tag purego, get
// github.com/klauspost/crc32.
//
// # The assembly
//
// It is generated: internal/host/crc32c/gen, a module of its own, writes it when
// "go generate" runs, and computes all powers of x that are in it. Start with
// gen/poly.go for the arithmetic, then gen/fold.go. "make lint" checks that the
// assembly is what the generator writes.
package crc32c

//go:generate go -C gen run .
