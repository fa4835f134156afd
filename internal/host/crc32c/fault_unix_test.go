//go:build unix

package crc32c

import (
	"errors"
	"hash/crc32"
	"testing"
	"unsafe"

	"urnic/internal/host/memfault"
)

// Memory that can't be touched is an error in the assembly, too, and leaves nothing
// behind.
func TestFaultsAreErrors(t *testing.T) {
	memfault.Guard()
	const most = 20000
	src, dst := island(t, most), island(t, most)
	copy(src, random(len(src)))
	own := make([]byte, len(src))
	beyond := func(p []byte, n int) []byte { return unsafe.Slice(unsafe.SliceData(p[len(p)-n:]), n+1) } // one byte too many
	wantFault := func(what string, n int, f func()) {
		t.Helper()
		if err := memfault.Do(f); !errors.As(err, new(*memfault.Error)) {
			t.Fatalf("%s, %d bytes: %v", what, n, err)
		}
	}
	inEachTier(t, func(t *testing.T) {
		for n := 0; n < most; n += 1 + n/7 {
			wantFault("sum", n, func() { Update(0, beyond(src, n)) })
			wantFault("copy from", n, func() { Copy(own, beyond(src, n), 0) })
			wantFault("copy to", n, func() { Copy(beyond(dst, n), own, 0) })
			if got, want := Update(0, src), crc32.Update(0, reference, src); got != want {
				t.Fatalf("after a fault: %08x, not %08x", got, want)
			}
		}
	})
}
