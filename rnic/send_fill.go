package rnic

import (
	"urnic/internal/door/policy"
	"urnic/rdmap"
	"urnic/rnic/internal/life"
)

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
	w.Flags = 0
	for _, f := range [...]struct {
		from Flags
		to   life.Flag
	}{{FlagUnsignaled, life.Unsignaled}, {FlagReadFence, life.ReadFence}, {FlagLocalFence, life.LocalFence}} {
		if wr.Flags&f.from != 0 {
			w.Flags |= f.to
		}
	}
	w.Messages = w.Messages[:0]
	if wr.Op.isLocal() {
		w.stag = wr.Invalidate
		if wr.Op != OpLocalInvalidate {
			w.local = &localWork{wr.Register, wr.Bind}
		}
		return
	}
	w.Messages = append(w.Messages, rdmap.Operation{Length: length, STag: wr.Remote.STag, TO: wr.Remote.TO, Invalidate: wr.Invalidate, Immediate: wr.Immediate, Context: w})
	o := &w.Messages[0]
	if wr.Op.sendsData() {
		o.Payload = w
	}
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
		w.Messages = append(w.Messages, rdmap.Operation{Op: choose(rdmap.OpImmediate, rdmap.OpImmediateSE), Immediate: wr.Immediate, Context: w})
	case opSendImmediate:
		o.Op = choose(rdmap.OpSend, rdmap.OpSendSE)
		first := rdmap.Operation{Op: rdmap.OpImmediate, Immediate: wr.Immediate, Context: w}
		copy(first.Immediate[len(first.Immediate)-len(policy.PairMark):], policy.PairMark)
		w.Messages = append(w.Messages[:0], first, *o)
	case OpImmediate:
		o.Op = choose(rdmap.OpImmediate, rdmap.OpImmediateSE)
	case OpRead, OpReadInvalidate:
		o.Op = rdmap.OpReadRequest
		if len(w.sgl) > 0 {
			o.SinkSTag, o.SinkTO = w.sgl[0].LKey, w.sgl[0].Addr
		}
		w.split()
	case OpFetchAdd, OpCmpSwap:
		o.Op, o.Length = rdmap.OpAtomicRequest, 0
		o.Atomic = wr.Atomic.request(wr.Op)
	default: // it sends nothing
	}
}

// request returns the operands as they are sent to the peer.
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
