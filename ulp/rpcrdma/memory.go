package rpcrdma

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"urnic/rnic"
)

// A block is registered memory of a connection.
type block struct {
	mem   []byte // all of it
	mr    *rnic.MR
	off   int    // of mem in the region
	arena *arena // that it goes back to when it has been sent
}

func (b *block) completed(*rnic.WC) { b.arena.put(b) }

// sge names n bytes of the block, from offset off.
func (b *block) sge(off, n int) rnic.SGE { return b.mr.SGE(b.off+off, n) }

// offset returns where p lies in the block, or -1.
func (b *block) offset(p []byte) int {
	if len(p) == 0 || len(b.mem) == 0 {
		return -1
	}
	at, base := uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&b.mem[0]))
	if at < base || at-base > uintptr(len(b.mem)-len(p)) || len(p) > len(b.mem) {
		return -1
	}
	return int(at - base)
}

// leastBlock is how long blocks are at least, in bytes: 1<<leastBlock.
const leastBlock = 12

// An arena has the registered memory of a connection. No peer can reach it, but what
// this side reads by RDMA and receives goes there.
type arena struct {
	pd     *rnic.PD
	access rnic.Access
	most   int // idle bytes that are kept

	shared *idleMemory // of all connections of a Server, or nil

	mu     sync.Mutex
	idle   [64][]*block // by the logarithm of their length
	octets int          // of idle blocks
	closed bool
	all    map[*rnic.MR]struct{}
}

func (a *arena) init(pd *rnic.PD, access rnic.Access, most int) {
	a.pd, a.access, a.most, a.all = pd, access, most, make(map[*rnic.MR]struct{})
}

// idleMemory bounds how much memory arenas keep for later use together.
type idleMemory struct {
	most int64
	used atomic.Int64
}

func (m *idleMemory) take(n int) bool {
	if m == nil {
		return true
	}
	if m.used.Add(int64(n)) <= m.most {
		return true
	}
	m.used.Add(int64(-n))
	return false
}

func (m *idleMemory) give(n int) {
	if m != nil {
		m.used.Add(int64(-n))
	}
}

// class returns which blocks are long enough for n bytes.
func class(n int) int { return max(leastBlock, bits.Len(uint(max(1, n)-1))) }

// get returns a block of at least n bytes, which may hold anything.
func (a *arena) get(n int) (*block, error) {
	k := class(n)
	a.mu.Lock()
	if free := a.idle[k]; len(free) > 0 {
		b := free[len(free)-1]
		a.idle[k] = free[:len(free)-1]
		a.octets -= len(b.mem)
		a.shared.give(len(b.mem))
		a.mu.Unlock()
		return b, nil
	}
	a.mu.Unlock()
	return a.register(make([]byte, 1<<k))
}

// register makes a block of memory.
func (a *arena) register(mem []byte) (*block, error) {
	mr, err := a.pd.Register(mem, a.access)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errors.Join(ErrClosed, mr.Close())
	}
	a.all[mr] = struct{}{}
	return &block{mem: mem, mr: mr, arena: a}, nil
}

// put gives a block back.
func (a *arena) put(b *block) {
	if b == nil {
		return
	}
	a.mu.Lock()
	keep := !a.closed && a.octets+len(b.mem) <= a.most && a.shared.take(len(b.mem))
	if keep {
		k := class(len(b.mem))
		a.idle[k] = append(a.idle[k], b)
		a.octets += len(b.mem)
	}
	a.mu.Unlock()
	if !keep {
		a.drop(b)
	}
}

// drop deregisters a block.
func (a *arena) drop(b *block) {
	a.mu.Lock()
	_, ours := a.all[b.mr]
	delete(a.all, b.mr)
	a.mu.Unlock()
	if ours {
		_ = b.mr.Close() // no window is bound to it any more
	}
}

// close deregisters all blocks, those among them that are still used.
func (a *arena) close() error {
	a.mu.Lock()
	a.closed = true
	all := a.all
	a.shared.give(a.octets)
	a.all, a.idle, a.octets = nil, [64][]*block{}, 0
	a.mu.Unlock()
	var errs []error
	for mr := range all {
		errs = append(errs, mr.Close())
	}
	return errors.Join(errs...)
}

// slabBuffers is how many receive buffers are registered together.
const slabBuffers = 16

// A receiver is a receive buffer.
type receiver struct {
	block
	id uint64 // of its work requests
}

// receivers are the receive buffers of a connection. There are more than are posted:
// messages stay in theirs until nobody needs them any more.
type receivers struct {
	arena *arena
	size  int

	mu   sync.Mutex
	all  []*receiver // by their id, without recvID
	free []*receiver
}

// get returns a buffer that is not used.
func (r *receivers) get() (*receiver, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		slab, err := r.arena.register(make([]byte, slabBuffers*r.size))
		if err != nil {
			return nil, err
		}
		for i := range slabBuffers {
			b := &receiver{block: block{mem: slab.mem[i*r.size:][:r.size:r.size], mr: slab.mr, off: i * r.size}}
			b.id = recvID | uint64(len(r.all))
			r.all = append(r.all, b)
			r.free = append(r.free, b)
		}
	}
	b := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	return b, nil
}

func (r *receivers) put(b *receiver) {
	r.mu.Lock()
	r.free = append(r.free, b)
	r.mu.Unlock()
}

// of returns the buffer of a work request.
func (r *receivers) of(id uint64) *receiver {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id&^recvID]
}
