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
func (f *fifo[T]) at(i int) *T { return &f.slots[(f.head+i)%len(f.slots)] }

// push adds an element. The caller has made sure that the queue is not full.
func (f *fifo[T]) push(v T) {
	if f.n == len(f.slots) {
		slots := make([]T, min(max(2*f.n, 8), f.limit))
		for i := range f.n {
			slots[i] = *f.at(i)
		}
		f.slots, f.head = slots, 0
	}
	*f.at(f.n) = v
	f.n++
}

// pop removes the oldest element.
func (f *fifo[T]) pop() T {
	p := f.at(0)
	v := *p
	var zero T
	*p = zero
	f.head = (f.head + 1) % len(f.slots)
	f.n--
	return v
}
