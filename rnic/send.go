package rnic

import (
	"encoding/binary"
	"errors"
	"fmt"

	"urnic/internal/memfault"
	"urnic/rdmap"
	"urnic/stag"
)

// A sendState says how far a request of the send queue has come.
type sendState uint8

const (
	queued sendState = iota // not begun
	begun                   // given to the stream
	posted                  // all posted: a Send or Write is done when mark is accepted
	done                    // to be completed in its turn
)

// A sendWQE is a request in the send queue. It is the payload of its message.
type sendWQE struct {
	qp     *QP
	link   *link // that it is sent on
	id     uint64
	op     Opcode
	flags  Flags
	sgl    []SGE
	length uint64
	inline []byte // the data instead of sgl, if FlagInline

	second   rdmap.Operation // of a request that takes two messages, until the first is posted
	isSecond bool            // operation is that
	split    splitRead       // of a Read with several sinks
	local    *localWork      // of a request that sends nothing, or nil

	operation rdmap.Operation
	state     sendState
	mark      uint64 // position in the LLP behind the message
	status    Status
	cause     error
}

// A localWork is what FastRegister and BindWindow are to do.
type localWork struct {
	register FastRegister
	bind     Bind
}

// Gather implements ddp.Payload.
func (w *sendWQE) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	if w.flags&FlagInline != 0 {
		return append(pieces, w.inline[off:off+n]), nil
	}
	at, left := uint64(off), uint64(n)
	for _, e := range w.sgl {
		if left == 0 {
			break
		}
		if at >= uint64(e.Length) {
			at -= uint64(e.Length)
			continue
		}
		k := min(left, uint64(e.Length)-at)
		mem, err := w.link.lease.Open(&w.qp.pd.dev.memory, e.LKey, w.qp.scope(), 0, e.Addr+at, k)
		if err != nil {
			return pieces, err
		}
		pieces = append(pieces, mem)
		left, at = left-k, 0
	}
	return pieces, nil
}

// Release implements ddp.Payload: the memory stays open until it is flushed.
func (w *sendWQE) Release() {}

// Stable implements ddp.Payload: until a request completes, the consumer leaves
// its memory alone.
func (w *sendWQE) Stable() bool { return true }

// check refuses a request that can't be carried out, and returns the length of
// its SGL or inline data.
func (q *QP) check(wr *SendWR) (length uint64, err error) {
	switch {
	case !wr.Op.postable():
		return 0, fmt.Errorf("%v can't be posted", wr.Op)
	case wr.Flags&^allFlags != 0:
		return 0, fmt.Errorf("unknown flags 0x%x", uint8(wr.Flags&^allFlags))
	case wr.Flags&FlagSolicited != 0 && !wr.Op.mayBeSolicited():
		return 0, fmt.Errorf("%v can't raise a solicited event", wr.Op)
	case wr.Flags&FlagInline != 0:
		if !wr.Op.sendsData() {
			return 0, fmt.Errorf("%v has no inline data", wr.Op)
		}
		if len(wr.SGL) != 0 {
			return 0, errors.New("both an SGL and inline data are given")
		}
		if len(wr.Inline) > q.attr.MaxInline {
			return 0, fmt.Errorf("%d octets of inline data: the queue takes %d", len(wr.Inline), q.attr.MaxInline)
		}
		return uint64(len(wr.Inline)), nil
	}
	switch wr.Op {
	case OpImmediate, OpLocalInvalidate:
		if len(wr.SGL) != 0 {
			return 0, fmt.Errorf("%v has no SGL", wr.Op)
		}
	case OpFastRegister:
		return 0, q.checkRegister(&wr.Register)
	case OpBindWindow:
		return 0, wr.Bind.check(q.pd)
	case OpRead, OpReadInvalidate, OpFetchAdd, OpCmpSwap:
		return q.checkRead(wr)
	default:
	}
	return q.checkSGL(wr.SGL, q.attr.MaxSGE, 0)
}

