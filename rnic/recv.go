package rnic

import (
	"sync"
	"sync/atomic"

	"urnic/internal/host/memfault"
	"urnic/rdmap"
	"urnic/rnic/internal/life"
	"urnic/stag"
)

// A recvWQE is a receive in a queue. It is an untagged buffer of DDP.
type recvWQE struct {
	life.Receive
	id    uint64
	sgl   []SGE
	size  uint64
	table *stag.Table
	scope stag.Scope
	lease *stag.Lease // set by the receiver that places into it

	immediate immediateBuffer // Immediate Data goes here, not into the SGL
}

// Len implements ddp.Buffer.
func (w *recvWQE) Len() uint64 { return w.size }

// Place implements ddp.Buffer. If the receive was checked when it was posted,
// an error means that the consumer has closed the memory since.
func (w *recvWQE) Place(off uint32, p []byte) error {
	at := uint64(off)
	for _, e := range w.sgl {
		if len(p) == 0 {
			return nil
		}
		if at >= uint64(e.Length) {
			at -= uint64(e.Length)
			continue
		}
		n := min(uint64(len(p)), uint64(e.Length)-at)
		mem, err := w.lease.Open(w.table, e.LKey, w.scope, stag.LocalWrite, e.Addr+at, n)
		if err != nil {
			w.Refuse(life.LocalProtection, err)
			return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §4.8", Err: err}
		}
		if err := memfault.Copy(mem, p[:n]); err != nil {
			w.Refuse(life.LocalProtection, err)
			return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §4.8", Err: err}
		}
		p, at = p[n:], 0
	}
	return nil
}

// immediateBuffer is where Immediate Data is placed (RFC 7306 §6.2).
type immediateBuffer [rdmap.ImmediateLen]byte

// Len implements ddp.Buffer.
func (b *immediateBuffer) Len() uint64 { return rdmap.ImmediateLen }

// Place implements ddp.Buffer.
func (b *immediateBuffer) Place(off uint32, p []byte) error {
	copy(b[off:], p)
	return nil
}

// A recvRing is a queue of receives, with free ones for reuse.
type recvRing struct {
	life.RecvQueue
	spare []*recvWQE
}

// postFor adds a receive for the streams of a scope. Its memory may be checked only when a
// message comes.
func (r *recvRing) postFor(wr *RecvWR, lease *stag.Lease, table *stag.Table, scope stag.Scope, maxSGE int) error {
	if r.Full() {
		return ErrQueueFull
	}
	var size uint64
	var err error
	if r.ChecksAtTurn() {
		size, err = measureSGL(wr.SGL, maxSGE)
	} else {
		size, err = checkSGL(lease, wr.SGL, maxSGE, table, scope, stag.LocalWrite, true)
	}
	if err != nil {
		return err
	}
	var w *recvWQE
	if n := len(r.spare); n > 0 {
		w, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		w = new(recvWQE)
		w.Owner = w
	}
	w.id, w.sgl, w.size, w.table, w.scope = wr.ID, append(w.sgl[:0], wr.SGL...), size, table, scope
	w.Refuse(life.Success, nil)
	r.Push(&w.Receive)
	return nil
}

// at returns the receive at index ahead; 0 is the oldest one.
func (r *recvRing) at(ahead int) *recvWQE { return (*r.At(ahead)).Owner.(*recvWQE) }

// take removes the oldest receive; recycle returns it for reuse.
func (r *recvRing) take() *recvWQE { return r.Pop().Owner.(*recvWQE) }

func (r *recvRing) recycle(w *recvWQE) {
	if len(r.spare) < r.Limit() {
		r.spare = append(r.spare, w)
	}
}

// A recvQueue is where the receives of a queue pair come from: a queue of its
// own, or a shared one.
type recvQueue struct {
	mu    sync.Mutex
	ring  recvRing     // the queue pair's own
	held  atomic.Int32 // receives of it that have completed and hold their slots
	lease stag.Lease   // of the SGLs that are checked

	// taken are the receives of the SRQ for messages that have begun to arrive: the
	// first for the one in turn, the others for messages that a lower layer has
	// delivered early. Only the receiver uses it.
	taken []*recvWQE
	// asked is the receive that DDP has requested last. Only the receiver uses it.
	asked *recvWQE

	pairing life.Pairing // only the receiver uses it
}
