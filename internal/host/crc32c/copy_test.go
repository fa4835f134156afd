package crc32c

import (
	"bytes"
	"hash/crc32"
	"testing"
)

func TestCopyOfEachLength(t *testing.T) {
	const most = 2048
	src := random(most + 8)
	dst := make([]byte, most+64)
	for n := range most + 1 {
		for _, tr := range tiers() {
			tr.use(t)
			clear(dst)
			at := n % 8
			s, d := src[at:at+n], dst[n%61:n%61+n]
			want := crc32.Update(5, reference, s)
			if got := Copy(d, s, 5); got != want {
				t.Fatalf("%s: %d octets: %08x, not %08x", tr.name, n, got, want)
			}
			if !bytes.Equal(d, s) {
				t.Fatalf("%s: %d octets are copied wrongly", tr.name, n)
			}
			for i, c := range dst {
				if c != 0 && (i < n%61 || i >= n%61+n) {
					t.Fatalf("%s: %d octets: wrote to %d, %d octets from the beginning", tr.name, n, i, i-n%61)
				}
			}
		}
	}
}

func TestCopyIntoLessCopiesWhatFits(t *testing.T) {
	src, dst := random(1000), make([]byte, 1000)
	inEachTier(t, func(t *testing.T) {
		for _, n := range []int{0, 5, 71, 72, 700} {
			clear(dst)
			if got, want := Copy(dst[:n:n], src, 0), Update(0, src[:n]); got != want {
				t.Errorf("into %d octets: %08x, not %08x", n, got, want)
			}
			if !bytes.Equal(dst[:n], src[:n]) || !bytes.Equal(dst[n:], make([]byte, 1000-n)) {
				t.Errorf("into %d octets: copied wrongly", n)
			}
			if got, want := Copy(dst, src[:n], 0), Update(0, src[:n]); got != want {
				t.Errorf("of %d octets: %08x, not %08x", n, got, want)
			}
		}
	})
}
