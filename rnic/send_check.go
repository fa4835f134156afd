package rnic

import (
	"errors"
	"fmt"

	"urnic/rdmap"
	"urnic/stag"
)

// check refuses an invalid request, and returns the length of its SGL or inline
// data.
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
// holds. An SGL that is checked when its turn comes is only measured.
func (q *QP) checkSGL(sgl []SGE, limit int, need stag.Access) (uint64, error) {
	if q.life.ChecksAtTurn() {
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

// maxSinks returns how many sinks a Read or atomic can have.
func (q *QP) maxSinks(op Opcode) int {
	if op == OpRead && q.splitReads {
		return q.attr.MaxSGE
	}
	return MaxReadSGE
}

// checkSink checks the SGL of a Read or atomic whose turn has come, and that was not
// checked before. The caller holds the mu of the send queue.
func (w *sendWQE) checkSink() error {
	q := w.qp
	_, err := checkSGL(&q.sq.lease, w.sgl, q.maxSinks(w.op), &q.pd.dev.memory, q.scope(), stag.LocalWrite, true)
	q.sq.lease.End()
	return err
}
