//go:build unix

package crc32c

import (
	"hash/crc32"
	"testing"

	"golang.org/x/sys/unix"
)

// island returns memory between pages that must not be touched.
func island(t *testing.T, octets int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	if octets%page != 0 {
		octets += page - octets%page
	}
	all, err := unix.Mmap(-1, 0, octets+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{all[:page], all[page+octets:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : page+octets]
}

// A read or a write beyond the octets ends the process.
func TestNothingBeyondTheOctetsIsTouched(t *testing.T) {
	const most = 3000
	src, dst := island(t, most), island(t, most)
	copy(src, random(len(src)))
	inEachTier(t, func(t *testing.T) {
		for n := range most + 1 {
			last := len(src) - n
			for _, s := range [][]byte{src[:n], src[last:]} {
				want := crc32.Update(0, reference, s)
				if got := Update(0, s); got != want {
					t.Fatalf("%d octets: %08x, not %08x", n, got, want)
				}
				for _, d := range [][]byte{dst[:n], dst[last:]} {
					if got := Copy(d, s, 0); got != want {
						t.Fatalf("%d octets, copied: %08x, not %08x", n, got, want)
					}
				}
			}
		}
	})
}
