// Package memfault reads and writes memory of the consumer's that may be gone: C
// programs can unmap what they have registered, and nothing pins it as a kernel would
// for hardware. What would end the process by SIGSEGV or SIGBUS is an error here.
package memfault

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

var guarded atomic.Bool

// Guard makes the process one that has such memory. Until then, the functions of this
// package don't look out for faults, which would cost each small message a tenth of its
// time: memory of Go's is never gone.
func Guard() { guarded.Store(true) }

// Guarded reports whether Guard was called.
func Guarded() bool { return guarded.Load() }

// An Error says that memory could not be touched.
type Error struct {
	Addr uintptr // where
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("the memory at 0x%x is not mapped, or not for this access: deregister regions before unmapping them", e.Addr)
}

// Begin makes faults of this goroutine panics, whether or not Guard was called. End makes
// an *Error of them. Between the two, a function reads or writes memory that may be gone:
//
//	func sum(mem []byte) (n int, err error) {
//		defer memfault.End(memfault.Begin(), &err)
//		…
//	}
//
// After a fault it can't tell how far it has come. It holds no lock and calls nothing
// that does: nothing would release it.
func Begin() (old bool) { return debug.SetPanicOnFault(true) }

// Do runs f between Begin and End, if Guard was called.
func Do(f func()) error {
	if !guarded.Load() {
		f()
		return nil
	}
	return doGuarded(f)
}

func doGuarded(f func()) (err error) {
	defer End(Begin(), &err)
	f()
	return nil
}

// Update replaces a word by what change makes of it, in one step for all who use
// package sync/atomic, and returns the word before. It may call change several times.
func Update(word *uint64, change func(uint64) uint64) (before uint64, err error) {
	if err := writable(word); err != nil {
		return 0, err
	}
	err = Do(func() {
		for {
			before = atomic.LoadUint64(word)
			if atomic.CompareAndSwapUint64(word, before, change(before)) {
				return
			}
		}
	})
	return before, err
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
	defer End(Begin(), &err)
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
	defer End(Begin(), &err)
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

// badAddress is what the runtime says of a fault whose address it does not tell: that
// of address 0, and of those that no memory can have.
const badAddress = "runtime error: invalid memory address or nil pointer dereference"

// End restores what a fault does, and makes the panic of one an *Error. It has to be
// deferred. Any other panic goes on.
func End(old bool, err *error) {
	debug.SetPanicOnFault(old)
	r := recover()
	if r == nil {
		return
	}
	if fault, ok := r.(interface{ Addr() uintptr }); ok { // see debug.SetPanicOnFault
		*err = &Error{Addr: fault.Addr()}
		return
	}
	if e, ok := r.(runtime.Error); ok && e.Error() == badAddress {
		*err = &Error{}
		return
	}
	panic(r)
}
