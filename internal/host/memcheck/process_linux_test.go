package memcheck

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped returns the address of n octets that the system has mapped.
func mapped(t *testing.T, n, prot int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n, prot, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return mem
}

func TestMemoryOfThisProcess(t *testing.T) {
	page := unix.Getpagesize()
	mem := mapped(t, 4*page, unix.PROT_READ|unix.PROT_WRITE)
	addr := uintptr(unsafe.Pointer(&mem[0]))
	if err := unix.Mprotect(mem[page:2*page], unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(mem[3*page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	heap := make([]byte, 100_000)
	var stack [8]byte
	for _, tt := range []struct {
		name   string
		addr   uintptr
		n      int
		write  bool
		reason string // "": it is fine
	}{
		{"heap", uintptr(unsafe.Pointer(&heap[0])), len(heap), true, ""},
		{"stack", uintptr(unsafe.Pointer(&stack)), len(stack), true, ""},
		{"mapping", addr, page, true, ""},
		{"read-only, to be read", addr, 3 * page, false, ""},
		{"read-only, to be written", addr, 3 * page, true, "can't be written"},
		{"no rights", addr + uintptr(2*page), page + 1, false, "can't be read"},
		{"null", 0, 1, false, "not mapped"},
		{"first page", 8, 8, false, "not mapped"},
	} {
		err := Check(tt.addr, uint64(tt.n), tt.write)
		if tt.reason == "" && err != nil || tt.reason != "" && (!errors.As(err, new(*Error)) || !strings.Contains(err.Error(), tt.reason)) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.reason)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	mem := make([]byte, 4096)
	for b.Loop() {
		if err := Check(uintptr(unsafe.Pointer(&mem[0])), uint64(len(mem)), true); err != nil {
			b.Fatal(err)
		}
	}
}
