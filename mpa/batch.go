package mpa

import (
	"slices"
	"sync"

	"urnic/internal/host/memfault"
)

const (
	// A batch is short enough that what is checksummed or copied for it is still
	// in the processor's cache when the kernel copies it.
	batchLimit = 128 << 10  // bytes of a batch
	arenaSize  = batchLimit // bytes of a batch that are copied
	pieceLimit = 512        // pieces of a batch
)

var arenas = sync.Pool{New: func() any { return new([arenaSize]byte) }}

// A batch is a run of FPDUs that are being sent to the stream: pieces of an
// arena, which holds headers, trailers and small payloads, and pieces of the
// ULP's memory. It has an arena only while it is not empty.
type batch struct {
	holding
	arena    *[arenaSize]byte
	used     int      // bytes of the arena
	pieces   [][]byte // to be written, in order
	written  int      // pieces that are sent
	foreign  []int    // pieces, by number, that are the ULP's memory
	kept     []kept   // what was copied of them
	octets   int      // in pieces, not yet sent
	open     bool     // the last piece ends where the arena's used part does
	flushes  int
	posted   uint64 // bytes since the beginning
	accepted uint64
	fpdus    [][]byte // in the arena, not yet recorded; only with a Recorder
	lost     error    // a *MemoryError: the pieces that are left are the last
}

// A kept is an arena with pieces that were the ULP's memory.
type kept struct {
	arena *[arenaSize]byte
	used  int // bytes
	last  int // the number of the last piece
}

// fits reports whether an FPDU can be added that copies and refers to so many
// bytes.
func (b *batch) fits(copied, pieces, octets int) bool {
	return b.octets == 0 || b.used+copied <= arenaSize && len(b.pieces)+pieces <= pieceLimit && b.octets+octets <= batchLimit
}

// room returns the unused part of the arena, empty, to append to.
func (b *batch) room() []byte {
	if b.arena == nil {
		b.arena = arenas.Get().(*[arenaSize]byte)
	}
	return b.arena[b.used:b.used:arenaSize]
}

// commit adds what was appended to room.
func (b *batch) commit(p []byte) {
	b.used += len(p)
	b.octets += len(p)
	if b.open {
		last := &b.pieces[len(b.pieces)-1]
		*last = b.arena[b.used-len(p)-len(*last) : b.used]
		return
	}
	b.pieces = append(b.pieces, p)
	b.open = true
}

// refer adds memory of the ULP.
func (b *batch) refer(p []byte) {
	b.octets += len(p)
	b.foreign = append(b.foreign, len(b.pieces))
	b.pieces = append(b.pieces, p)
	b.open = false
}

// keep copies what is left of the ULP's memory, which may change from now on.
func (b *batch) keep() {
	for _, i := range b.foreign {
		if i < b.written {
			continue
		}
		p := b.pieces[i]
		if len(b.kept) == 0 || b.kept[len(b.kept)-1].used+len(p) > arenaSize { // which takes several FPDUs
			b.kept = append(b.kept, kept{arena: arenas.Get().(*[arenaSize]byte)})
		}
		k := &b.kept[len(b.kept)-1]
		room := k.arena[k.used:][:len(p):len(p)]
		if err := memfault.Copy(room, p); err != nil {
			if k.used == 0 {
				arenas.Put(k.arena)
				b.kept = slices.Delete(b.kept, len(b.kept)-1, len(b.kept))
			}
			b.cut(i, err)
			break
		}
		b.pieces[i] = room
		k.used, k.last = k.used+len(p), i
	}
	b.foreign = b.foreign[:0]
}

// cutFault cuts the batch at the first piece of the ULP's memory that can't be read. It
// reports false if nothing that is left is the ULP's.
func (b *batch) cutFault(fault *memfault.Error) bool {
	first := -1
	for _, i := range b.foreign {
		if i < b.written {
			continue
		}
		if err := memfault.Touch(b.pieces[i]); err != nil {
			b.cut(i, err)
			return true
		}
		if first < 0 {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	b.cut(first, fault) // the memory is readable again, but only the kernel knows since when
	return true
}

// cut drops the pieces from i on, because piece i can't be read.
func (b *batch) cut(i int, err error) {
	left := 0
	for _, p := range b.pieces[b.written:i] {
		left += len(p)
	}
	clear(b.pieces[i:])
	b.pieces, b.open, b.octets = b.pieces[:i], false, left
	b.foreign = slices.DeleteFunc(b.foreign, func(k int) bool { return k >= i })
	b.lost = &MemoryError{Position: b.accepted + uint64(left), Err: err}
	b.wrote(0)
}

// wrote removes n bytes from the front.
func (b *batch) wrote(n int) {
	b.octets -= n
	b.accepted += uint64(n)
	for n > 0 {
		p := &b.pieces[b.written]
		k := min(n, len(*p))
		n -= k
		if *p = (*p)[k:]; len(*p) == 0 {
			b.written++
		}
	}
	for len(b.kept) > 0 && b.kept[0].last < b.written {
		arenas.Put(b.kept[0].arena)
		b.kept = slices.Delete(b.kept, 0, 1)
	}
	if b.octets == 0 {
		clear(b.pieces)
		b.pieces, b.written, b.used, b.open, b.foreign = b.pieces[:0], 0, 0, false, b.foreign[:0]
	}
}

// end reports whether a batch that is sent was whole.
func (b *batch) end() (bool, error) {
	b.done()
	b.hold(b.size())
	return b.lost == nil, b.lost
}

// done releases the arena of an empty batch.
func (b *batch) done() {
	if b.octets == 0 && b.arena != nil {
		arenas.Put(b.arena)
		b.arena = nil
	}
}
