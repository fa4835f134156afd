package dropin

import (
	"sync"
	"sync/atomic"
)

// A Handle names an object of the engine; 0 stands for none.
type Handle uint32

const (
	chunkLen  = 1 << 10
	maxChunks = 1 << 10
)

// firstHandle is what handles of this process begin after: see StartHandles.
var firstHandle Handle

// StartHandles sets the handles of this engine apart from those of engines of other generations, before the first object is
// made. A process that was forked has the objects of its parent's engine, too, whose handles must not name others in its own.
func StartHandles(generation uint32) { firstHandle = Handle(generation) * (chunkLen * maxChunks) }

// A table names objects by handles. Looking one up takes no lock. A handle is used
// again only after all others have been, so that a stale one rarely names another
// object.
type table[T any] struct {
	chunks [maxChunks]atomic.Pointer[[chunkLen]atomic.Pointer[T]]

	mu   sync.Mutex
	last Handle   // of those that were never used
	free []Handle // given back, the oldest first
}

// add names an object; 0 says that there are too many.
func (t *table[T]) add(v *T) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.last + 1
	if h < chunkLen*maxChunks {
		t.last = h
	} else if len(t.free) > 0 {
		h, t.free = t.free[0], t.free[1:]
	} else {
		return 0
	}
	c := &t.chunks[h/chunkLen]
	if c.Load() == nil {
		c.Store(new([chunkLen]atomic.Pointer[T]))
	}
	c.Load()[h%chunkLen].Store(v)
	return h + firstHandle
}

// get returns an object, or nil.
func (t *table[T]) get(h Handle) *T {
	h -= firstHandle
	if h/chunkLen >= maxChunks {
		return nil
	}
	c := t.chunks[h/chunkLen].Load()
	if c == nil {
		return nil
	}
	return c[h%chunkLen].Load()
}

// remove takes an object's name away, and returns it, or nil: of several that remove
// the same, one gets it.
func (t *table[T]) remove(h Handle) *T {
	if t.get(h) == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h -= firstHandle
	v := t.chunks[h/chunkLen].Load()[h%chunkLen].Swap(nil)
	if v != nil {
		t.free = append(t.free, h)
	}
	return v
}

// each calls f for the objects there are, in the order of their handles.
func (t *table[T]) each(f func(h Handle, v *T)) {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	for h := Handle(1); h <= last; h++ {
		if v := t.get(h + firstHandle); v != nil {
			f(h+firstHandle, v)
		}
	}
}
