package fcrypt

import (
	"encoding/binary"
	"fmt"
)

// A LengthError is the length of data that is no whole number of blocks.
type LengthError int

func (e LengthError) Error() string {
	return fmt.Sprintf("fcrypt: %d bytes are no whole number of blocks of %d bytes", int(e), BlockSize)
}

// EncryptPCBC encrypts data in place. iv is what the first block is combined with: in
// rxkad, the key. The error is a [LengthError].
func (c *Cipher) EncryptPCBC(iv uint64, data []byte) error {
	if len(data)%BlockSize != 0 {
		return LengthError(len(data))
	}
	// Each block needs the one before, so there is nothing to do side by side.
	for ; len(data) >= BlockSize; data = data[BlockSize:] {
		plain := binary.BigEndian.Uint64(data)
		sealed := c.Encrypt(plain ^ iv)
		binary.BigEndian.PutUint64(data, sealed)
		iv = plain ^ sealed
	}
	return nil
}

// DecryptPCBC decrypts data in place. The error is a [LengthError].
func (c *Cipher) DecryptPCBC(iv uint64, data []byte) error {
	if len(data)%BlockSize != 0 {
		return LengthError(len(data))
	}
	// The cipher itself does not wait for the chain. A processor spends most of a round
	// waiting for the tables, and has time for the rounds of other blocks.
	for ; len(data) >= lanes*BlockSize; data = data[lanes*BlockSize:] {
		group := data[:lanes*BlockSize]
		var sealed [lanes]uint64
		for i := range sealed {
			sealed[i] = binary.BigEndian.Uint64(group[i*BlockSize:])
		}
		opened := c.decryptLanes(sealed)
		for i, block := range opened {
			plain := block ^ iv
			binary.BigEndian.PutUint64(group[i*BlockSize:], plain)
			iv = plain ^ sealed[i]
		}
	}
	for ; len(data) >= BlockSize; data = data[BlockSize:] {
		sealed := binary.BigEndian.Uint64(data)
		plain := c.Decrypt(sealed) ^ iv
		binary.BigEndian.PutUint64(data, plain)
		iv = plain ^ sealed
	}
	return nil
}
