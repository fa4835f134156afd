package fcrypt

const (
	// BlockSize is the size of a block in bytes.
	BlockSize = 8

	// KeySize is the size of a key in bytes. The lowest bit of each byte is for parity
	// and is ignored.
	KeySize = 8

	rounds = 16
)

// A Cipher encrypts and decrypts with one key. It does not change, so any number of
// goroutines may use it. The zero Cipher has the zero key.
type Cipher struct {
	// A round of the definition is: half ^= f(other ^ key). Each half here has the key of
	// its next round already in it, which takes one operation out of the chain that the
	// next lookup waits for. So a round adds key[i] ^ key[i+2], except that the first two
	// bring the halves into this form, and the last two out of it.
	encrypt, decrypt schedule
}

type schedule [rounds + 2]uint32

// New returns the cipher of a key.
func New(key [KeySize]byte) Cipher {
	var k uint64
	for _, b := range key {
		k = k<<7 | uint64(b>>1)
	}
	var keys [rounds]uint32
	for i := range keys {
		keys[i] = uint32(k)
		k = k>>11 | k<<(56-11)&(1<<56-1)
	}

	var c Cipher
	for i, key := range keys {
		c.encrypt[i] ^= key
		c.encrypt[i+2] ^= key
	}
	for i, key := range c.encrypt {
		c.decrypt[len(c.decrypt)-1-i] = key
	}
	return c
}

// Encrypt encrypts one block.
func (c *Cipher) Encrypt(block uint64) uint64 {
	last, first := c.encrypt.run(uint32(block), uint32(block>>32))
	return uint64(first)<<32 | uint64(last)
}

// Decrypt decrypts one block.
func (c *Cipher) Decrypt(block uint64) uint64 {
	// The rounds run backwards, and so the halves change their parts.
	first, last := c.decrypt.run(uint32(block>>32), uint32(block))
	return uint64(first)<<32 | uint64(last)
}

// run carries out all rounds. The first one takes a and changes b.
func (s *schedule) run(a, b uint32) (uint32, uint32) {
	a ^= s[0]
	b ^= s[1] ^ f(a)
	a ^= s[2] ^ f(b)
	b ^= s[3] ^ f(a)
	a ^= s[4] ^ f(b)
	b ^= s[5] ^ f(a)
	a ^= s[6] ^ f(b)
	b ^= s[7] ^ f(a)
	a ^= s[8] ^ f(b)
	b ^= s[9] ^ f(a)
	a ^= s[10] ^ f(b)
	b ^= s[11] ^ f(a)
	a ^= s[12] ^ f(b)
	b ^= s[13] ^ f(a)
	a ^= s[14] ^ f(b)
	b ^= s[15] ^ f(a)
	a ^= s[16] ^ f(b)
	b ^= s[17]
	return a, b
}
