//go:build linux

package dropin

import (
	"errors"
	"slices"
	"syscall"
	"unsafe"

	"urnic/rdmap"
	"urnic/rnic"
)

// CQPoll moves up to n completions to wcs, the first of n, and returns how many,
// or an errno below 0. It drives the sockets of the queue's connections.
func (e *Engine) CQPoll(cq Handle, n int32, wcs *WC) int32 {
	q := e.cqs.get(cq)
	if q == nil || n < 0 || n > 0 && wcs == nil {
		return -int32(syscall.EINVAL)
	}
	out := unsafe.Slice(wcs, n)
	q.mu.Lock()
	defer q.mu.Unlock()
	filled := q.release(e, out)
	for filled < len(out) {
		want := min(len(out)-filled, pollBatch)
		got := q.verbs.Poll(q.wcs[:want])
		for i := range got {
			if e.complete(q, &q.wcs[i], &out[filled]) {
				filled++
			}
		}
		if got < want {
			break
		}
	}
	return int32(filled)
}

// opcodes are those of completions of the send queue.
var opcodes = [...]uint32{
	rnic.OpSend: wcSend, rnic.OpSendInvalidate: wcSend, rnic.OpWrite: wcWrite, rnic.OpWriteImmediate: wcWrite,
	rnic.OpRead: wcRead, rnic.OpReadInvalidate: wcRead, rnic.OpImmediate: wcSend, rnic.OpSendImmediate: wcSend,
	rnic.OpFetchAdd: wcFetchAdd, rnic.OpCmpSwap: wcCmpSwap, rnic.OpLocalInvalidate: wcLocalInv,
	rnic.OpFastRegister: wcBindMW, rnic.OpBindWindow: wcBindMW, rnic.OpRecv: wcRecv, rnic.OpRecvImmediate: wcRecvImm,
}

// release moves completions that are not withheld any more to out, and returns how
// many. The caller holds mu.
func (q *completionQueue) release(e *Engine, out []WC) (n int) {
	if len(q.withheld) == 0 {
		return 0
	}
	left := q.withheld[:0]
	for _, wc := range q.withheld {
		switch of := e.numbers.get(wc.QPN); {
		case of == nil: // it is no more
		case of.isLeftAlone() || n == len(out):
			left = append(left, wc)
		default:
			out[n] = wc
			n++
		}
	}
	q.withheld = left
	return n
}

// fireReleased fires the queue, if it is armed, for completions that are withheld
// no more.
func (q *completionQueue) fireReleased(e *Engine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.ContainsFunc(q.withheld, func(wc WC) bool {
		of := e.numbers.get(wc.QPN)
		return of != nil && !of.isLeftAlone()
	}) {
		q.verbs.Fire()
	}
}

// releaseReceives lets the program have the receives that were withheld from it:
// its queue pair is left alone no more. The caller holds no lock of a completion
// queue.
func (q *qp) releaseReceives() {
	if c := q.engine.cqs.get(q.init.RecvCQ); c != nil {
		c.fireReleased(q.engine)
	}
}

// forget drops the completions of a queue pair that are withheld.
func (q *completionQueue) forget(num uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.withheld = slices.DeleteFunc(q.withheld, func(wc WC) bool { return wc.QPN == num })
}

// withholds reports whether a completion is not for the program yet. On InfiniBand,
// nothing tells a queue pair that its peer has gone: its receives wait on, until it
// sends, or its program ends it. Programs that are through with their work count on
// that, such as ibv_rc_pingpong: the first side to be done destroys its queue pair.
func (q *qp) withholds(wc *rnic.WC, out *WC) bool {
	if out.Status != wcFlushed || wc.Op != rnic.OpRecv && wc.Op != rnic.OpRecvImmediate {
		return false
	}
	cause := wc.Cause
	if cause == nil {
		cause = q.verbs.Err()
	}
	return q.isLeftAlone() && isUnexplained(cause)
}

// isLeftAlone reports whether a queue pair that was connected without rdma_cm has sent
// nothing in vain so far, and its program has not ended it.
func (q *qp) isLeftAlone() bool { return q.met.Load() && !q.missed.Load() }

// complete makes a completion what the program wants, or reports false if it is not
// for the program, or its queue pair is no more.
func (e *Engine) complete(c *completionQueue, wc *rnic.WC, out *WC) bool {
	q := e.numbers.get(wc.QPN)
	if q == nil {
		return false
	}
	*out = WC{ID: wc.ID, Opcode: opcodes[wc.Op], ByteLen: wc.ByteLen, QPN: wc.QPN}
	switch {
	case wc.Status != rnic.StatusSuccess:
		q.describe(wc, out)
		if q.withholds(wc, out) {
			c.withheld = append(c.withheld, *out)
			return false
		}
	case wc.Op == rnic.OpRecvImmediate:
		out.Flags = wcWithImm
		out.Imm, out.ByteLen = ofImmediate(&wc.Immediate)
	case wc.Paired:
		out.Flags = wcWithImm
		out.Imm, _ = ofImmediate(&wc.Immediate)
	case wc.Invalidated != 0:
		out.Flags, out.Imm = wcWithInv, uint32(wc.Invalidated)
	}
	return true
}

// describe says what has gone wrong, as hardware does.
func (q *qp) describe(wc *rnic.WC, out *WC) {
	cause := wc.Cause
	switch wc.Status {
	case rnic.StatusFlushed:
		out.Status = wcFlushed
		if cause == nil {
			cause = q.verbs.Err()
		}
		if wc.Op != rnic.OpRecv && wc.Op != rnic.OpRecvImmediate {
			if !q.missed.Swap(true) && q.met.Load() {
				q.engine.wg.Go(q.releaseReceives) // the caller holds a completion queue
			}
			if s := q.failure.Swap(0); s != 0 && (!q.met.Load() || isUnexplained(cause)) {
				out.Status = s
			}
		}
	case rnic.StatusLocalProtection, rnic.StatusBadSTag:
		out.Status = wcLocalProtect
	case rnic.StatusInvalidateFailed, rnic.StatusRegisterFailed, rnic.StatusBindFailed:
		out.Status = wcBind
	case rnic.StatusLocalLength:
		out.Status = wcLocalLength
	case rnic.StatusNoReadResources:
		out.Status = wcLocalOperation
	case rnic.StatusRemoteTermination:
		out.Status = remoteStatus(cause)
	default:
		out.Status = wcGeneral
	}
	out.VendorErr = terminateCode(cause)
	if out.Status != wcFlushed {
		q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d: %v", q.num, wc.ID, out.Status, wc.Err())
	}
}

// remoteStatus tells an access that the peer has not allowed from one that it has
// not understood.
func remoteStatus(cause error) uint32 {
	if peer, is := errors.AsType[*rdmap.PeerError](cause); is {
		if code := peer.Terminate.Code; code.Layer() != rdmap.LayerLLP && code.EType() == 1 {
			return wcRemoteAccess
		}
	}
	return wcRemoteOp
}

// terminateCode returns layer, type and code of the Terminate that has ended the
// connection, or 0.
func terminateCode(cause error) uint32 {
	if peer, is := errors.AsType[*rdmap.PeerError](cause); is {
		return uint32(peer.Terminate.Code)
	}
	if ours, is := errors.AsType[*rdmap.Error](cause); is {
		return uint32(ours.Code)
	}
	return 0
}
