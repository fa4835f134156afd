package rds

import (
	"errors"
	"sync"
	"sync/atomic"

	"urnic/rnic"
	"urnic/ulp/rds/machine"
)

// A buffer is memory for a message that is sent. The machine has it until the message is
// acknowledged or lost, and links until they have sent what they have taken of it: a
// peer may acknowledge what has not left yet, and a program may close the socket.
type buffer struct {
	data  []byte
	mr    *rnic.MR // nil if a transport needs none
	at    int      // where in its memory data begin
	home  *pool[*buffer]
	users atomic.Int32
	free  func() // leave, for the machine
}

// newBuffers returns a pool of buffers that need not be registered.
func newBuffers() *pool[*buffer] {
	p := &pool[*buffer]{limit: poolLimit, waste: func(*buffer) {}}
	p.make = func(n int) ([]*buffer, error) { return []*buffer{newBuffer(p, make([]byte, n), nil, 0)}, nil }
	return p
}

// regions are those of the buffers of a domain.
type regions struct {
	pd *rnic.PD

	mu  sync.Mutex
	all map[*rnic.MR]struct{}
}

// newBuffers returns a pool of buffers that are registered.
func (r *regions) newBuffers() *pool[*buffer] {
	r.all = map[*rnic.MR]struct{}{}
	p := &pool[*buffer]{limit: poolLimit, always: slab / 2}
	p.make = func(n int) ([]*buffer, error) {
		count := max(1, slab/n) // what is small shares a region, and is kept
		mem := make([]byte, count*n)
		mr, err := r.register(mem)
		if err != nil {
			return nil, err
		}
		var made []*buffer
		for i := range count {
			made = append(made, newBuffer(p, mem[i*n:(i+1)*n:(i+1)*n], mr, i*n))
		}
		return made, nil
	}
	p.waste = func(b *buffer) {
		r.mu.Lock()
		delete(r.all, b.mr)
		r.mu.Unlock()
		_ = b.mr.Close() // it has no windows
	}
	return p
}

// register opens memory.
func (r *regions) register(mem []byte) (*rnic.MR, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		return nil, ErrNodeClosed
	}
	mr, err := r.pd.Register(mem, 0)
	if err != nil {
		return nil, err
	}
	r.all[mr] = struct{}{}
	return mr, nil
}

// close gives all regions up. Nothing is sent any more.
func (r *regions) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for mr := range r.all {
		errs = append(errs, mr.Close())
	}
	r.all = nil
	return errors.Join(errs...)
}

// slab is how much memory is registered for small buffers at once.
const slab = 16 << 10

func newBuffer(home *pool[*buffer], data []byte, mr *rnic.MR, at int) *buffer {
	b := &buffer{data: data, mr: mr, at: at, home: home}
	b.free = b.leave
	return b
}

// Use says that one more uses the buffer, who calls leave.
func (b *buffer) Use() { b.users.Add(1) }

// leave says that somebody does not use the buffer any more.
func (b *buffer) leave() {
	if b.users.Add(-1) == 0 {
		b.home.put(b, len(b.data))
	}
}

// hold notes a segment's memory, which the link is to leave.
func hold(held []*buffer, memory machine.Memory) []*buffer {
	if b, ok := memory.(*buffer); ok {
		held = append(held, b)
	}
	return held
}

// leaveAll leaves what hold has collected.
func leaveAll(held []*buffer) []*buffer {
	for _, b := range held {
		b.leave()
	}
	clear(held)
	return held[:0]
}
