//go:build linux

package dropin

import (
	"context"
	"errors"
	"syscall"
	"time"
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
	filled := 0
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
	return int32(filled + q.release(e, out[filled:])) // these are in no hurry
}

// CQAwait waits until a queue has a completion for CQPoll, but not for longer than so
// many microseconds. It receives meanwhile, as CQPoll does.
func (e *Engine) CQAwait(cq Handle, most uint32) {
	q := e.cqs.get(cq)
	if q == nil {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, time.Duration(most)*time.Microsecond)
	defer cancel()
	_ = q.verbs.Await(ctx) // CQPoll says what is wrong
}

// opcodes are those of completions of the send queue.
var opcodes = [...]uint32{
	rnic.OpSend: wcSend, rnic.OpSendInvalidate: wcSend, rnic.OpWrite: wcWrite, rnic.OpWriteImmediate: wcWrite,
	rnic.OpRead: wcRead, rnic.OpReadInvalidate: wcRead, rnic.OpImmediate: wcSend, rnic.OpSendImmediate: wcSend,
	rnic.OpFetchAdd: wcFetchAdd, rnic.OpCmpSwap: wcCmpSwap, rnic.OpLocalInvalidate: wcLocalInv,
	rnic.OpFastRegister: wcBindMW, rnic.OpBindWindow: wcBindMW, rnic.OpRecv: wcRecv, rnic.OpRecvImmediate: wcRecvImm,
}

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
		return q.describe(c, wc, out)
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

// describe says what has gone wrong, as hardware does, or reports false if the program
// is not to hear of it yet.
func (q *qp) describe(c *completionQueue, wc *rnic.WC, out *WC) bool {
	cause := wc.Cause
	switch wc.Status {
	case rnic.StatusFlushed:
		out.Status = wcFlushed
		if cause == nil {
			cause = q.verbs.Err()
		}
		unexplained := isUnexplained(cause)
		out.VendorErr = terminateCode(cause)
		if c.withholds(q, out, unexplained) {
			return false
		}
		q.blame(out, unexplained)
		return true
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
	q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d: %v", q.num, wc.ID, out.Status, wc.Err())
	return true
}

// blame makes the first request of the send queue that is flushed the one which has
// failed, if the connection was lost without a word that would blame another.
func (q *qp) blame(out *WC, unexplained bool) {
	if isReceive(out) {
		return
	}
	if s := q.failure.Swap(0); s != 0 && (!q.met.Load() || unexplained) {
		out.Status = s
		q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d: the peer is not there, or not any more", q.num, out.ID, s)
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
