package fcrypt

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"testing"
)

func TestKnownBlocks(t *testing.T) {
	for _, v := range []struct {
		key           [KeySize]byte
		plain, sealed uint64
	}{
		{plain: 0, sealed: 0x0e0900c73ef7ed41},
		{
			key:    [KeySize]byte{0x11, 0x44, 0x77, 0xaa, 0xdd, 0x00, 0x33, 0x66},
			plain:  0x123456789abcdef0,
			sealed: 0xd8ed787477ec0680,
		},
	} {
		c := New(v.key)
		if got := c.Encrypt(v.plain); got != v.sealed {
			t.Errorf("key %x: %016x becomes %016x, want %016x", v.key, v.plain, got, v.sealed)
		}
		if got := c.Decrypt(v.sealed); got != v.plain {
			t.Errorf("key %x: %016x was %016x, want %016x", v.key, v.sealed, got, v.plain)
		}
	}
}

func TestCipherDoesWhatItsDefinitionSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var key [KeySize]byte
		binary.BigEndian.PutUint64(key[:], r.Uint64())
		c, plain := New(key), r.Uint64()
		want := defined(key, plain)
		if got := c.Encrypt(plain); got != want {
			t.Fatalf("key %x: %016x becomes %016x, want %016x", key, plain, got, want)
		}
		if got := c.Decrypt(want); got != plain {
			t.Fatalf("key %x: %016x was %016x, want %016x", key, want, got, plain)
		}
	}
}

// defined encrypts a block step by step, as doc.go describes it.
func defined(key [KeySize]byte, block uint64) uint64 {
	var k uint64
	for _, b := range key {
		k = k<<7 | uint64(b>>1)
	}
	half := [2]uint32{uint32(block >> 32), uint32(block)}
	for round := range 16 {
		var in, out [4]byte
		binary.BigEndian.PutUint32(in[:], half[(round+1)%2]^uint32(k))
		for position, from := range []int{1, 3, 2, 0} {
			out[position] = boxes[from][in[from]]
		}
		half[round%2] ^= bits.RotateLeft32(binary.BigEndian.Uint32(out[:]), 3)
		for range 11 {
			k = k>>1 | k&1<<55
		}
	}
	return uint64(half[0])<<32 | uint64(half[1])
}

func TestParityBitsOfTheKeyAreIgnored(t *testing.T) {
	key := [KeySize]byte{0x13, 0x57, 0x9b, 0xdf, 0x20, 0x46, 0x8a, 0xce}
	with := New(key)
	for i := range key {
		key[i] ^= 1
	}
	without := New(key)
	if with != without {
		t.Error("another parity makes another cipher")
	}
	key[3] ^= 2
	if New(key) == with {
		t.Error("another key makes the same cipher")
	}
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
