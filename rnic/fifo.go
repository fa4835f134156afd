package rnic

// A fifo is a queue that grows up to a limit, so that an idle queue pair takes
// no room for work that it does not have.
type fifo[T any] struct {
	limit int
	slots []T
	head  int
	n     int
}

func (f *fifo[T]) full() bool { return f.n == f.limit }

// at returns the i-th oldest element.
func (f *fifo[T]) at(i int) *T {
	if i += f.head; i >= len(f.slots) {
		i -= len(f.slots)
	}
	return &f.slots[i]
}

// push adds an element. The caller has made sure that the queue is not full.
func (f *fifo[T]) push(v T) {
	if f.n == len(f.slots) {
		f.grow(min(max(2*f.n, 8), f.limit))
	}
	f.n++
	*f.at(f.n - 1) = v
}

// pop removes the oldest element.
func (f *fifo[T]) pop() T {
	p := f.at(0)
	v := *p
	var zero T
	*p = zero
	f.n--
	if f.head++; f.head == len(f.slots) || f.n == 0 { // an empty queue goes on where the cache is warm
		f.head = 0
	}
	return v
}

// resize changes the limit, which is not below what is in the queue.
func (f *fifo[T]) resize(limit int) {
	f.limit = limit
	f.grow(min(len(f.slots), limit))
}

// grow makes room for size elements.
func (f *fifo[T]) grow(size int) {
	slots := make([]T, size)
	for i := range f.n {
		slots[i] = *f.at(i)
	}
	f.slots, f.head = slots, 0
}
