package rnic

import (
	"unsafe"

	"urnic/internal/host/memcheck"
	"urnic/stag"
)

// Access is a set of rights to a memory region or window; package stag
// documents each of them.
type Access = stag.Access

// The rights.
const (
	LocalWrite       = stag.LocalWrite
	RemoteRead       = stag.RemoteRead
	RemoteWrite      = stag.RemoteWrite
	RemoteAtomic     = stag.RemoteAtomic
	BindWindow       = stag.BindWindow
	RemoteInvalidate = stag.RemoteInvalidate
)

// Memory describes what a region covers: a Go slice, or memory that Go does not
// own, and the TO of its first byte.
type Memory struct {
	Slice []byte // Go memory; or
	// Pointer and Length name memory that stays where it is until the region is
	// deregistered or invalidated: mapped memory, or memory of C. On Linux, it
	// is refused unless the process may read all of it, and write it if the
	// rights require that (RFC 5041 §8.3.2 rule 4). Other systems don't provide
	// this information.
	Pointer unsafe.Pointer
	Length  int

	// ZeroBased makes TOs start at 0. Else they start at Base, or, if Base is
	// zero, they are addresses.
	ZeroBased bool
	Base      uint64
}

// verify refuses memory that the process has no right to. A slice is memory of
// Go, or the responsibility of the code that made it.
func (m *Memory) verify(access Access) error {
	if m.Pointer == nil || m.Length <= 0 {
		return nil // region sees to that
	}
	write := access&(LocalWrite|RemoteWrite|RemoteAtomic) != 0
	if err := memcheck.Check(uintptr(m.Pointer), uint64(m.Length), write); err != nil {
		return &stag.RegisterError{Rule: "right to the buffer", Reason: err.Error()}
	}
	return nil
}

// region returns m, which verify has passed, as package stag wants it.
func (m *Memory) region() (mem []byte, base uint64, err error) {
	mem = m.Slice
	switch {
	case m.Pointer != nil && mem != nil:
		return nil, 0, &stag.RegisterError{Rule: "memory", Reason: "give a slice or a pointer, not both"}
	case m.Pointer == nil && m.Length != 0:
		return nil, 0, &stag.RegisterError{Rule: "memory", Reason: "a length is given, but no pointer"}
	case m.Length < 0:
		return nil, 0, &stag.RegisterError{Rule: "length", Reason: "it is negative"}
	case m.Pointer != nil:
		mem = unsafe.Slice((*byte)(m.Pointer), m.Length)
	}
	switch {
	case m.ZeroBased && m.Base != 0:
		return nil, 0, &stag.RegisterError{Rule: "virtual address", Reason: "a zero-based region has no other base"}
	case m.ZeroBased:
	case m.Base != 0:
		base = m.Base
	default:
		base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	}
	return mem, base, nil
}