// checkSGL checks the SGL of a request for the send queue, whose mu the caller
// holds. What is judged late is only measured.
func (q *QP) checkSGL(sgl []SGE, limit int, need stag.Access) (uint64, error) {
	if q.judgesLate() {
		return measureSGL(sgl, limit)
	}
	return checkSGL(&q.sq.lease, sgl, limit, &q.pd.dev.memory, q.scope(), need, false)
}

func (q *QP) checkRegister(r *FastRegister) error {
	if r.MR == nil {
		return errors.New("no region is given")
	}
	if r.MR.pd != q.pd {
		return errors.New("the region belongs to another protection domain")
	}
	if err := r.Memory.verify(r.Access); err != nil {
		return err
	}
	_, _, err := r.Memory.region()
	return err
}

func (q *QP) checkRead(wr *SendWR) (uint64, error) {
	n, err := q.checkSGL(wr.SGL, q.maxSinks(wr.Op), stag.LocalWrite)
	switch {
	case err != nil:
		return 0, err
	case wr.Op.isAtomic() && len(wr.SGL) > 0 && n != rdmap.AtomicLen:
		return 0, fmt.Errorf("%v returns %d octets, the SGL has room for %d", wr.Op, rdmap.AtomicLen, n)
	case wr.Op == OpReadInvalidate && len(wr.SGL) == 0:
		return 0, errors.New("there is no sink whose STag could be invalidated")
	}
	return n, nil
}

// judgeSink checks the SGL of a Read or atomic whose turn has come, if nobody has
// before. The caller holds the mu of the send queue.
func (w *sendWQE) judgeSink() error {
	q := w.qp
	if !q.judgesLate() {
		return nil
	}
	_, err := checkSGL(&q.sq.lease, w.sgl, q.maxSinks(w.op), &q.pd.dev.memory, q.scope(), stag.LocalWrite, true)
	q.sq.lease.End()
	return w.refuse(StatusLocalProtection, err)
}

// fill makes w a copy of a request that check has passed.
func (w *sendWQE) fill(wr *SendWR, length uint64) {
	w.id, w.op, w.flags = wr.ID, wr.Op, wr.Flags
	w.sgl, w.inline, w.length = w.sgl[:0], w.inline[:0], length
	switch {
	case wr.Flags&FlagInline != 0:
		w.inline = append(w.inline, wr.Inline...)
	case !wr.Op.isLocal():
		w.sgl = append(w.sgl, wr.SGL...)
	}
	w.isSecond = false
	w.split = splitRead{parts: w.split.parts[:0]}
	if wr.Op == OpFastRegister || wr.Op == OpBindWindow {
		w.local = &localWork{wr.Register, wr.Bind}
	}
	w.state, w.mark, w.status, w.cause = queued, 0, StatusSuccess, nil
	o := &w.operation
	*o = rdmap.Operation{Length: length, STag: wr.Remote.STag, TO: wr.Remote.TO, Payload: w, Invalidate: wr.Invalidate, Immediate: wr.Immediate, Context: w}
	solicited := wr.Flags&FlagSolicited != 0
	choose := func(plain, se rdmap.Opcode) rdmap.Opcode {
		if solicited {
			return se
		}
		return plain
	}
	switch wr.Op {
	case OpSend:
		o.Op = choose(rdmap.OpSend, rdmap.OpSendSE)
	case OpSendInvalidate:
		o.Op = choose(rdmap.OpSendInvalidate, rdmap.OpSendSEInvalidate)
	case OpWrite:
		o.Op = rdmap.OpWrite
	case OpWriteImmediate:
		o.Op = rdmap.OpWrite
		w.second = rdmap.Operation{Op: choose(rdmap.OpImmediate, rdmap.OpImmediateSE), Immediate: wr.Immediate, Context: w}
	case OpSendImmediate:
		o.Op = choose(rdmap.OpSend, rdmap.OpSendSE)
		w.second = *o
		*o = rdmap.Operation{Op: rdmap.OpImmediate, Immediate: wr.Immediate, Context: w}
		copy(o.Immediate[len(o.Immediate)-len(PairMark):], PairMark)
	case OpImmediate:
		o.Op = choose(rdmap.OpImmediate, rdmap.OpImmediateSE)
	case OpRead, OpReadInvalidate:
		o.Op = rdmap.OpReadRequest
		if len(w.sgl) > 0 {
			o.SinkSTag, o.SinkTO = w.sgl[0].LKey, w.sgl[0].Addr
		}
		w.split.fill(o, w.sgl)
	case OpFetchAdd, OpCmpSwap:
		o.Op, o.Length = rdmap.OpAtomicRequest, 0
		o.Atomic = wr.Atomic.request(wr.Op)
	default: // it sends nothing
	}
}

