package main

import "math/bits"

// castagnoli is CRC32c's polynomial P without its x^32; bit i is the
// coefficient of x^i.
const castagnoli = 0x1edc6f41

// power returns x^n mod P for n >= 0, and for less too, as x has an inverse: P's
// constant term is 1, so P+1 is a multiple of x, and as P is 0 modulo P, x times
// (P+1)/x is 1. Bit i is the coefficient of x^i.
func power(n int) uint32 {
	r := uint32(1)
	for range n {
		carry := r >> 31
		r = r<<1 ^ carry*castagnoli
	}
	for range -n {
		carry := r & 1 // adding P makes it divisible by x
		r = r>>1 ^ carry*(1<<31|castagnoli>>1)
	}
	return r
}

// shift returns the factor that moves a quadword of the message by e octets away
// from the message's end, that is, multiplies it by x^8e.
//
// A CRC reads each octet from its least significant bit. So a quadword that is
// loaded from memory is a polynomial in reflected order: bit i is the coefficient
// of x^(63-i). The factor has to have the same order. Bits i and j of two such
// quadwords have the product x^(126-i-j), which the processor puts into bit i+j of
// 128. But in 16 octets of a message bit i+j is the coefficient of x^(127-i-j). So
// the product comes out too large by x, and the factor has one x less.
func shift(e int) uint64 {
	return bits.Reverse64(uint64(power(8*e - 1)))
}
