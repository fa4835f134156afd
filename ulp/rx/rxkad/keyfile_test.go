package rxkad_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
)

func words(w ...uint32) (b []byte) {
	for _, v := range w {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// keyFile is as asetkey writes it: with room for eight keys.
func keyFile(versions ...uint32) []byte {
	b := words(uint32(len(versions)))
	for _, v := range versions {
		b = append(append(b, words(v)...), desKey[:]...)
	}
	return append(b, make([]byte, max(0, 100-len(b)))...)
}

func TestKeyFile(t *testing.T) {
	keys := new(rxkad.Keyring)
	if err := keys.LoadKeyFile(keyFile(1, 2, 5)); err != nil || keys.Len() != 3 {
		t.Fatalf("%d keys, %v", keys.Len(), err)
	}
	for _, version := range []uint32{1, 2, 5} {
		ticket := forge(t, testKeys(t), desVersion, 0, contents)
		if _, key, err := keys.OpenTicket(version, ticket.Data); err != nil || key != version {
			t.Errorf("version %d: %d, %v", version, key, err)
		}
	}
}

// A record of a KeyFileExt, and its fields in front of the key.
func keyRecord(kind, version, enctype uint32, key []byte) []byte {
	return slices.Concat(words(16, kind, version, enctype, uint32(len(key))), key)
}

func TestKeyFileExt(t *testing.T) {
	aes := unhex(t, "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0")
	longer := slices.Concat(words(24, 2, 7, 17, 0xdead, 0xbeef, 16), aes[:16])
	keys := new(rxkad.Keyring)
	file := slices.Concat(words(5),
		keyRecord(2, kerberosVersion, uint32(krb5.AES256), aes),
		keyRecord(0, 9, 0, desKey[:]), // such keys count in the other file only
		keyRecord(1, 9, 18, make([]byte, 5)),
		keyRecord(2, 9, 99, make([]byte, 3)), // a type that is not supported
		longer)
	if err := keys.LoadKeyFileExt(file); err != nil || keys.Len() != 2 {
		t.Fatalf("%d keys, %v", keys.Len(), err)
	}
	ticket := forge(t, testKeys(t), kerberosVersion, krb5.AES256, contents)
	if _, _, err := keys.OpenTicket(ticket.Version, ticket.Data); err != nil {
		t.Error(err)
	}
	if _, err := keys.ForgeWith(7, krb5.AES128, contents, nil); err != nil {
		t.Error(err)
	}
}

func TestKeyFilesThatLie(t *testing.T) {
	aes := make([]byte, 32)
	for name, test := range map[string]struct {
		load func(*rxkad.Keyring, []byte) error
		file []byte
	}{
		"an empty KeyFile":               {(*rxkad.Keyring).LoadKeyFile, nil},
		"a KeyFile of 2³²-1 keys":        {(*rxkad.Keyring).LoadKeyFile, words(1<<32-1, 1, 2, 3)},
		"a KeyFile cut short":            {(*rxkad.Keyring).LoadKeyFile, keyFile(1, 2, 3, 4, 5, 6, 7, 8)[:99]},
		"an empty KeyFileExt":            {(*rxkad.Keyring).LoadKeyFileExt, nil},
		"a KeyFileExt of 2³²-1 keys":     {(*rxkad.Keyring).LoadKeyFileExt, slices.Concat(words(1<<32-1), keyRecord(2, 1, 18, aes))},
		"a key of 2³²-1 bytes":           {(*rxkad.Keyring).LoadKeyFileExt, slices.Concat(words(1, 16, 2, 1, 18, 1<<32-1), aes)},
		"a key cut short":                {(*rxkad.Keyring).LoadKeyFileExt, slices.Concat(words(1), keyRecord(2, 1, 18, aes))[:55]},
		"a head of 2³²-1 bytes":          {(*rxkad.Keyring).LoadKeyFileExt, slices.Concat(words(1, 1<<32-1, 2, 1, 18, 32), aes)},
		"a head that is too short":       {(*rxkad.Keyring).LoadKeyFileExt, slices.Concat(words(1, 15, 2, 1, 18, 32), aes)},
		"a second key that is not there": {(*rxkad.Keyring).LoadKeyFileExt, slices.Concat(words(2), keyRecord(2, 1, 18, aes))},
	} {
		keys := new(rxkad.Keyring)
		if err := test.load(keys, test.file); !errors.Is(err, rxkad.ErrKeyFile) {
			t.Errorf("%s: %v", name, err)
		}
		if keys.Len() != 0 {
			t.Errorf("%s: %d keys were added", name, keys.Len())
		}
	}
}

// A key that can't be used leaves those that were there.
func TestKeyFilesWithKeysThatCantBeUsed(t *testing.T) {
	keys := testKeys(t)
	before := keys.Len()
	if err := keys.LoadKeyFileExt(slices.Concat(words(2), keyRecord(2, 8, 18, make([]byte, 32)), keyRecord(2, 9, 18, make([]byte, 31)))); err == nil {
		t.Error("an AES-256 key of 31 bytes was taken")
	}
	if err := keys.LoadKeyFile(keyFile(8, 256)); err == nil {
		t.Error("a DES key of version 256 was taken")
	}
	if keys.Len() != before {
		t.Errorf("%d keys, and there were %d", keys.Len(), before)
	}
}
