package krb5

import (
	"bytes"
	"crypto/aes"
	"slices"
	"testing"
)

// The vectors of RFC 3962 §B, with the key "chicken teriyaki".
func TestKnownCiphertexts(t *testing.T) {
	c, err := aes.NewCipher([]byte("chicken teriyaki"))
	if err != nil {
		t.Fatal(err)
	}
	const text = "I would like the General Gau's Chicken, please, and wonton soup."
	for _, v := range []struct {
		n      int
		sealed string
	}{
		{17, "c6353568f2bf8cb4d8a580362da7ff7f97"},
		{31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5"},
		{32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584"},
		{47, "97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e39312523a78662d5be7fcbcc98ebf5"},
		{48, "97687268d6ecccc0c07b25e25ecfe5849dad8bbb96c4cdc03bc103e1a194bbd839312523a78662d5be7fcbcc98ebf5a8"},
		{64, "97687268d6ecccc0c07b25e25ecfe58439312523a78662d5be7fcbcc98ebf5a84807efe836ee89a526730dbc2f7bc8409dad8bbb96c4cdc03bc103e1a194bbd8"},
	} {
		data := []byte(text[:v.n])
		encryptCTS(c, data)
		if want := unhex(t, v.sealed); !bytes.Equal(data, want) {
			t.Errorf("%d bytes: %x, want %x", v.n, data, want)
		}
		decryptCTS(c, data)
		if string(data) != text[:v.n] {
			t.Errorf("%d bytes: opened %q", v.n, data)
		}
	}
}

func TestEveryLengthComesBack(t *testing.T) {
	c, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for n := aes.BlockSize; n < 5*aes.BlockSize; n++ {
		plain := make([]byte, n)
		for i := range plain {
			plain[i] = byte(i * 7)
		}
		data := slices.Clone(plain)
		encryptCTS(c, data)
		if bytes.Equal(data, plain) {
			t.Errorf("%d bytes are not encrypted", n)
		}
		decryptCTS(c, data)
		if !bytes.Equal(data, plain) {
			t.Errorf("%d bytes: %x, want %x", n, data, plain)
		}
	}
}
