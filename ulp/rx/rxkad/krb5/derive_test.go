package krb5

import (
	"bytes"
	"crypto/aes"
	"testing"
)

// The keys of the first password in RFC 3962 §B: what PBKDF2 makes of it, and what
// derivation makes of that. MIT's tests go on from there to a key usage.
const (
	password128 = "cdedb5281bb2f801565a1122b2563515"
	password256 = password128 + "0ad1f7a04bb9f3a333ecc0e2e1f70837"
	key128      = "42263c6e89f4fc28b8df68ee09799f15"
	key256      = "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161"
)

func TestKnownDerivations(t *testing.T) {
	for _, v := range []struct{ key, constant, derived string }{
		{password128, "6b65726265726f73", key128},
		{password256, "6b65726265726f73", key256},
		{key128, "0000000299", "34280a382bc92769b2da2f9ef066854b"},
		{key128, "00000002aa", "5b14fc4e250e14ddf9dccf1af6674f53"},
		{key128, "0000000255", "4ed31063621684f09ae8d89991af3e8f"},
		{key256, "0000000299", "bfab388bdcb238e9f9c98d6a878304f04d30c82556375ac507a7a852790f4674"},
		{key256, "00000002aa", "c7cfd9cd75fe793a586a542d87e0d1396f1134a104bb1a9190b8c90ada3ddf37"},
		{key256, "0000000255", "97151b4c76945063e2eb0529dc067d97d7bba90776d8126d91f34f3101aea8ba"},
	} {
		base, err := aes.NewCipher(unhex(t, v.key))
		if err != nil {
			t.Fatal(err)
		}
		want := unhex(t, v.derived)
		if got := deriveRandom(base, len(want), unhex(t, v.constant)); !bytes.Equal(got, want) {
			t.Errorf("%s by %s: %x, want %x", v.key, v.constant, got, want)
		}
	}
}

func TestEncryptionAndIntegrityHaveTheirOwnKeys(t *testing.T) {
	base, err := aes.NewCipher(unhex(t, key128))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := derive(base, 16, UsageTicket, encryption), unhex(t, "5b14fc4e250e14ddf9dccf1af6674f53"); !bytes.Equal(got, want) {
		t.Errorf("encryption: %x, want %x", got, want)
	}
	if got, want := derive(base, 16, UsageTicket, integrity), unhex(t, "4ed31063621684f09ae8d89991af3e8f"); !bytes.Equal(got, want) {
		t.Errorf("integrity: %x, want %x", got, want)
	}
}
