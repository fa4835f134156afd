package sockio

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/host/memfault"
)

// A piece that can't be read is an error of its own, and the stream goes on.
func TestPieceThatCannotBeRead(t *testing.T) {
	memfault.Guard()
	bad, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(bad); err != nil {
			t.Error(err)
		}
	})
	for _, k := range kinds {
		if k.memory {
			continue // the kernel has no part in it
		}
		t.Run(k.name, func(t *testing.T) {
			ac, bc := k.open(t)
			a, b := New(ac), New(bc)
			defer func(all ...net.Conn) {
				for _, c := range all {
					_ = c.Close()
				}
			}(ac, bc)
			for _, wait := range []bool{false, true} {
				for _, pieces := range [][][]byte{{bad}, {bad, []byte("x")}} {
					if n, err := a.Writev(pieces, wait); n != 0 || !errors.As(err, new(*memfault.Error)) {
						t.Errorf("wait %v: %d, %v", wait, n, err)
					}
				}
				good := []byte("good")
				n, err := a.Writev([][]byte{good, bad}, wait)
				if n < len(good) && !errors.As(err, new(*memfault.Error)) || n > len(good) {
					t.Errorf("behind a good one, wait %v: %d, %v", wait, n, err)
				}
				if n < len(good) {
					if n, err := a.Writev([][]byte{good[n:]}, wait); err != nil {
						t.Error(n, err)
					}
				}
				got := make([]byte, 0, len(good))
				for len(got) < len(good) {
					n, err := b.ReadInto(func() []byte { return got[len(got):cap(got)] }, func() {})
					if err != nil {
						t.Fatal(err)
					}
					got = got[:len(got)+n]
				}
				if string(got) != string(good) {
					t.Errorf("%q has come", got)
				}
			}
			_ = a.Close()
			_ = b.Close()
		})
	}
}
