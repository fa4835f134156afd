package machine

import "slices"

// A fifo is a queue that keeps its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) {
	if f.head > 32 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

// first returns the oldest element. There must be one.
func (f *fifo[T]) first() T { return f.items[f.head] }

// pop removes the oldest element. There must be one.
func (f *fifo[T]) pop() T {
	var none T
	v := f.items[f.head]
	f.items[f.head] = none
	if f.head++; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return v
}

// all returns the elements, the oldest first.
func (f *fifo[T]) all() []T { return f.items[f.head:] }

// remove removes the elements for which f reports true.
func (f *fifo[T]) remove(del func(T) bool) {
	kept := slices.DeleteFunc(f.items[f.head:], del)
	f.items = f.items[:f.head+len(kept)]
	if len(kept) == 0 {
		f.items, f.head = f.items[:0], 0
	}
}

// replace replaces all elements.
func (f *fifo[T]) replace(items []T) { f.items, f.head = items, 0 }
