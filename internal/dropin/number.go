//go:build linux

package dropin

import (
	"sync"
	"sync/atomic"
)

// A queue pair number of the ABI has 24 bits. Here it is slot<<14 | index: slot
// says which rendezvous listener of the host belongs to the process (its port
// less the first one, plus 1), or is 0 if it has none; index says which queue pair
// of the process it is. So an address and a number lead to one queue pair.
const (
	indexBits = 14
	maxQPs    = 1<<indexBits - 1
	maxSlots  = 1<<(24-indexBits) - 1
)

// qpNumbers gives numbers to queue pairs. To look one up takes no lock. A number
// is used again only after all others, so that a completion or packet that is late
// finds nothing.
type qpNumbers struct {
	slot atomic.Uint32

	qps [maxQPs + 1]atomic.Pointer[qp]

	mu   sync.Mutex
	last uint32
	free []uint32
}

// reserve returns a number that no queue pair has, or 0 if there is none.
func (n *qpNumbers) reserve() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	var index uint32
	switch {
	case n.last < maxQPs:
		n.last++
		index = n.last
	case len(n.free) > 0:
		index, n.free = n.free[0], n.free[1:]
	default:
		return 0
	}
	return n.slot.Load()<<indexBits | index
}

// set says whose number it is.
func (n *qpNumbers) set(qpn uint32, q *qp) { n.qps[qpn&maxQPs].Store(q) }

// get returns the queue pair with a number of this process, or nil.
func (n *qpNumbers) get(qpn uint32) *qp {
	if q := n.qps[qpn&maxQPs].Load(); q != nil && q.num == qpn {
		return q
	}
	return nil
}

// release gives a number back.
func (n *qpNumbers) release(qpn uint32) {
	n.qps[qpn&maxQPs].Store(nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = append(n.free, qpn&maxQPs)
}
