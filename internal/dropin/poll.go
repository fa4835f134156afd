//go:build linux

package dropin

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"urnic/internal/door"
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
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out, q.filled, q.told = unsafe.Slice(wcs, n), 0, false
	if q.datagrams.pairs.Load() > 0 {
		e.pollDatagrams(q)
		if q.filled = q.datagrams.take(q.out); q.connections.Load() == 0 {
			return q.polledNow(e, q.filled)
		}
	}
	q.unstash()
	for q.filled < len(q.out) {
		want := min(len(q.out)-q.filled, pollBatch)
		if got := q.move(e, want); got < want {
			break
		}
	}
	for len(q.due) > 0 { // all that has failed is known when package rnic has nothing more
		if got := q.move(e, pollBatch); got < pollBatch {
			q.settle()
		}
	}
	filled := q.filled + q.release(e, q.out[q.filled:]) // these are in no hurry
	return q.polledNow(e, filled)
}

// polledNow ends a poll that gives the program n completions, and returns how many these are. The caller holds mu.
func (c *completionQueue) polledNow(e *Engine, n int) int32 {
	if n > 0 {
		c.polled.Add(uint64(n))
		e.notePolled(c.out[:n])
	}
	c.out = nil
	return int32(n)
}

// move takes up to n completions of package rnic, and returns how many there were. The
// caller holds mu.
func (c *completionQueue) move(e *Engine, n int) int {
	got := c.verbs.Poll(c.wcs[:n])
	for i := range got {
		wc := &c.wcs[i]
		switch q := e.numbers.get(wc.QPN); {
		case q == nil: // it is no more
		case q.send.acks != nil && wc.Op != rnic.OpRecv && wc.Op != rnic.OpRecvImmediate:
			q.hearSend(c, wc)
		default:
			if wc.Status != rnic.StatusSuccess {
				c.settleOne(q) // sends are flushed before receives
			}
			var out WC
			if q.complete(c, wc, &out) {
				c.put(&out)
			}
		}
	}
	return got
}

// put gives the program a completion, in this poll or the next. The caller holds mu.
func (c *completionQueue) put(wc *WC) {
	if len(c.stash) == 0 && c.filled < len(c.out) {
		c.out[c.filled] = *wc
		c.filled++
		return
	}
	c.stash = append(c.stash, *wc)
}

// unstash gives the program the completions for which there was no room before. The caller
// holds mu.
func (c *completionQueue) unstash() {
	if len(c.stash) > 0 {
		n := copy(c.out[c.filled:], c.stash)
		c.filled += n
		c.stash = slices.Delete(c.stash, 0, n)
	}
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
	if q.datagrams.pairs.Load() > 0 && !e.awaitDatagrams(q, cancel, time.Duration(most)*time.Microsecond) {
		return
	}
	_ = door.Await(ctx, q.verbs) // CQPoll says what is wrong
}

// opcodes are those of completions of the send queue.
var opcodes = [...]uint32{
	rnic.OpSend: wcSend, rnic.OpSendInvalidate: wcSend, rnic.OpWrite: wcWrite, rnic.OpWriteImmediate: wcWrite,
	rnic.OpRead: wcRead, rnic.OpReadInvalidate: wcRead, rnic.OpImmediate: wcSend, door.OpSendImmediate: wcSend,
	rnic.OpFetchAdd: wcFetchAdd, rnic.OpCmpSwap: wcCmpSwap, rnic.OpLocalInvalidate: wcLocalInv,
	rnic.OpFastRegister: wcBindMW, rnic.OpBindWindow: wcBindMW, rnic.OpRecv: wcRecv, rnic.OpRecvImmediate: wcRecvImm,
}

// complete makes a completion what the program wants, or reports false if the program is
// not to hear of it yet.
func (q *qp) complete(c *completionQueue, wc *rnic.WC, out *WC) bool {
	*out = WC{ID: wc.ID, Opcode: opcodes[wc.Op], ByteLen: wc.ByteLen, QPN: wc.QPN}
	switch {
	case wc.Status != rnic.StatusSuccess:
		return q.describe(c, wc, out)
	case wc.Op == rnic.OpRecvImmediate:
		out.Flags = wcWithImm
		out.Imm, out.ByteLen = ofImmediate(&wc.Immediate)
	case wc.Op == rnic.OpRecv && door.Paired(wc):
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
		if cause == nil {
			cause = q.verbs.Err()
		}
		return q.flushed(c, out, cause)
	case rnic.StatusRemoteTermination:
		out.Status = remoteStatus(cause)
	default:
		out.Status = localStatus(wc.Status)
	}
	out.VendorErr = terminateCode(cause)
	q.engine.log.printf(logWarning, "QP 0x%x: request %d completes with status %d: %v", q.num, wc.ID, out.Status, wc.Err())
	return true
}

// flushed is describe for a completion of a request that was flushed because of cause.
func (q *qp) flushed(c *completionQueue, out *WC, cause error) bool {
	out.Status = wcFlushed
	unexplained := isUnexplained(cause)
	out.VendorErr = terminateCode(cause)
	if c.withholds(q, out, unexplained) {
		return false
	}
	q.blame(out, unexplained)
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
