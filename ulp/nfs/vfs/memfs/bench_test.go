package memfs

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"urnic/ulp/nfs/vfs"
)

// Benchmarks say what a copy through the FS costs beside copy itself.
func BenchmarkData(b *testing.B) {
	const size = 64 << 20
	for _, n := range []int{4 << 10, 1 << 20} {
		whole := make([]byte, size)
		for i := range whole {
			whole[i] = byte(i)
		}
		each := func(name string, do func(b *testing.B, p []byte, off uint64)) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					p := make([]byte, n)
					for pb.Next() {
						do(b, p, uint64(rand.IntN(size/n)*n))
					}
				})
			})
		}
		fs := New(Options{})
		h := touch(b, fs, "f")
		if err := fs.Write(b.Context(), h, whole, 0, false); err != nil {
			b.Fatal(err)
		}
		each("copy", func(_ *testing.B, p []byte, off uint64) { copy(p, whole[off:]) })
		each("Read", func(b *testing.B, p []byte, off uint64) {
			if _, _, err := fs.Read(b.Context(), h, p, off); err != nil {
				b.Error(err)
			}
		})
		each("Write", func(b *testing.B, p []byte, off uint64) {
			if err := fs.Write(b.Context(), h, p, off, false); err != nil {
				b.Error(err)
			}
		})
		_ = fs.Close()
	}
}

// BenchmarkFill writes a new file of 64 MiB.
func BenchmarkFill(b *testing.B) {
	p := make([]byte, 1<<20)
	fs := New(Options{})
	defer func() { _ = fs.Close() }()
	b.SetBytes(64 << 20)
	for b.Loop() {
		h := touch(b, fs, "f")
		for i := range 64 {
			if err := fs.Write(b.Context(), h, p, uint64(i)<<20, false); err != nil {
				b.Fatal(err)
			}
		}
		if err := fs.Remove(b.Context(), fs.Root(), "f"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNames(b *testing.B) {
	fs := New(Options{})
	defer func() { _ = fs.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		h := touch(b, fs, "f")
		if _, _, err := fs.Lookup(b.Context(), fs.Root(), "f"); err != nil {
			b.Fatal(err)
		}
		if _, err := fs.GetAttr(b.Context(), h); err != nil {
			b.Fatal(err)
		}
		if err := fs.Remove(b.Context(), fs.Root(), "f"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadDir(b *testing.B) {
	fs := New(Options{})
	defer func() { _ = fs.Close() }()
	for i := range 10000 {
		touch(b, fs, fmt.Sprint(i))
	}
	for b.Loop() {
		if _, err := fs.ReadDir(b.Context(), fs.Root(), 0, true, func(vfs.Entry) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
