package rnic

import (
	"fmt"

	"urnic/internal/memfault"
	"urnic/rdmap"
	"urnic/stag"
)

// A recvWQE is a receive in a queue. It is an untagged buffer of DDP.
type recvWQE struct {
	id    uint64
	sgl   []SGE
	size  uint64
	table *stag.Table
	scope stag.Scope
	lease *stag.Lease // of the receiver that places into it

	immediate immediateBuffer // Immediate Data goes here, not into the SGL
	fault     error           // why it could not take a message
	status    Status          // what it completes with then
}

// Len implements ddp.Buffer.
func (w *recvWQE) Len() uint64 { return w.size }

// Place implements ddp.Buffer. An error means that the consumer has given the
// memory up since, if the receive was checked when it was posted.
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
			w.fault, w.status = err, StatusLocalProtection
			return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §4.8", Err: err}
		}
		if err := memfault.Copy(mem, p[:n]); err != nil {
			w.fault, w.status = err, StatusLocalProtection
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

// A recvRing is a queue of receives, with those to use again.
type recvRing struct {
	fifo[*recvWQE]
	spare []*recvWQE
}

func (r *recvRing) init(limit int) { r.limit = limit }

// postFor adds a receive for the streams of a scope. If it is late, its memory is
// judged only when a message comes.
func (r *recvRing) postFor(wr *RecvWR, lease *stag.Lease, table *stag.Table, scope stag.Scope, maxSGE int, late bool) error {
	if r.full() {
		return ErrQueueFull
	}
	var size uint64
	var err error
	if late {
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
	}
	w.id, w.sgl, w.size, w.table, w.scope, w.fault = wr.ID, append(w.sgl[:0], wr.SGL...), size, table, scope, nil
	r.push(w)
	return nil
}

// take removes the oldest receive; recycle gives it back for use again.
func (r *recvRing) take() *recvWQE { return r.pop() }

func (r *recvRing) recycle(w *recvWQE) {
	if len(r.spare) < r.limit {
		r.spare = append(r.spare, w)
	}
}

// checkSGL checks an SGL and returns its length in octets. strict takes only
// memory that is open now; else a region may be made valid by a request that is
// still in the queue.
func checkSGL(lease *stag.Lease, sgl []SGE, limit int, table *stag.Table, scope stag.Scope, need stag.Access, strict bool) (uint64, error) {
	total, err := measureSGL(sgl, limit)
	if err != nil {
		return 0, err
	}
	for i, e := range sgl {
		if e.Length == 0 {
			continue // "no STag check at all" for nothing
		}
		if err := lease.Check(table, e.LKey, scope, need, e.Addr, uint64(e.Length)); err != nil {
			if !strict && !table.Valid(e.LKey) && table.Exists(e.LKey) {
				continue
			}
			return 0, fmt.Errorf("SGE %d: %w", i, err)
		}
	}
	return total, nil
}

// measureSGL returns the length of an SGL in octets, without a look at memory.
func measureSGL(sgl []SGE, limit int) (uint64, error) {
	if len(sgl) > limit {
		return 0, fmt.Errorf("SGL of %d entries: the queue takes %d", len(sgl), limit)
	}
	total := uint64(0)
	for i := range sgl {
		total += uint64(sgl[i].Length)
	}
	if total > MaxMessage {
		return 0, fmt.Errorf("SGL of %d octets: a message has at most %d", total, uint64(MaxMessage))
	}
	return total, nil
}
