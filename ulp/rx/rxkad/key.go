package rxkad

import (
	"crypto/hmac"
	"crypto/md5"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"urnic/ulp/rx/rxkad/fcrypt"
	"urnic/ulp/rx/rxkad/krb5"
)

// A Key is a session key, or a DES key of a service. The lowest bit of each byte is its
// parity.
type Key [fcrypt.KeySize]byte

// String keeps keys out of logs.
func (Key) String() string { return "(key)" }

// GoString keeps keys out of logs.
func (k Key) GoString() string { return k.String() }

// NewKey makes a session key of random bytes.
func NewKey(rand io.Reader) (Key, error) {
	for range 256 { // a weak key comes once in 2⁵² times, unless rand is broken
		var k Key
		if _, err := io.ReadFull(rand, k[:]); err != nil {
			return Key{}, fmt.Errorf("rxkad: no random bytes for a session key: %w", err)
		}
		if k = k.odd(); !k.weak() {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("rxkad: no session key: the random bytes make weak keys only")
}

// DeriveKey makes the session key of rxkad from the session key of a Kerberos ticket. A
// DES key is used as it is. Any other key goes into HMAC-MD5, over a counter, the word
// rxkad and the number of bits wanted; the first result that is no weak key is taken.
func DeriveKey(e krb5.Enctype, key []byte) (Key, error) {
	switch e {
	case krb5.DESCBCCRC, krb5.DESCBCMD4, krb5.DESCBCMD5:
		if len(key) != len(Key{}) {
			return Key{}, fail(CodeBadTicket, "a DES session key of %d bytes", len(key))
		}
		return Key(key), nil
	case 5, 7, 16: // triple DES: only the bits without parity are random
		if len(key)%8 != 0 {
			return Key{}, fail(CodeBadTicket, "a triple DES session key of %d bytes", len(key))
		}
		key = withoutParity(key)
	case 0, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15: // no encryption, or not assigned, or certificates
		return Key{}, fail(CodeBadTicket, "a session key of type %d", e)
	default:
	}
	if e < 0 || len(key) < 7 {
		return Key{}, fail(CodeBadTicket, "a session key of type %d with %d bytes", e, len(key))
	}
	mac := hmac.New(md5.New, key)
	return firstStrong(func(counter byte) (k Key) {
		mac.Reset()
		mac.Write([]byte{counter})
		mac.Write([]byte("rxkad\x00\x00\x00\x00\x40"))
		copy(k[:], mac.Sum(nil))
		return k
	})
}

// firstStrong tries candidates until one is not weak.
func firstStrong(candidate func(counter byte) Key) (Key, error) {
	for counter := 1; counter < 256; counter++ {
		if k := candidate(byte(counter)).odd(); !k.weak() {
			return k, nil
		}
	}
	return Key{}, fail(CodeBadTicket, "the session key makes weak keys only")
}

// withoutParity undoes how RFC 3961 §6.3.1 makes a triple DES key of random bits: it
// takes 7 bytes as they are, and the lowest bits of them as the eighth.
func withoutParity(key []byte) []byte {
	out := make([]byte, 0, len(key)/8*7)
	for group := range slices.Chunk(key, 8) {
		for i, b := range group[:7] {
			out = append(out, b&^1|group[7]>>(i+1)&1)
		}
	}
	return out
}

// odd gives each byte an odd number of ones.
func (k Key) odd() Key {
	for i, b := range k {
		if bits.OnesCount8(b)%2 == 0 {
			k[i] = b ^ 1
		}
	}
	return k
}

// weak reports whether DES with this key, of odd parity, is undone by the same key or by
// another one. The two halves of such a key, as DES makes them, have each a pattern that
// does not change, or does nothing but alternate, when it is rotated.
func (k Key) weak() bool {
	return slices.Contains(weakKeys[:], k)
}

var weakKeys = [16]Key{
	// weak
	{0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01},
	{0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe},
	{0x1f, 0x1f, 0x1f, 0x1f, 0x0e, 0x0e, 0x0e, 0x0e},
	{0xe0, 0xe0, 0xe0, 0xe0, 0xf1, 0xf1, 0xf1, 0xf1},
	// semi-weak
	{0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe},
	{0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01, 0xfe, 0x01},
	{0x1f, 0xe0, 0x1f, 0xe0, 0x0e, 0xf1, 0x0e, 0xf1},
	{0xe0, 0x1f, 0xe0, 0x1f, 0xf1, 0x0e, 0xf1, 0x0e},
	{0x01, 0xe0, 0x01, 0xe0, 0x01, 0xf1, 0x01, 0xf1},
	{0xe0, 0x01, 0xe0, 0x01, 0xf1, 0x01, 0xf1, 0x01},
	{0x1f, 0xfe, 0x1f, 0xfe, 0x0e, 0xfe, 0x0e, 0xfe},
	{0xfe, 0x1f, 0xfe, 0x1f, 0xfe, 0x0e, 0xfe, 0x0e},
	{0x01, 0x1f, 0x01, 0x1f, 0x01, 0x0e, 0x01, 0x0e},
	{0x1f, 0x01, 0x1f, 0x01, 0x0e, 0x01, 0x0e, 0x01},
	{0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1, 0xfe},
	{0xfe, 0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1},
}
