package krb5

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// A purpose is the last byte of what a key is derived from (RFC 3961 §5.3).
type purpose byte

const (
	encryption purpose = 0xAA
	integrity  purpose = 0x55
)

// derive returns the key that belongs to a usage and a purpose: the cipher runs over the
// folded constant, then over its own output, until there are enough bytes for a key.
func derive(base cipher.Block, size int, usage uint32, p purpose) []byte {
	constant := append(binary.BigEndian.AppendUint32(nil, usage), byte(p))
	return deriveRandom(base, size, constant)
}

// deriveRandom is DR of RFC 3961 §5.1; for AES its result is a key as it is (RFC 3962 §6).
func deriveRandom(base cipher.Block, size int, constant []byte) []byte {
	block := nfold(constant, aes.BlockSize)
	var out []byte
	for len(out) < size {
		base.Encrypt(block, block)
		out = append(out, block...)
	}
	return out[:size]
}
