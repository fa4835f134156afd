package rdmap

import (
	"sync"
	"sync/atomic"

	"urnic/ddp"
	"urnic/internal/ring"
)

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
	irq     ring.Ring[inbound]
	waiting atomic.Int32 // irq.Len(), for a quick check whether there is one
	ord     int          // an RTR Read does not count
	orq     ring.Ring[outbound]
	atomics int // in the ORQ
}

// free returns how many more requests of the peer fit.
func (d *depths) free() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ird - d.irq.Len()
}

// outstandingAtomics returns how many Atomic Responses may arrive.
func (d *depths) outstandingAtomics() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.atomics
}

func (d *depths) pushInbound(in inbound) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.irq.Push(in)
	d.waiting.Add(1)
}

// firstInbound returns the oldest request that waits for its response.
func (d *depths) firstInbound() (*inbound, bool) {
	if d.waiting.Load() == 0 {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.irq.Len() == 0 {
		return nil, false
	}
	return d.irq.At(0), true
}

func (d *depths) popInbound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.irq.Pop()
	d.waiting.Add(-1)
}

// mayRead reports whether a Read or atomic can be begun (RFC 5040 §6.1: "MUST
// NOT exceed the maximum number of outstanding, outbound RDMA Read Requests").
func (d *depths) mayRead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.orq.Len() < d.ord
}

func (d *depths) pushOutbound(op *Operation, requestID uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := outbound{op: op, requestID: requestID}
	d.orq.Push(o)
	if o.isAtomic() {
		d.atomics++
	}
}

// firstOutbound returns the oldest request that waits for its response.
func (d *depths) firstOutbound() (outbound, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.orq.Len() == 0 {
		return outbound{}, false
	}
	return *d.orq.At(0), true
}

func (d *depths) popOutbound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.orq.At(0).isAtomic() {
		d.atomics--
	}
	d.orq.Pop()
}

// sinkOf finds the Read whose Response a segment of n bytes belongs to: one
// that is outstanding, with this sink and range. An LLP may deliver segments
// early, so it need not be the oldest one. waiting reports whether any Read is
// outstanding.
func (d *depths) sinkOf(h *ddp.TaggedHeader, n int) (found, waiting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.orq.Len() {
		o := d.orq.At(i).op
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
