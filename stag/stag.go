package stag

import "fmt"

// An STag is a Steering Tag: 24 bits of index, which the RNIC chooses, over 8
// bits of key. The zero STag names no memory.
type STag uint32

const (
	// KeyBits is the width of the key part of an STag.
	KeyBits = 8
	// MaxIndex is the largest index; index 0 is never allocated.
	MaxIndex = 1<<24 - 1
)

// Make joins an index (24 bits) and a key into an STag.
func Make(index uint32, key uint8) STag { return STag(index<<KeyBits | uint32(key)) }

// Index returns the part of s by which the RNIC finds the memory.
func (s STag) Index() uint32 { return uint32(s) >> KeyBits }

// Key returns the part of s that must match the key with which the memory was
// last made valid.
func (s STag) Key() uint8 { return uint8(s) }

// WithKey returns s with another key.
func (s STag) WithKey(key uint8) STag { return Make(s.Index(), key) }

// String returns the STag in hexadecimal, as captures and logs show it.
func (s STag) String() string { return fmt.Sprintf("0x%08x", uint32(s)) }
