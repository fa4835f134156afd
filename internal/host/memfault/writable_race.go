//go:build race

package memfault

import (
	"unsafe"

	"urnic/internal/host/memcheck"
)

// writable returns an *Error if a word can't be written. The race detector carries
// atomics out in C, where a fault can't be recovered from.
func writable(word *uint64) error {
	if !guarded.Load() {
		return nil
	}
	if err := touchGuarded(unsafe.Slice((*byte)(unsafe.Pointer(word)), unsafe.Sizeof(*word))); err != nil {
		return err
	}
	addr := uintptr(unsafe.Pointer(word))
	if memcheck.Check(addr, uint64(unsafe.Sizeof(*word)), true) != nil {
		return &Error{Addr: addr}
	}
	return nil
}
