package stag

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
)

// An index finds entries by their 24-bit index: a hash table with open
// addressing. Indexes are random, so their low bits are the hash. Readers take
// no lock; writers hold Table.mu.
type index struct {
	slots atomic.Pointer[[]atomic.Pointer[Entry]] // a power of two of them
	live  int
	used  int // live and removed
}

// removed is in a slot whose entry is gone: a search continues behind it.
var removed = &Entry{}

const minSlots = 64

func (x *index) find(i uint32) *Entry {
	slots := x.slots.Load()
	if slots == nil {
		return nil
	}
	mask := uint32(len(*slots) - 1)
	for at := i & mask; ; at = (at + 1) & mask {
		e := (*slots)[at].Load()
		if e == nil || e.index == i && e != removed {
			return e
		}
	}
}

func (x *index) insert(e *Entry) {
	slots := x.slots.Load()
	if slots == nil || 2*(x.used+1) > len(*slots) { // never more than half full, so that find ends
		slots = x.rebuild()
	}
	x.put(*slots, e)
	x.live++
	x.used++
}

// rebuild moves the live entries to a table with slots for as many again.
func (x *index) rebuild() *[]atomic.Pointer[Entry] {
	size := minSlots
	for size < 4*(x.live+1) {
		size *= 2
	}
	fresh := make([]atomic.Pointer[Entry], size)
	if old := x.slots.Load(); old != nil {
		for i := range *old {
			if e := (*old)[i].Load(); e != nil && e != removed {
				x.put(fresh, e)
			}
		}
	}
	x.used = x.live
	x.slots.Store(&fresh)
	return &fresh
}

func (*index) put(slots []atomic.Pointer[Entry], e *Entry) {
	mask := uint32(len(slots) - 1)
	at := e.index & mask
	for slots[at].Load() != nil {
		at = (at + 1) & mask
	}
	slots[at].Store(e)
}

// remove removes an entry, if it is there.
func (x *index) remove(e *Entry) {
	if x.find(e.index) != e {
		return
	}
	slots := *x.slots.Load()
	mask := uint32(len(slots) - 1)
	at := e.index & mask
	for slots[at].Load() != e {
		at = (at + 1) & mask
	}
	slots[at].Store(removed)
	x.live--
}

// draw returns a random index that is not in use (RFC 5040 §8.1.1 rule 8).
func (x *index) draw() uint32 {
	for {
		if i := randomUint32() & MaxIndex; i != 0 && x.find(i) == nil {
			return i
		}
	}
}

func randomUint32() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}
