package rxrdma

import (
	"errors"
	"sync"

	"urnic/rnic"
	"urnic/ulp/rx/rxrdma/machine"
)

// idleBuffers is how many bytes of send buffers are kept for later.
const idleBuffers = 4 << 20

// buffers is memory to send from, of all connections of an endpoint.
type buffers struct {
	pd   *rnic.PD
	size int

	mu     sync.Mutex
	free   []*machine.Buffer
	used   int
	closed bool
}

// get returns a buffer, or nil if the RNIC registers no more.
func (b *buffers) get() *machine.Buffer {
	b.mu.Lock()
	if n := len(b.free); n > 0 {
		f := b.free[n-1]
		b.free[n-1] = nil
		b.free = b.free[:n-1]
		b.used++
		b.mu.Unlock()
		return f
	}
	b.mu.Unlock()
	mem := make([]byte, b.size)
	mr, err := b.pd.Register(mem, 0)
	if err != nil {
		return nil
	}
	b.mu.Lock()
	b.used++
	b.mu.Unlock()
	return &machine.Buffer{Mem: mem, Ref: mr}
}

func (b *buffers) put(f *machine.Buffer) {
	b.mu.Lock()
	b.used--
	keep := !b.closed && (len(b.free)+1)*b.size <= idleBuffers
	if keep {
		b.free = append(b.free, f)
	}
	b.mu.Unlock()
	if !keep {
		_ = region(f).Close() // it has no windows
	}
}

func region(f *machine.Buffer) *rnic.MR {
	mr, _ := f.Ref.(*rnic.MR)
	return mr
}

func (b *buffers) close() error {
	b.mu.Lock()
	b.closed = true
	free := b.free
	b.free = nil
	b.mu.Unlock()
	var errs []error
	for _, f := range free {
		errs = append(errs, region(f).Close())
	}
	return errors.Join(errs...)
}