// secondHalf goes on with the second message of a request, when the first is posted.
func (w *sendWQE) secondHalf() {
	w.operation, w.second, w.isSecond = w.second, rdmap.Operation{}, true
}

// inFirstHalf reports whether a message is still to come.
func (w *sendWQE) inFirstHalf() bool { return w.op.isPair() && !w.isSecond }

// request returns the operands as they go to the peer.
func (a *Atomic) request(op Opcode) rdmap.AtomicRequest {
	all := ^uint64(0)
	if op == OpFetchAdd {
		// What FetchAdd does not use is "set to zero" and "ffffffffffffffffh on
		// transmit": RFC 7306 §5.2.1.
		return rdmap.AtomicRequest{Op: rdmap.AtomicFetchAdd, AddSwap: a.Add, AddSwapMask: a.AddMask, CompareMask: all}
	}
	r := rdmap.AtomicRequest{Op: rdmap.AtomicCmpSwap, AddSwap: a.Swap, AddSwapMask: a.SwapMask, Compare: a.Compare, CompareMask: a.CompareMask}
	if !a.Masked {
		if r.AddSwapMask == 0 {
			r.AddSwapMask = all
		}
		if r.CompareMask == 0 {
			r.CompareMask = all
		}
	}
	return r
}

// storeOriginal puts what an atomic found into the SGL, as this machine keeps
// numbers.
func (w *sendWQE) storeOriginal() error {
	if len(w.sgl) == 0 {
		return nil
	}
	pin, err := w.qp.pd.dev.memory.Acquire(w.sgl[0].LKey, w.qp.scope(), stag.LocalWrite, w.sgl[0].Addr, rdmap.AtomicLen)
	if err != nil {
		return err
	}
	defer pin.Release()
	var b [rdmap.AtomicLen]byte
	binary.NativeEndian.PutUint64(b[:], w.operation.Original)
	return memfault.Copy(pin.Bytes(), b[:])
}

// carryOut does what a request does that sends nothing. If it fails, it returns the
// status of the completion too.
func (w *sendWQE) carryOut() (Status, error) {
	switch w.op {
	case OpFastRegister:
		r := &w.local.register
		mem, base, err := r.Memory.region()
		if err == nil {
			err = r.MR.entry.FastRegister(stag.Memory{Mem: mem, Base: base, Access: r.Access}, r.Key)
		}
		return StatusRegisterFailed, err
	case OpBindWindow:
		b := &w.local.bind
		_, err := b.MW.entry.Bind(b.binding(w.qp.scope()))
		return StatusBindFailed, err
	default:
		return w.invalidate(w.operation.Invalidate)
	}
}

// invalidate invalidates an STag of this side. If that fails, it returns the status of the
// completion too.
func (w *sendWQE) invalidate(s stag.STag) (Status, error) {
	err := w.qp.pd.dev.memory.Invalidate(s, w.qp.scope())
	if errors.As(err, new(*stag.AccessError)) {
		return StatusBadSTag, err
	}
	return StatusInvalidateFailed, err
}

// refuse notes with which status the request fails, if err is an error.
func (w *sendWQE) refuse(status Status, err error) error {
	if err != nil {
		w.status, w.cause = status, err
	}
	return err
}

// completion returns the request's completion.
func (w *sendWQE) completion() WC {
	wc := WC{ID: w.id, Status: w.status, Op: w.op, QPN: w.qp.num, Cause: w.cause}
	if w.status == StatusSuccess {
		wc.ByteLen = uint32(w.length)
		if w.op.isAtomic() {
			wc.ByteLen, wc.Original = rdmap.AtomicLen, w.operation.Original
		}
	}
	return wc
}
