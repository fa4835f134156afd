package krb5

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// Ciphertexts that MIT's implementation has made.
var knownCiphertexts = []struct {
	enctype     Enctype
	usage       uint32
	plain       string
	key, sealed string
}{
	{
		AES128, 0, "", "5a5c0f0ba54f3828b2195e66ca24a289",
		"49ff8e11c173d9583a3254fbe7b1f1df36c538e8416784a1672e6676",
	},
	{
		AES128, 1, "1", "98450e3f3baa13f5c99beb936981b06f",
		"f86742f537b35dc2174a4dbaa920faf9042090b065e1ebb1cad9a65394",
	},
	{
		AES128, 2, "9 bytesss", "9062430c8cda3388922e6d6a509f5b7a",
		"68fb9679601f45c78857b2bf820fd6e53eca8d42fd4b1d7024a09205abb7cd2ec26c355d2f",
	},
	{
		AES128, 3, "13 bytes byte", "033ee6502c54fd23e27791e987983827",
		"ec366d0327a933bf49330e650e49bc6b974637fe80bf532fe51795b4809718e6194724db948d1fd637",
	},
	{
		AES128, 4, "30 bytes bytes bytes bytes byt", "dceeb70b3de76562e689226c76429148",
		"c96081032d5d8eeb7e32b4089f789d0faa481dea74c0f97cbf3146ddfcf8e800156ecb532fc203e30ff600b63b350939fece510f02d7ff1e7bac",
	},
	{
		AES256, 0, "", "17f275f2954f2ed1f90c377ba7f4d6a369aa0136e0bf0c927ad6133c693759a9",
		"e5094c55ee7b38262e2b044280b069379a95bf95bd8376fb3281b435",
	},
	{
		AES256, 1, "1", "b9477e1ff0329c0050e20ce6c72d2dff27e8fe541ab0954429a9cb5b4f7b1e2a",
		"406150b97aeb76d43b36b62cc1ecdfbe6f40e95755e0beb5c27825f3a4",
	},
}

func TestKnownCiphertextsOfKeys(t *testing.T) {
	for _, v := range knownCiphertexts {
		k, err := NewKey(v.enctype, unhex(t, v.key))
		if err != nil {
			t.Fatal(err)
		}
		sealed := unhex(t, v.sealed)
		kept := slices.Clone(sealed)
		plain, err := k.Decrypt(v.usage, sealed)
		if err != nil || string(plain) != v.plain {
			t.Errorf("%s %q: opened %q, %v", v.enctype, v.plain, plain, err)
		}
		if !bytes.Equal(sealed, kept) {
			t.Errorf("%s %q: decrypting has changed the ciphertext", v.enctype, v.plain)
		}

		// With the confounder that was used, the ciphertext is the same.
		again, err := k.Encrypt(bytes.NewReader(confounder(t, k, v.usage, sealed)), v.usage, []byte(v.plain))
		if err != nil || !bytes.Equal(again, sealed) {
			t.Errorf("%s %q: %x, %v, want %x", v.enctype, v.plain, again, err, sealed)
		}
	}
}

func confounder(t *testing.T, k *Key, usage uint32, sealed []byte) []byte {
	t.Helper()
	plain := slices.Clone(sealed[:len(sealed)-checksumSize])
	if err := k.crypt(usage, plain, decryptCTS); err != nil {
		t.Fatal(err)
	}
	return plain[:confounderSize]
}

func TestAnyChangedBitOfACiphertextIsNoticed(t *testing.T) {
	for _, v := range knownCiphertexts {
		k, err := NewKey(v.enctype, unhex(t, v.key))
		if err != nil {
			t.Fatal(err)
		}
		sealed := unhex(t, v.sealed)
		for i := range 8 * len(sealed) {
			sealed[i/8] ^= 1 << (i % 8)
			if plain, err := k.Decrypt(v.usage, sealed); !errors.Is(err, ErrIntegrity) {
				t.Errorf("%s, bit %d: opened %q, %v", v.enctype, i, plain, err)
			}
			sealed[i/8] ^= 1 << (i % 8)
		}
		if plain, err := k.Decrypt(v.usage+1, sealed); !errors.Is(err, ErrIntegrity) {
			t.Errorf("%s, another usage: opened %q, %v", v.enctype, plain, err)
		}
	}
}

func TestCiphertextsTooShortToBeOneAreRefused(t *testing.T) {
	k, err := NewKey(AES128, make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	for n := range confounderSize + checksumSize {
		if plain, err := k.Decrypt(UsageTicket, make([]byte, n)); err == nil {
			t.Errorf("%d bytes: opened %x", n, plain)
		}
	}
}

func TestKeysOfOtherTypesAndLengthsAreRefused(t *testing.T) {
	for e := Enctype(-1); e < 30; e++ {
		_, err := NewKey(e, make([]byte, 32))
		switch e {
		case AES256:
			if err != nil {
				t.Error(err)
			}
		case AES128:
			if err == nil || errors.Is(err, ErrEnctype) || !strings.Contains(err.Error(), "has 16 bytes, not 32") {
				t.Error(err)
			}
		default:
			if !errors.Is(err, ErrEnctype) {
				t.Errorf("type %d: %v", e, err)
			}
		}
	}
}

func TestEncryptWantsRandomBytes(t *testing.T) {
	k, err := NewKey(AES256, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Encrypt(bytes.NewReader(make([]byte, 15)), UsageTicket, nil); err == nil {
		t.Error("15 bytes were enough")
	}
	a, err1 := k.Encrypt(bytes.NewReader(make([]byte, 16)), UsageTicket, []byte("x"))
	b, err2 := k.Encrypt(bytes.NewReader(bytes.Repeat([]byte{1}, 16)), UsageTicket, []byte("x"))
	if err1 != nil || err2 != nil || bytes.Equal(a, b) {
		t.Errorf("%x and %x", a, b)
	}
}

func TestTypesOfEncryptionHaveNames(t *testing.T) {
	for e, want := range map[Enctype]string{
		AES128: "aes128-cts-hmac-sha1-96", AES256: "aes256-cts-hmac-sha1-96", DESCBCCRC: "des-cbc-crc",
		DESCBCMD4: "des-cbc-md4", DESCBCMD5: "des-cbc-md5", 23: "encryption type 23", -1: "encryption type -1",
	} {
		if got := e.String(); got != want {
			t.Errorf("%d is %q, want %q", e, got, want)
		}
	}
}
