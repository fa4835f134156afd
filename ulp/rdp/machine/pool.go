package machine

import "math/bits"

// A pool keeps used memory for reuse.
type pool struct {
	free     [len(sizes)][][]byte
	segments slab[outSegment]
	held     slab[[]byte]
	messages slab[Message]
}

// sizes are the capacities of the pool's memory: a short message, a segment on Ethernet, one
// with jumbo frames, one of any size.
var sizes = [...]int{256, 2048, 9216, 1 << 16}

const (
	keepBytes   = 4 << 20 // of each size
	keepSlots   = 1 << 16 // of each number
	slotClasses = 24
)

// class returns the index of the least size that n bytes fit into; n is at most 65,535.
func class(n int) int {
	for i, size := range sizes {
		if n <= size {
			return i
		}
	}
	return len(sizes) - 1
}

// capacity is how many bytes of memory are used for n bytes.
func capacity(n int) int { return sizes[class(n)] }

// get returns n bytes, at most 65,535, whose contents are anything.
func (p *pool) get(n int) []byte {
	i := class(n)
	free := p.free[i]
	if len(free) == 0 {
		return make([]byte, n, sizes[i])
	}
	b := free[len(free)-1]
	free[len(free)-1] = nil
	p.free[i] = free[:len(free)-1]
	return b[:n]
}

// clone returns a copy of data.
func (p *pool) clone(data []byte) []byte {
	b := p.get(len(data))
	copy(b, data)
	return b
}

// put takes back memory that get returned. It ignores other memory.
func (p *pool) put(b []byte) {
	for i, size := range sizes {
		if cap(b) == size {
			if len(p.free[i]) < keepBytes/size {
				p.free[i] = append(p.free[i], b[:0])
			}
			return
		}
	}
}

// Buffer returns memory for a message of n bytes, for SendBuffer; n is at most 65,535. Its contents
// are undefined.
func (m *Machine) Buffer(n int) []byte {
	if n < 0 || n > maxSegment {
		return nil
	}
	return m.pool.get(n)
}

// Free takes back the data of a Message for reuse. It is optional: without it, the garbage
// collector frees it. The memory must not be used afterwards.
func (m *Machine) Free(data []byte) { m.pool.put(data) }

// A slab keeps slices of slots, whose lengths are powers of two, for reuse.
type slab[T any] struct{ free [slotClasses][][]T }

// get returns n slots, which are empty. n is a power of two.
func (s *slab[T]) get(n int) []T {
	k := bits.TrailingZeros(uint(n))
	free := s.free[k]
	if len(free) == 0 {
		return make([]T, n)
	}
	slots := free[len(free)-1]
	free[len(free)-1] = nil
	s.free[k] = free[:len(free)-1]
	return slots
}

// put takes back slots, which must be empty.
func (s *slab[T]) put(slots []T) {
	if len(slots) == 0 {
		return
	}
	if k := bits.TrailingZeros(uint(len(slots))); len(s.free[k]) < keepSlots>>k {
		s.free[k] = append(s.free[k], slots)
	}
}
