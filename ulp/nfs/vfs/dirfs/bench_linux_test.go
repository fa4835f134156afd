package dirfs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// BenchmarkRead says what a read through the FS costs beside the system call alone.
func BenchmarkRead(b *testing.B) {
	const size = 16 << 20
	dir := b.TempDir()
	if err := os.WriteFile(dir+"/f", make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	fs := serve(b, dir, Options{})
	h, _, err := fs.Lookup(b.Context(), fs.Root(), "f")
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(dir + "/f")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, n := range []int{4 << 10, 1 << 20} {
		p := make([]byte, n)
		at := func() int64 { return int64(rand.IntN(size/n) * n) }
		b.Run(fmt.Sprintf("pread/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := f.ReadAt(p, at()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("Read/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, _, err := fs.Read(b.Context(), h, p, uint64(at())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
