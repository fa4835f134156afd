package server

import (
	"fmt"
	"slices"

	"urnic/conformance/service"
)

// An arena is the memory of a session's regions: blocks that the RNIC sees as
// memory, and that the service reads and writes by way of the kernel. See the
// package documentation. It is not safe for concurrent use.
type arena struct {
	limit, held uint64 // bytes, in whole pages
	blocks      []*block
	backing     backing // the system's part
}

// A block is the memory of one region. The mem of a block is for the RNIC alone.
type block struct {
	arena *arena
	off   int64  // in the backing
	mem   []byte // whole pages
	n     int    // bytes of the region
}

// alloc returns a block of n bytes that are all fill(i), i from 0 on.
func (a *arena) alloc(n uint64, fill func(off, n int) []byte) (*block, error) {
	size := (n + pageSize - 1) &^ (pageSize - 1)
	if n == 0 || n > a.limit || size > a.limit-min(a.limit, a.held) {
		return nil, &service.Error{Code: service.CodeLimit, Message: fmt.Sprintf("a region of %d octets: a region has at least one octet, and all that are not released up to %d, in whole pages; there are %d", n, a.limit, a.held)}
	}
	b := &block{arena: a, n: int(n)}
	i := a.gap(b, int64(size))
	if err := a.backing.open(b, int(size)); err != nil {
		return nil, fmt.Errorf("no memory for a region: %w", err)
	}
	a.blocks = slices.Insert(a.blocks, i, b)
	a.held += size
	const piece = 64 << 10
	for off := 0; off < b.n; off += piece {
		if err := b.write(fill(off, min(piece, b.n-off)), off); err != nil {
			b.free()
			return nil, err
		}
	}
	return b, nil
}

// gap sets where a block can begin, and returns its index.
func (a *arena) gap(b *block, size int64) int {
	for i, next := range a.blocks {
		if next.off-b.off >= size {
			return i
		}
		b.off = next.off + int64(len(next.mem))
	}
	return len(a.blocks)
}

// free gives the block up. No region may lie in it any more.
func (b *block) free() {
	a := b.arena
	a.held -= uint64(len(b.mem))
	a.blocks = slices.DeleteFunc(a.blocks, func(o *block) bool { return o == b })
	a.backing.close(b)
}

// close gives all blocks up.
func (a *arena) close() {
	for len(a.blocks) > 0 {
		a.blocks[0].free()
	}
	a.backing.end()
}

// has returns an error unless n bytes from off on lie in the block.
func (b *block) has(off uint64, n int) error {
	if n < 0 || off > uint64(b.n) || uint64(n) > uint64(b.n)-off {
		return &service.Error{Code: service.CodeRequest, Message: fmt.Sprintf("%d octets at offset %d: the region has %d", n, off, b.n)}
	}
	return nil
}

// read returns n bytes from off on, as has allows.
func (b *block) read(off uint64, n int) ([]byte, error) {
	if err := b.has(off, n); err != nil {
		return nil, err
	}
	p := make([]byte, n)
	if err := b.arena.backing.read(b, p, int(off)); err != nil {
		return nil, fmt.Errorf("memory can't be read: %w", err)
	}
	return p, nil
}

func (b *block) write(p []byte, off int) error {
	if err := b.arena.backing.write(b, p, off); err != nil {
		return fmt.Errorf("memory can't be written: %w", err)
	}
	return nil
}
