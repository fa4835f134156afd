// Package memfault reads and writes memory of the consumer's that may be gone: C
// programs can unmap what they have registered, and nothing pins it as a kernel would
// for hardware. What would end the process by SIGSEGV or SIGBUS is an error here.
package memfault

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

var guarded atomic.Bool

// Guard makes the process one that has such memory. Until then, Copy and Touch don't
// look out for faults, which would cost each small message a tenth of its time: memory
// of Go's is never gone.
func Guard() { guarded.Store(true) }

// An Error says that memory could not be touched.
type Error struct {
	Addr uintptr // where
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("the memory at 0x%x is not mapped, or not for this access: deregister regions before unmapping them", e.Addr)
}

// Copy copies src to dst, as much as fits. It returns an *Error if either can't be
// touched; what precedes that may have been copied.
func Copy(dst, src []byte) error {
	if !guarded.Load() {
		copy(dst, src)
		return nil
	}
	return copyGuarded(dst, src)
}

func copyGuarded(dst, src []byte) (err error) {
	old := debug.SetPanicOnFault(true)
	defer end(old, &err)
	copy(dst, src)
	return nil
}

// pageSize is the least there is: of larger ones, some octets more are read.
const pageSize = 4 << 10

// Touch reads an octet of each page. It returns an *Error if one can't be read.
func Touch(p []byte) error {
	if !guarded.Load() {
		return nil
	}
	return touchGuarded(p)
}

func touchGuarded(p []byte) (err error) {
	old := debug.SetPanicOnFault(true)
	defer end(old, &err)
	look(p)
	return nil
}

// look reads an octet of each page, which the compiler must not leave out. What it
// reads does not matter, so it may be what others write meanwhile: the target of
// atomics of other streams.
//
//go:noinline
//go:norace
func look(p []byte) (sum byte) {
	for i := 0; i < len(p); i += pageSize {
		sum += p[i]
	}
	if len(p) > 0 {
		sum += p[len(p)-1]
	}
	return sum
}

// end restores what a fault does, and makes the panic of one an error: nothing else
// in a copy can panic.
func end(old bool, err *error) {
	debug.SetPanicOnFault(old)
	switch r := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }: // see debug.SetPanicOnFault
		*err = &Error{Addr: r.Addr()}
	default: // of addresses that no memory can have, the runtime does not tell which
		*err = &Error{}
	}
}
