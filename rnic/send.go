package rnic

import (
	"encoding/binary"
	"errors"

	"urnic/internal/host/memfault"
	"urnic/rdmap"
	"urnic/rnic/internal/life"
	"urnic/stag"
)

// A sendWQE is a request in the send queue. It is the payload of its message.
type sendWQE struct {
	life.Request
	qp     *QP
	id     uint64
	op     Opcode
	flags  Flags
	sgl    []SGE
	length uint64
	inline []byte     // the data instead of sgl, if FlagInline
	local  *localWork // of OpFastRegister and OpBindWindow, or nil
	stag   stag.STag  // of OpLocalInvalidate
}

// A localWork has the parameters of FastRegister and BindWindow.
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
		mem, err := w.qp.link.lease.Open(&w.qp.pd.dev.memory, e.LKey, w.qp.scope(), 0, e.Addr+at, k)
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

// Stable implements ddp.Payload: until a request completes, the program does
// not change its memory.
func (w *sendWQE) Stable() bool { return true }

// storeOriginal stores the original value of an atomic in the SGL, in the byte
// order of this machine.
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
	binary.NativeEndian.PutUint64(b[:], w.Messages[0].Original)
	return memfault.Copy(pin.Bytes(), b[:])
}

// carryOut carries out a request that sends nothing. If that fails, it returns the
// status of the completion too.
func (w *sendWQE) carryOut() (life.Status, error) {
	switch w.op {
	case OpFastRegister:
		r := &w.local.register
		mem, base, err := r.Memory.region()
		if err == nil {
			err = r.MR.entry.FastRegister(stag.Memory{Mem: mem, Base: base, Access: r.Access}, r.Key)
		}
		return life.RegisterFailed, err
	case OpBindWindow:
		b := &w.local.bind
		_, err := b.MW.entry.Bind(b.binding(w.qp.scope()))
		return life.BindFailed, err
	default:
		return w.invalidate(w.stag)
	}
}

// invalidate invalidates an STag of this side. If that fails, it returns the status of the
// completion too.
func (w *sendWQE) invalidate(s stag.STag) (life.Status, error) {
	err := w.qp.pd.dev.memory.Invalidate(s, w.qp.scope())
	if errors.As(err, new(*stag.AccessError)) {
		return life.BadSTag, err
	}
	return life.InvalidateFailed, err
}

// completion returns the request's completion.
func (w *sendWQE) completion() WC {
	wc := WC{ID: w.id, Status: Status(w.Status), Op: w.op, QPN: w.qp.num, Cause: w.Cause}
	if w.Status == life.Success {
		wc.ByteLen = uint32(w.length)
		if w.op.isAtomic() {
			wc.ByteLen, wc.Original = rdmap.AtomicLen, w.Messages[0].Original
		}
	}
	return wc
}
