package krb5

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"slices"
)

// An Enctype is a type of encryption (RFC 3961 §8).
type Enctype int32

// The types of encryption that have a meaning here. Tickets are encrypted with the AES
// ones only; session keys may have any type.
const (
	DESCBCCRC Enctype = 1
	DESCBCMD4 Enctype = 2
	DESCBCMD5 Enctype = 3
	AES128    Enctype = 17 // aes128-cts-hmac-sha1-96
	AES256    Enctype = 18 // aes256-cts-hmac-sha1-96
)

// String returns the name that RFC 3961 and RFC 3962 give to the type.
func (e Enctype) String() string {
	switch e {
	case DESCBCCRC:
		return "des-cbc-crc"
	case DESCBCMD4:
		return "des-cbc-md4"
	case DESCBCMD5:
		return "des-cbc-md5"
	case AES128:
		return "aes128-cts-hmac-sha1-96"
	case AES256:
		return "aes256-cts-hmac-sha1-96"
	}
	return fmt.Sprintf("encryption type %d", int32(e))
}

// UsageTicket is the key usage of the encrypted part of a ticket (RFC 4120 §7.5.1).
const UsageTicket = 2

const (
	confounderSize = aes.BlockSize
	checksumSize   = 96 / 8
)

var (
	// ErrEnctype says that a type of encryption is not supported.
	ErrEnctype = errors.New("krb5: encryption type not supported")

	// ErrIntegrity says that a ciphertext was made with another key, or changed.
	ErrIntegrity = errors.New("krb5: the checksum is wrong: another key, or changed data")
)

// A Key is a key that tickets are encrypted with. Any number of goroutines may use it.
type Key struct {
	enctype Enctype
	size    int
	base    cipher.Block
}

// NewKey returns a key of a type. The error wraps [ErrEnctype], or says that the length
// is wrong.
func NewKey(e Enctype, key []byte) (*Key, error) {
	var size int
	switch e {
	case AES128:
		size = 16
	case AES256:
		size = 32
	default:
		return nil, fmt.Errorf("%w: %s (supported: %s and %s)", ErrEnctype, e, AES256, AES128)
	}
	if len(key) != size {
		return nil, fmt.Errorf("krb5: a key of type %s has %d bytes, not %d", e, size, len(key))
	}
	base, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("krb5: %w", err)
	}
	return &Key{enctype: e, size: size, base: base}, nil
}

// Enctype is the key's type.
func (k *Key) Enctype() Enctype { return k.enctype }

// Encrypt encrypts plaintext for a key usage. rand gives the confounder, 16 bytes that
// make equal plaintexts look different.
func (k *Key) Encrypt(rand io.Reader, usage uint32, plaintext []byte) ([]byte, error) {
	out := make([]byte, confounderSize, confounderSize+len(plaintext)+checksumSize)
	if _, err := io.ReadFull(rand, out); err != nil {
		return nil, fmt.Errorf("krb5: no random bytes: %w", err)
	}
	out = append(out, plaintext...)
	sum := k.checksum(usage, out)
	if err := k.crypt(usage, out, encryptCTS); err != nil {
		return nil, err
	}
	return append(out, sum...), nil
}

// Decrypt checks and decrypts a ciphertext, which stays as it is. The error is
// [ErrIntegrity] unless the ciphertext is too short to be one.
func (k *Key) Decrypt(usage uint32, ciphertext []byte) ([]byte, error) {
	n := len(ciphertext) - checksumSize
	if n < confounderSize {
		return nil, fmt.Errorf("krb5: a ciphertext has %d bytes or more, not %d", confounderSize+checksumSize, len(ciphertext))
	}
	out := slices.Clone(ciphertext[:n])
	if err := k.crypt(usage, out, decryptCTS); err != nil {
		return nil, err
	}
	if !hmac.Equal(k.checksum(usage, out), ciphertext[n:]) {
		return nil, ErrIntegrity
	}
	return out[confounderSize:], nil
}

// checksum is of the plaintext with its confounder.
func (k *Key) checksum(usage uint32, plaintext []byte) []byte {
	mac := hmac.New(sha1.New, derive(k.base, k.size, usage, integrity))
	mac.Write(plaintext)
	return mac.Sum(nil)[:checksumSize]
}

func (k *Key) crypt(usage uint32, data []byte, cts func(cipher.Block, []byte)) error {
	c, err := aes.NewCipher(derive(k.base, k.size, usage, encryption))
	if err != nil {
		return fmt.Errorf("krb5: %w", err)
	}
	cts(c, data)
	return nil
}
