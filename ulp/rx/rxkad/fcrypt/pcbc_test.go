package fcrypt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestKnownChains(t *testing.T) {
	const key1, key2 = 0xf0e1d2c3b4a59687, 0xfedcba9876543210
	text := []byte("The quick brown fox jumps over the lazy dogs.\x00\x00\x00")
	for _, v := range []struct {
		key, iv uint64
		sealed  string
	}{
		{key1, key2, "00f00e1175e62382eeac98624451e484c359d8aa6460aef7d2d9137972a3450323b562d70cf527d1f8913cac442292ef"},
		{key2, key1, "ca90f59dcbd4d23c01887f3e316e629dd8e057a3063a42582a28fe72522fdde01989091c2a8e8c94fcc768e488aade0f"},
	} {
		var key [KeySize]byte
		binary.BigEndian.PutUint64(key[:], v.key)
		c, data := New(key), slices.Clone(text)
		if err := c.EncryptPCBC(v.iv, data); err != nil {
			t.Fatal(err)
		}
		if want := unhex(t, v.sealed); !bytes.Equal(data, want) {
			t.Errorf("key %016x: %x, want %x", v.key, data, want)
		}
		if err := c.DecryptPCBC(v.iv, data); err != nil || !bytes.Equal(data, text) {
			t.Errorf("key %016x: opened %q, %v", v.key, data, err)
		}
	}
}

func TestChainsOfEveryLength(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c := New([KeySize]byte{1, 2, 3, 4, 5, 6, 7, 8})
	for blocks := range 4*lanes + 1 {
		iv := r.Uint64()
		plain := make([]byte, blocks*BlockSize)
		for i := range plain {
			plain[i] = byte(r.Uint32())
		}
		want, chain := []byte{}, iv
		for b := range slices.Chunk(plain, BlockSize) {
			block := binary.BigEndian.Uint64(b)
			sealed := c.Encrypt(block ^ chain)
			want = binary.BigEndian.AppendUint64(want, sealed)
			chain = block ^ sealed
		}
		got := slices.Clone(plain)
		if err := c.EncryptPCBC(iv, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d blocks: %x, %v, want %x", blocks, got, err, want)
		}
		if err := c.DecryptPCBC(iv, got); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d blocks: opened %x, %v, want %x", blocks, got, err, plain)
		}
	}
}

func TestPartsOfBlocksAreRefused(t *testing.T) {
	c := New([KeySize]byte{})
	for n := range 3 * BlockSize {
		data := make([]byte, n)
		for _, err := range []error{c.EncryptPCBC(0, data), c.DecryptPCBC(0, slices.Clone(data))} {
			var length LengthError
			if bad := errors.As(err, &length); bad != (n%BlockSize != 0) {
				t.Errorf("%d bytes: %v", n, err)
			} else if bad && int(length) != n {
				t.Errorf("%d bytes: the error says %d", n, length)
			}
		}
		if n%BlockSize != 0 && !bytes.Equal(data, make([]byte, n)) {
			t.Errorf("%d bytes were refused, and have changed", n)
		}
	}
}

func TestChainsAllocateNothing(t *testing.T) {
	c, data := New([KeySize]byte{1}), make([]byte, 1416)
	if n := testing.AllocsPerRun(10, func() {
		_ = c.EncryptPCBC(1, data)
		_ = c.DecryptPCBC(1, data)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzChain(f *testing.F) {
	f.Add(uint64(0), uint64(0), []byte("eight by"))
	f.Fuzz(func(t *testing.T, key, iv uint64, plain []byte) {
		var k [KeySize]byte
		binary.BigEndian.PutUint64(k[:], key)
		c, data := New(k), slices.Clone(plain)
		if c.EncryptPCBC(iv, data) != nil {
			return
		}
		if err := c.DecryptPCBC(iv, data); err != nil || !bytes.Equal(data, plain) {
			t.Errorf("%x comes back as %x, %v", plain, data, err)
		}
	})
}
