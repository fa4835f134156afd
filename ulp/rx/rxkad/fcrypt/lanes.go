package fcrypt

// lanes is how many blocks are decrypted side by side.
const lanes = 4

// decryptLanes decrypts blocks that do not depend on each other.
func (c *Cipher) decryptLanes(in [lanes]uint64) (out [lanes]uint64) {
	s := &c.decrypt
	a0, b0 := uint32(in[0]>>32)^s[0], uint32(in[0])
	a1, b1 := uint32(in[1]>>32)^s[0], uint32(in[1])
	a2, b2 := uint32(in[2]>>32)^s[0], uint32(in[2])
	a3, b3 := uint32(in[3]>>32)^s[0], uint32(in[3])
	for i := 1; i < rounds; i += 2 {
		k := s[i]
		b0 ^= k ^ f(a0)
		b1 ^= k ^ f(a1)
		b2 ^= k ^ f(a2)
		b3 ^= k ^ f(a3)
		k = s[i+1]
		a0 ^= k ^ f(b0)
		a1 ^= k ^ f(b1)
		a2 ^= k ^ f(b2)
		a3 ^= k ^ f(b3)
	}
	k := s[rounds+1]
	return [lanes]uint64{
		uint64(a0)<<32 | uint64(b0^k),
		uint64(a1)<<32 | uint64(b1^k),
		uint64(a2)<<32 | uint64(b2^k),
		uint64(a3)<<32 | uint64(b3^k),
	}
}
