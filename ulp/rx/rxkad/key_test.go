package rxkad_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"errors"
	"io"
	"math/bits"
	"testing"
	"testing/iotest"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
)

func TestNewKeysAreStrongAndOfOddParity(t *testing.T) {
	if _, err := rxkad.NewKey(iotest.ErrReader(errors.New("empty"))); err == nil {
		t.Error("a key without random bytes")
	}
	// Zeros make a weak key, again and again.
	if k, err := rxkad.NewKey(nonces(0)); err == nil {
		t.Errorf("a key of zeros: %x", k[:])
	}
	weakFirst := io.MultiReader(bytes.NewReader(make([]byte, 8)), nonces(0x31))
	k, err := rxkad.NewKey(weakFirst)
	if err != nil || k != (rxkad.Key{0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31}) {
		t.Errorf("%x, %v", k[:], err)
	}
}

func TestWeakKeys(t *testing.T) {
	for _, k := range []rxkad.Key{
		{1, 1, 1, 1, 1, 1, 1, 1},
		{0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe},
		{0xe0, 0xfe, 0xe0, 0xfe, 0xf1, 0xfe, 0xf1, 0xfe},
	} {
		if !k.Weak() {
			t.Errorf("%x is weak", k[:])
		}
	}
	if desKey.Weak() || sessionKey.Odd().Weak() {
		t.Error("keys of these tests are weak")
	}
}

// DES is undone by the same key or its partner just for weak keys: so says the list.
func TestTheListOfWeakKeysIsThatOfFIPS74(t *testing.T) {
	n := 0
	for _, a := range []byte{0x01, 0x1f, 0xe0, 0xfe} {
		for _, b := range []byte{0x01, 0x1f, 0xe0, 0xfe} {
			half := func(x byte) byte { // the right half differs for the middle two
				switch x {
				case 0x1f:
					return 0x0e
				case 0xe0:
					return 0xf1
				}
				return x
			}
			k := rxkad.Key{a, b, a, b, half(a), half(b), half(a), half(b)}
			if !k.Weak() {
				t.Errorf("%x is not in the list", k[:])
			}
			n++
		}
	}
	if n != 16 {
		t.Errorf("%d keys", n)
	}
}

func TestParity(t *testing.T) {
	for b := range 256 {
		k := rxkad.Key{byte(b)}.Odd()
		if bits.OnesCount8(k[0])%2 != 1 || k[0]>>1 != byte(b)>>1 {
			t.Errorf("%02x became %02x", b, k[0])
		}
	}
}

// HMAC-MD5 over a counter, "rxkad", a zero and the number of bits.
func TestSessionKeysDerivedFromOtherTypes(t *testing.T) {
	long := bytes.Repeat([]byte{7}, 32)
	mac := hmac.New(md5.New, long)
	mac.Write([]byte("\x01rxkad\x00\x00\x00\x00\x40"))
	want := rxkad.Key(mac.Sum(nil)[:8]).Odd()
	for _, e := range []krb5.Enctype{krb5.AES128, krb5.AES256, 23, 25} {
		if got, err := rxkad.DeriveKey(e, long); err != nil || got != want {
			t.Errorf("type %d: %x, %v; want %x", e, got[:], err, want[:])
		}
	}
	for _, e := range []krb5.Enctype{krb5.DESCBCCRC, krb5.DESCBCMD4, krb5.DESCBCMD5} {
		if got, err := rxkad.DeriveKey(e, sessionKey[:]); err != nil || got != sessionKey {
			t.Errorf("type %d: %x, %v", e, got[:], err)
		}
	}
	for _, e := range []krb5.Enctype{5, 7, 16} {
		if got, err := rxkad.DeriveKey(e, bytes.Repeat(sessionKey[:], 3)); err != nil || got == (rxkad.Key{}) {
			t.Errorf("type %d: %x, %v", e, got[:], err)
		}
	}
	for _, bad := range []struct {
		e krb5.Enctype
		n int
	}{{-1, 32}, {0, 32}, {4, 32}, {6, 32}, {8, 32}, {15, 32}, {1, 7}, {1, 9}, {16, 23}, {18, 6}} {
		_, err := rxkad.DeriveKey(bad.e, make([]byte, bad.n))
		wantCode(t, err, rxkad.CodeBadTicket)
	}
}

func TestWeakDerivedKeysArePassedOver(t *testing.T) {
	weak, strong := rxkad.Key{1, 1, 1, 1, 1, 1, 1, 1}, rxkad.Key{2, 2, 2, 2, 2, 2, 2, 2}
	got, err := rxkad.FirstStrong(func(counter byte) rxkad.Key {
		if counter < 3 {
			return weak
		}
		return strong
	})
	if err != nil || got != strong.Odd() {
		t.Errorf("%x, %v", got[:], err)
	}
	_, err = rxkad.FirstStrong(func(byte) rxkad.Key { return weak })
	wantCode(t, err, rxkad.CodeBadTicket)
}

// RFC 3961 §6.3.1 puts the lowest bits of seven bytes into the eighth.
func TestTripleDESKeysWithoutParity(t *testing.T) {
	var random [7]byte
	for i := range random {
		random[i] = byte(37*i + 11)
	}
	var key [8]byte
	for i, b := range random {
		key[i] = b&^1 | 1 // some parity
		key[7] |= b & 1 << (i + 1)
	}
	if got := rxkad.WithoutParity(key[:]); !bytes.Equal(got, random[:]) {
		t.Errorf("%x, want %x", got, random)
	}
}
