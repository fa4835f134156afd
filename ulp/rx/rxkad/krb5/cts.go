package krb5

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

// encryptCTS encrypts data in place: CBC with an initial vector of zeros, the last block
// padded with zeros, the last two blocks exchanged, and the length cut to what it was
// (RFC 3962 §5). data has one block or more.
func encryptCTS(c cipher.Block, data []byte) {
	last := lastBlock(data)
	if last == 0 {
		c.Encrypt(data, data)
		return
	}
	head, tail := data[:last], data[last:]
	chain := cipher.NewCBCEncrypter(c, make([]byte, aes.BlockSize))
	chain.CryptBlocks(head, head)
	var block [aes.BlockSize]byte
	copy(block[:], tail)
	chain.CryptBlocks(block[:], block[:])
	before := head[last-aes.BlockSize:]
	copy(tail, before)
	copy(before, block[:])
}

// decryptCTS undoes encryptCTS.
func decryptCTS(c cipher.Block, data []byte) {
	last := lastBlock(data)
	if last == 0 {
		c.Decrypt(data, data)
		return
	}
	head, tail := data[:last], data[last:]

	// The block before the last is the encrypted sum of the padded last block and the
	// block that was there. What was cut off that one shows where the padding is zero.
	before := head[last-aes.BlockSize:]
	var block, sum [aes.BlockSize]byte
	c.Decrypt(sum[:], before)
	copy(block[:], sum[:])
	copy(block[:], tail)
	subtle.XORBytes(tail, tail, sum[:])
	copy(before, block[:])
	cipher.NewCBCDecrypter(c, make([]byte, aes.BlockSize)).CryptBlocks(head, head)
}

// lastBlock is where the last block of data, which may be short, begins.
func lastBlock(data []byte) int {
	return (len(data) - 1) / aes.BlockSize * aes.BlockSize
}
