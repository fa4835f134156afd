package crc32c

import (
	"fmt"
	"hash/crc32"
	"testing"
)

var result uint32

var lengths = []int{16, 32, 64, 80, 96, 128, 256, 512, 1024, 1440, 4096, 16 << 10, 64 << 10, 1 << 20}

func BenchmarkUpdate(b *testing.B) {
	buf := random(1 << 20)
	standard := crc32.MakeTable(crc32.Castagnoli)
	for _, n := range lengths {
		p := buf[:n]
		b.Run(fmt.Sprintf("hash/crc32/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				result ^= crc32.Update(0, standard, p)
			}
		})
		b.Run(fmt.Sprintf("portable/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				result ^= portable(0, p)
			}
		})
		for _, tr := range tiers()[1:] {
			b.Run(fmt.Sprintf("%s/%d", tr.name, n), func(b *testing.B) {
				tr.use(b)
				b.SetBytes(int64(n))
				for b.Loop() {
					result ^= Update(0, p)
				}
			})
		}
	}
}

// BenchmarkCopy compares with a copy that is then summed.
func BenchmarkCopy(b *testing.B) {
	src, dst := random(1<<20), random(1<<20)
	for _, n := range lengths {
		b.Run(fmt.Sprintf("twice/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(dst[:n], src)
				result ^= Update(0, dst[:n])
			}
		})
		b.Run(fmt.Sprintf("once/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				result ^= Copy(dst[:n], src, 0)
			}
		})
	}
}
