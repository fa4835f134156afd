package rds

import (
	"math/bits"
	"sync"
)

// A pool keeps memory that was used, for the next who needs as much. What was given back last
// is taken first: it is most likely in the processor's cache.
type pool[T any] struct {
	make   func(n int) ([]T, error) // memory of n bytes, once or several times
	waste  func(T)                  // gives up what the pool has no room for
	limit  int                      // bytes that it may keep, without
	always int                      // what has up to so many, which it always keeps

	mu   sync.Mutex
	free [classes][]T
	kept int // bytes
}

// Sizes of memory are rounded up to four steps between powers of two, from 256 bytes to more than
// a message of 1 MiB has.
const (
	leastClass = 8 // log2
	classes    = 4 * 13
)

// classOf returns the class of a size, and how many bytes memory of that class has.
func classOf(n int) (class, size int) {
	n = max(n, 1<<leastClass)
	e := bits.Len(uint(n-1)) - 1 // 2^e < n <= 2^(e+1)
	step := 1 << (e - 2)
	k := (n - 1<<e + step - 1) / step
	if n == 1<<leastClass {
		return 0, n
	}
	return 4*(e-leastClass) + k, 1<<e + k*step
}

// get returns memory of at least n bytes.
func (p *pool[T]) get(n int) (T, error) {
	class, size := classOf(n)
	p.mu.Lock()
	if free := p.free[class]; len(free) > 0 {
		var none T
		last := len(free) - 1
		v := free[last]
		free[last] = none
		p.free[class] = free[:last]
		if size > p.always {
			p.kept -= size
		}
		p.mu.Unlock()
		return v, nil
	}
	p.mu.Unlock()
	made, err := p.make(size)
	if err != nil {
		var none T
		return none, err
	}
	for _, v := range made[1:] {
		p.put(v, size)
	}
	return made[0], nil
}

// put takes memory back that has so many bytes.
func (p *pool[T]) put(v T, size int) {
	class, exact := classOf(size)
	p.mu.Lock()
	if size != exact || size > p.always && p.kept+size > p.limit {
		p.mu.Unlock()
		p.waste(v)
		return
	}
	p.free[class] = append(p.free[class], v)
	if size > p.always {
		p.kept += size
	}
	p.mu.Unlock()
}

// close gives up what the pool has, and all that is put later.
func (p *pool[T]) close() {
	p.mu.Lock()
	free := p.free
	p.free, p.kept, p.limit, p.always = [classes][]T{}, 0, 0, 0
	p.mu.Unlock()
	for _, of := range free {
		for _, v := range of {
			p.waste(v)
		}
	}
}

// poolLimit is how many bytes a node keeps for messages that it will receive, and each of its
// transports for those that it will send.
const poolLimit = 8 << 20

// A bytesPool is a pool of memory that Go collects.
type bytesPool struct{ pool[[]byte] }

func newBytes() *bytesPool {
	return &bytesPool{pool[[]byte]{
		make:  func(n int) ([][]byte, error) { return [][]byte{make([]byte, n)}, nil },
		waste: func([]byte) {},
		limit: poolLimit,
	}}
}

// alloc returns n bytes. What is in them does not matter.
func (p *bytesPool) alloc(n int) []byte {
	b, _ := p.get(n) // Go's make has no error
	return b[:n]
}

// back takes bytes back that alloc has returned.
func (p *bytesPool) back(b []byte) { p.put(b[:cap(b)], cap(b)) }
