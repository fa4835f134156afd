package rdp

import (
	"net/netip"
	"sync"
)

// plainBatchSize is how many bytes of segments a plainBatch has.
const plainBatchSize = 128 << 10

// arenas are shared, so that an idle endpoint has none.
var arenas = sync.Pool{New: func() any { return new([plainBatchSize]byte) }}

// A plainBatch is segments that leave one at a time.
type plainBatch struct {
	one   func(segment []byte, to netip.AddrPort) // sends one
	arena *[plainBatchSize]byte
	used  int
	todo  []plainSegment
}

type plainSegment struct {
	to     netip.AddrPort
	off, n int
}

func (b *plainBatch) room(n int) []byte {
	if b.arena == nil {
		b.arena = arenas.Get().(*[plainBatchSize]byte)
	}
	if len(b.arena)-b.used < n {
		return nil
	}
	return b.arena[b.used:]
}

func (b *plainBatch) add(n int, to netip.AddrPort) {
	b.todo = append(b.todo, plainSegment{to, b.used, n})
	b.used += n
}

func (b *plainBatch) empty() bool { return len(b.todo) == 0 }

func (b *plainBatch) send() error {
	for _, s := range b.todo {
		b.one(b.arena[s.off:s.off+s.n], s.to)
	}
	b.todo, b.used = b.todo[:0], 0
	return nil
}

// free gives the memory back.
func (b *plainBatch) free() {
	if b.arena != nil {
		arenas.Put(b.arena)
		b.arena = nil
	}
}
