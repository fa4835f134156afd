package fcrypt

import (
	"strconv"
	"testing"
)

func BenchmarkChain(b *testing.B) {
	c := New([KeySize]byte{0x13, 0x57, 0x9b, 0xdf, 0x20, 0x46, 0x8a, 0xce})
	for _, direction := range []struct {
		name string
		run  func(iv uint64, data []byte) error
	}{
		{"encrypt", c.EncryptPCBC},
		{"decrypt", c.DecryptPCBC},
	} {
		for _, n := range []int{16, 1408, 16384} {
			b.Run(direction.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				data := make([]byte, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if err := direction.run(1, data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = New([KeySize]byte{1, 2, 3})
	}
}
