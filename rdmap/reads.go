package rdmap

import (
	"sync"
	"sync/atomic"

	"urnic/ddp"
)

// A ring is a first-in first-out queue. It grows with its use, which IRD or ORD
// bounds.
type ring[T any] struct {
	slots []T
	head  int
	n     int
}

// at returns the i-th oldest element.
func (r *ring[T]) at(i int) *T {
	if i += r.head; i >= len(r.slots) {
		i -= len(r.slots)
	}
	return &r.slots[i]
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.slots) {
		slots := make([]T, max(2*r.n, 2))
		for i := range r.n {
			slots[i] = *r.at(i)
		}
		r.slots, r.head = slots, 0
	}
	r.n++
	*r.at(r.n - 1) = v
}

func (r *ring[T]) pop() {
	var zero T
	*r.at(0) = zero
	if r.head++; r.head == len(r.slots) {
		r.head = 0
	}
	r.n--
}

// An inbound is a Read Request or an Atomic Request of the peer that waits for
// its response (an entry of the IRQ).
type inbound struct {
	op         Opcode
	read       ReadRequest
	atomic     AtomicRequest
	header     [ddp.UntaggedHeaderLen]byte // of the request, for a Terminate
	segmentLen int
}

// An outbound is a Read or an atomic of this side that waits for the peer's
// response (an entry of the ORQ). The Read that is an RTR has no Operation.
type outbound struct {
	op        *Operation
	requestID uint32
}

func (o *outbound) isAtomic() bool { return o.op != nil && o.op.Op == OpAtomicRequest }

// depths is the bookkeeping of Reads and atomics in both directions. The
// transmitter and the receiver share it.
type depths struct {
	mu      sync.Mutex
	ird     int
	irq     ring[inbound]
	waiting atomic.Int32 // irq.n, for those who only want to know whether there is one
	ord     int          // an RTR Read does not count
	orq     ring[outbound]
	atomics int // in the ORQ
}

// free returns how many requests of the peer there is room for.
func (d *depths) free() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ird - d.irq.n
}

// outstandingAtomics returns how many Atomic Responses may come.
func (d *depths) outstandingAtomics() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.atomics
}

func (d *depths) pushInbound(in inbound) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.irq.push(in)
	d.waiting.Add(1)
}

// firstInbound returns the oldest request that waits for its response.
func (d *depths) firstInbound() (*inbound, bool) {
	if d.waiting.Load() == 0 {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.irq.n == 0 {
		return nil, false
	}
	return d.irq.at(0), true
}

func (d *depths) popInbound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.irq.pop()
	d.waiting.Add(-1)
}

// mayRead reports whether a Read or atomic can be begun (RFC 5040 §6.1: "MUST
// NOT exceed the maximum number of outstanding, outbound RDMA Read Requests").
func (d *depths) mayRead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.orq.n < d.ord
}

func (d *depths) pushOutbound(op *Operation, requestID uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := outbound{op: op, requestID: requestID}
	d.orq.push(o)
	if o.isAtomic() {
		d.atomics++
	}
}

// firstOutbound returns the oldest request that waits for its response.
func (d *depths) firstOutbound() (outbound, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.orq.n == 0 {
		return outbound{}, false
	}
	return *d.orq.at(0), true
}

func (d *depths) popOutbound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.orq.at(0).isAtomic() {
		d.atomics--
	}
	d.orq.pop()
}

// sinkOf finds the Read whose Response a segment of n octets belongs to: one
// that is outstanding, with this sink and range. An LLP may bring segments
// early, so that it need not be the oldest one. waiting tells whether any Read is.
func (d *depths) sinkOf(h *ddp.TaggedHeader, n int) (found, waiting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.orq.n {
		o := d.orq.at(i).op
		if o == nil || o.Op != OpReadRequest {
			continue
		}
		waiting = true
		off := h.TO - o.SinkTO // huge if the segment begins before the sink
		if o.SinkSTag == h.STag && off <= o.Length && uint64(n) <= o.Length-off {
			return true, true
		}
	}
	return false, waiting
}
