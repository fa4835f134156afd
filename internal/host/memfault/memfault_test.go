//go:build unix

package memfault_test

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/host/memfault"
)

// pages returns n pages, of which the last can't be touched.
func pages(t *testing.T, n int) []byte {
	t.Helper()
	size := unix.Getpagesize()
	p, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(p); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mprotect(p[(n-1)*size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFaultsAreErrors(t *testing.T) {
	memfault.Guard()
	p := pages(t, 3)
	last := len(p) / 3 * 2
	other := make([]byte, len(p))
	for name, err := range map[string]error{
		"copy to":   memfault.Copy(p, other),
		"copy from": memfault.Copy(other, p),
		"touch":     memfault.Touch(p[100:]),
		"its end":   memfault.Touch(p[last-1 : last+1]),
	} {
		var fault *memfault.Error
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		low := uintptr(unsafe.Pointer(&p[last]))
		if fault.Addr < low || fault.Addr >= low+uintptr(len(p)-last) {
			t.Errorf("%s: %v: not in what can't be touched", name, err)
		}
	}
}

// Where no memory can be, the fault does not tell the address.
func TestFaultsWhereNoMemoryCanBeAreErrors(t *testing.T) {
	memfault.Guard()
	beyond := uint64(1) << 63 // no address of 64 bits that can be; 0 where they have 32
	for _, base := range []uintptr{0, uintptr(beyond)} {
		header := struct {
			base     uintptr
			len, cap int
		}{base, 8, 8}
		p := *(*[]byte)(unsafe.Pointer(&header))
		for what, err := range map[string]error{"copy to": memfault.Copy(p, make([]byte, 8)), "copy from": memfault.Copy(make([]byte, 8), p), "touch": memfault.Touch(p)} {
			if fault := (*memfault.Error)(nil); !errors.As(err, &fault) {
				t.Errorf("%s 0x%x: %v", what, base, err)
			}
		}
	}
}

func TestWhatIsThereIsCopied(t *testing.T) {
	memfault.Guard()
	p := pages(t, 2)
	there := p[:len(p)/2]
	want := bytes.Repeat([]byte("x"), len(there))
	if err := errors.Join(memfault.Copy(there, want), memfault.Touch(there), memfault.Touch(nil), memfault.Copy(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(there, want) {
		t.Error("it has copied something else")
	}
}

// Each message goes through here.
func TestNoAllocations(t *testing.T) {
	memfault.Guard()
	dst, src := make([]byte, 64), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		_ = errors.Join(memfault.Copy(dst, src), memfault.Touch(src), memfault.Do(func() { dst[0] = src[1] }))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCopy64(b *testing.B) {
	memfault.Guard()
	dst, src := make([]byte, 64), make([]byte, 64)
	for b.Loop() {
		if err := memfault.Copy(dst, src); err != nil {
			b.Fatal(err)
		}
	}
}
