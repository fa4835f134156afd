package memfault_test

import (
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/host/memfault"
)

// The ways in which memory is lost. Each returns a page.
var ways = map[string]func(t *testing.T) []byte{
	"made inaccessible": func(t *testing.T) []byte {
		p := pages(t, 2)
		return p[len(p)/2:]
	},
	"unmapped": func(t *testing.T) []byte {
		// Where the kernel puts nothing by itself, so that nobody gets it meanwhile.
		hint := uintptr(0x1234_5000)
		if bits.UintSize == 64 {
			hint <<= 16
		}
		p, err := unix.MmapPtr(-1, 0, unsafe.Add(unsafe.Pointer(nil), hint), uintptr(unix.Getpagesize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.MunmapPtr(p, uintptr(unix.Getpagesize())); err != nil {
			t.Fatal(err)
		}
		return unsafe.Slice((*byte)(p), unix.Getpagesize())
	},
	"of a file that was truncated": truncated, // which is SIGBUS
}

// truncated returns a page of a mapped file that has none.
func truncated(t *testing.T) []byte {
	t.Helper()
	size := unix.Getpagesize()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	p, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(p); err != nil {
			t.Error(err)
		}
	})
	p[0] = 1
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return p
}

// readOnly returns a page that can be read, and not written.
func readOnly(t *testing.T) []byte {
	t.Helper()
	p := pages(t, 2)
	p = p[:len(p)/2]
	if err := unix.Mprotect(p, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	return p
}

func wordOf(p []byte) *uint64 { return (*uint64)(unsafe.Pointer(unsafe.SliceData(p))) }

func addOne(n uint64) uint64 { return n + 1 }

// wantFault checks that an error says of a page that it can't be touched.
func wantFault(t *testing.T, what string, err error, page []byte) {
	t.Helper()
	var fault *memfault.Error
	low := uintptr(unsafe.Pointer(unsafe.SliceData(page)))
	if !errors.As(err, &fault) || fault.Addr < low || fault.Addr >= low+uintptr(len(page)) {
		t.Errorf("%s: %v; want a fault in the page at 0x%x", what, err, low)
	}
}

func TestEachWayToLoseMemoryIsAnError(t *testing.T) {
	memfault.Guard()
	for name, lose := range ways {
		t.Run(name, func(t *testing.T) {
			p := lose(t)
			other := make([]byte, 64)
			wantFault(t, "copy to", memfault.Copy(p, other), p)
			wantFault(t, "copy from", memfault.Copy(other, p), p)
			wantFault(t, "touch", memfault.Touch(p), p)
			_, err := memfault.Update(wordOf(p[64:]), addOne)
			wantFault(t, "update", err, p)
			wantFault(t, "do", memfault.Do(func() { other[0] = p[100] }), p)
		})
	}
}

func TestReadOnlyMemoryCanBeReadOnly(t *testing.T) {
	memfault.Guard()
	p := readOnly(t)
	other := make([]byte, 64)
	if err := errors.Join(memfault.Copy(other, p), memfault.Touch(p)); err != nil {
		t.Error(err)
	}
	wantFault(t, "copy to", memfault.Copy(p, other), p)
	_, err := memfault.Update(wordOf(p), addOne)
	wantFault(t, "update", err, p)
}

func TestUpdatesAreAtomic(t *testing.T) {
	memfault.Guard()
	const each, users = 500, 4
	w := wordOf(pages(t, 2))
	var all sync.WaitGroup
	for range users {
		all.Go(func() {
			for range each {
				if _, err := memfault.Update(w, addOne); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range each {
		atomic.AddUint64(w, 1)
	}
	all.Wait()
	if got := atomic.LoadUint64(w); got != (users+1)*each {
		t.Errorf("%d; want %d", got, (users+1)*each)
	}
}

// A panic that has nothing to do with memory goes on.
func TestFaultsOfOthersAreNotTaken(t *testing.T) {
	memfault.Guard()
	const want = "a bug"
	defer func() {
		if got := recover(); got != want {
			t.Errorf("the panic is %v; want %v", got, want)
		}
	}()
	_ = memfault.Do(func() { panic(want) })
	t.Error("the panic has ended")
}
