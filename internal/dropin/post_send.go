//go:build linux

package dropin

import (
	"encoding/binary"
	"errors"
	"sync"
	"syscall"
	"unsafe"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/stag"
)

// A sendBatch is where lists of requests are made what package rnic takes.
type sendBatch struct {
	signalAll bool

	mu     sync.Mutex
	wrs    [postBatch]rnic.SendWR
	from   [postBatch]*SendWR // which request of the program each is of
	inline []byte             // the inline data of those
}

var (
	errOpcode   = errors.New("unknown opcode")
	errInline   = errors.New("more inline data than the queue takes, or of an operation that has none")
	errNoMemory = errors.New("inline data at no address")
)

// QPPostSend posts a list of requests. On an error *bad is the first that is not
// posted: EINVAL if it is malformed, ENOMEM if the queue is full.
func (e *Engine) QPPostSend(h Handle, wr *SendWR, bad **SendWR) Errno {
	var none *SendWR
	if bad == nil {
		bad = &none
	}
	q := e.qps.get(h)
	if q == nil || q.isReset() {
		*bad = wr
		return syscall.EINVAL
	}
	b := &q.send
	b.mu.Lock()
	defer b.mu.Unlock()
	for wr != nil {
		n := 0
		var refused error
		b.inline = b.inline[:0]
		for ; wr != nil && n < postBatch; wr = wr.Next {
			if refused = q.translate(wr, n); refused != nil {
				break
			}
			b.from[n] = wr
			n++
			if wr.Flags&sendInline != 0 && wr.Next != nil && cap(b.inline)-len(b.inline) < int(q.init.MaxInline) {
				wr = wr.Next // it must not grow: those before point into it
				break
			}
		}
		if n > 0 {
			if err := q.verbs.PostSend(b.wrs[:n]...); err != nil {
				*bad = b.from[0]
				if at := (*rnic.WRError)(nil); errors.As(err, &at) {
					*bad = b.from[at.Index]
				}
				return e.fail(err)
			}
		}
		if refused != nil {
			*bad = wr
			e.log.printf(logInfo, "post send: QP 0x%x: request %d: %v", q.num, wr.ID, refused)
			return errno(refused)
		}
	}
	return ok
}

// translate makes the request at place i of what the program wants.
func (q *qp) translate(wr *SendWR, i int) error {
	b := &q.send
	t := &b.wrs[i]
	*t = rnic.SendWR{ID: wr.ID}
	if wr.Flags&sendSignaled == 0 && !b.signalAll {
		t.Flags |= rnic.FlagUnsignaled
	}
	if wr.Flags&sendFence != 0 {
		t.Flags |= rnic.FlagReadFence
	}
	inline := false // whether it may be
	switch wr.Opcode {
	case wrSend, wrSendInv:
		t.Op, inline = rnic.OpSend, true
		if wr.Opcode == wrSendInv {
			t.Op, t.Invalidate = rnic.OpSendInvalidate, stag.STag(wr.Imm)
		}
	case wrWrite, wrWriteImm:
		t.Op, inline = rnic.OpWrite, true
		if wr.Opcode == wrWriteImm {
			t.Op, t.Immediate = rnic.OpWriteImmediate, immediate(wr.Imm)
		}
		t.Remote = remote(wr)
	case wrRead:
		t.Op, t.Remote = rnic.OpRead, remote(wr)
	case wrCmpSwap, wrFetchAdd:
		a := &wr.WR
		t.Remote = rnic.Remote{STag: stag.STag(a.RKey), TO: a.RemoteAddr}
		if t.Op = rnic.OpFetchAdd; wr.Opcode == wrCmpSwap {
			t.Op, t.Atomic = rnic.OpCmpSwap, rnic.Atomic{Compare: a.CompareAdd, Swap: a.Swap}
		} else {
			t.Atomic.Add = a.CompareAdd
		}
	case wrLocalInv:
		t.Op, t.Invalidate = rnic.OpLocalInvalidate, stag.STag(wr.Imm)
		return nil
	default:
		return errOpcode
	}
	if wr.Flags&sendSolicited != 0 && (wr.Opcode == wrSend || wr.Opcode == wrSendInv || wr.Opcode == wrWriteImm) {
		t.Flags |= rnic.FlagSolicited
	}
	sgl, err := sglOf(wr.SGL, wr.NumSGE)
	if err != nil {
		return err
	}
	if wr.Flags&sendInline == 0 {
		t.SGL = sgl
		return nil
	}
	if !inline {
		return errInline
	}
	t.Flags |= rnic.FlagInline
	t.Inline, err = b.gather(sgl, int(q.init.MaxInline))
	return err
}

// gather copies inline data, of which limit octets are taken.
func (b *sendBatch) gather(sgl []rnic.SGE, limit int) ([]byte, error) {
	at := len(b.inline)
	for _, s := range sgl {
		switch {
		case uint64(s.Length) > uint64(limit-(len(b.inline)-at)):
			return nil, errInline
		case s.Length == 0:
			continue
		case s.Addr == 0:
			return nil, errNoMemory
		}
		b.inline = append(b.inline, unsafe.Slice((*byte)(pointer(s.Addr)), s.Length)...)
	}
	return b.inline[at:], nil
}

func remote(wr *SendWR) rnic.Remote {
	r := wr.RDMA()
	return rnic.Remote{STag: stag.STag(r.RKey), TO: r.RemoteAddr}
}

// immediate returns the eight octets of Immediate Data (RFC 7306 §6.1) for the four
// that the ABI has: those are the first, in the order in which the program has
// them, and zeros follow.
func immediate(imm uint32) (d [rdmap.ImmediateLen]byte) {
	binary.NativeEndian.PutUint32(d[:], imm)
	return d
}
