// Package ring has a first-in first-out queue.
package ring

import (
	"iter"
	"unsafe"
)

// A Ring is a queue that grows with its use, so that an idle one takes no room for what it
// does not hold. It keeps the room that it has grown to. The limit is for who asks [Ring.Full]
// before it pushes, and up to it a Ring takes no more room than it needs; the zero Ring has the
// limit 0, and is ready for use by who does not ask.
type Ring[T any] struct {
	limit int
	slots []T
	head  int
	n     int
}

// Init sets the limit of an empty queue.
func (r *Ring[T]) Init(limit int) { *r = Ring[T]{limit: limit} }

// Len returns how many elements there are.
func (r *Ring[T]) Len() int { return r.n }

// Limit returns how many elements there can be.
func (r *Ring[T]) Limit() int { return r.limit }

// Full reports whether there are as many elements as the limit says, or more.
func (r *Ring[T]) Full() bool { return r.n >= r.limit }

// At returns the i-th oldest element, which must be there. It stays where it is until the
// next Push.
func (r *Ring[T]) At(i int) *T {
	if i += r.head; i >= len(r.slots) {
		i -= len(r.slots)
	}
	return &r.slots[i]
}

// All returns the elements, the oldest first.
func (r *Ring[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range r.n {
			if !yield(*r.At(i)) {
				return
			}
		}
	}
}

// Push adds an element.
func (r *Ring[T]) Push(v T) {
	if r.n == len(r.slots) {
		r.grow()
	}
	r.n++
	*r.At(r.n - 1) = v
}

// Pop removes the oldest element, which must be there.
func (r *Ring[T]) Pop() T {
	p := r.At(0)
	v := *p
	var zero T
	*p = zero
	r.n--
	if r.head++; r.head == len(r.slots) || r.n == 0 { // an empty queue goes on where the cache is warm
		r.head = 0
	}
	return v
}

// SetLimit changes the limit, which must not be below what is in the queue.
func (r *Ring[T]) SetLimit(limit int) {
	r.limit = limit
	r.move(max(r.n, min(len(r.slots), limit)))
}

// Free gives up the elements, and the room.
func (r *Ring[T]) Free() { r.slots, r.head, r.n = nil, 0, 0 }

// grow makes room for one element at least: as many as fit into a cache line at first, twice
// as many as there are afterwards.
func (r *Ring[T]) grow() {
	const line = 64
	var v T
	size := max(2*r.n, line/int(max(unsafe.Sizeof(v), 1)), 2)
	if r.n < r.limit {
		size = min(size, r.limit)
	}
	r.move(size)
}

// move makes room for size elements, and no more.
func (r *Ring[T]) move(size int) {
	slots := make([]T, size)
	for i := range r.n {
		slots[i] = *r.At(i)
	}
	r.slots, r.head = slots, 0
}
