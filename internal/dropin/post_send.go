//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"urnic/internal/door"
	"urnic/internal/host/memfault"
	"urnic/rnic"
	"urnic/stag"
)

// A sendBatch is where lists of requests are made what package rnic takes.
type sendBatch struct {
	signalAll bool
	acks      *acknowledger // or nil: requests complete as on iWARP

	mu     sync.Mutex
	wrs    []rnic.SendWR // as many as were needed so far
	inline []byte        // the inline data of those
}

// inlineBatch is how many bytes of inline data are posted at a time, if requests
// have less.
const inlineBatch = 1 << 12

var (
	errOpcode   = errors.New("unknown opcode")
	errInline   = errors.New("more inline data than the queue takes, or of an operation that has none")
	errNoMemory = errors.New("inline data at no address")
)

// QPPostSend posts a list of requests. On an error *bad is the first that is not
// posted: EINVAL if it is malformed, ENOMEM if the queue is full, EFAULT if inline data
// can't be read.
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
	if q.datagram != nil {
		return q.datagram.postSend(wr, bad)
	}
	b := &q.send
	b.mu.Lock()
	defer b.mu.Unlock()
	for wr != nil {
		first, n := wr, 0
		var refused error
		b.inline = b.inline[:0]
		for ; wr != nil && b.room(n, wr, int(q.init.MaxInline)); wr = wr.Next {
			if !q.room(n + 1) {
				refused = rnic.ErrQueueFull
				break
			}
			if refused = q.translate(wr, &b.wrs[n]); refused != nil {
				break
			}
			n++
		}
		if n > 0 {
			if err := q.hand(n, false); err != nil {
				*bad = first.after(err)
				return e.fail(err)
			}
		}
		if refused != nil {
			*bad = wr
			return e.refuse(errno(refused), "post send: QP 0x%x: request %d: %v", q.num, wr.ID, refused)
		}
	}
	return ok
}

// QPPostAll posts all of a list of requests, or on an error none: EINVAL if one is
// malformed, ENOMEM if the queue has no room for all, EFAULT if inline data can't be
// read. ibv_wr_complete wants that.
func (e *Engine) QPPostAll(h Handle, wr *SendWR) Errno {
	q := e.qps.get(h)
	if q == nil || q.isReset() {
		return syscall.EINVAL
	}
	if q.datagram != nil {
		return q.datagram.postAll(wr)
	}
	b := &q.send
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.roomForAll(wr, int(q.init.MaxSendWR), int(q.init.MaxInline)) {
		return e.refuse(syscall.ENOMEM, "post send: QP 0x%x: its queue takes %d requests", q.num, q.init.MaxSendWR)
	}
	n := 0
	for w := wr; w != nil; w = w.Next {
		n++
	}
	if !q.room(n) {
		return e.fail(fmt.Errorf("post send: QP 0x%x: %w", q.num, rnic.ErrQueueFull))
	}
	n = 0
	for ; wr != nil; wr = wr.Next {
		if err := q.translate(wr, &b.wrs[n]); err != nil {
			return e.refuse(errno(err), "post send: QP 0x%x: request %d: %v", q.num, wr.ID, err)
		}
		n++
	}
	return e.fail(q.hand(n, true))
}

// after returns the request of a list that begins with w which package rnic has
// refused with err.
func (w *SendWR) after(err error) *SendWR {
	if at := (*rnic.WRError)(nil); errors.As(err, &at) {
		for range at.Index {
			w = w.Next
		}
	}
	return w
}

// room reports whether one more request fits behind n others, and makes room.
func (b *sendBatch) room(n int, wr *SendWR, inline int) bool {
	switch {
	case n == postBatch:
		return false
	case wr.Flags&sendInline == 0:
	case b.inline == nil:
		b.inline = make([]byte, 0, max(inline, inlineBatch))
	case cap(b.inline)-len(b.inline) < inline: // what was copied before must stay where it is
		return false
	}
	if n == len(b.wrs) {
		b.grow(min(max(2*n, 1), postBatch))
	}
	return true
}

// roomForAll makes room for all requests of a list, and reports whether a queue of
// limit requests could ever take them.
func (b *sendBatch) roomForAll(wr *SendWR, limit, inline int) bool {
	n, size := 0, 0
	for ; wr != nil && n <= limit; wr = wr.Next {
		if wr.Flags&sendInline != 0 {
			size += inline
		}
		n++
	}
	if n > limit {
		return false
	}
	if n > len(b.wrs) {
		b.grow(n)
	}
	if b.inline = b.inline[:0]; cap(b.inline) < size {
		b.inline = make([]byte, 0, size)
	}
	return true
}

// grow makes place for n requests.
func (b *sendBatch) grow(n int) {
	b.wrs = append(b.wrs, make([]rnic.SendWR, n-len(b.wrs))...)
}

// translate makes t the request that the program wants.
func (q *qp) translate(wr *SendWR, t *rnic.SendWR) error {
	b := &q.send
	*t = rnic.SendWR{ID: wr.ID}
	if wr.Flags&sendSignaled == 0 && !b.signalAll {
		t.Flags |= rnic.FlagUnsignaled
	}
	if wr.Flags&sendFence != 0 {
		t.Flags |= rnic.FlagReadFence
	}
	switch wr.Opcode {
	case wrLocalInv:
		t.Op, t.Invalidate = rnic.OpLocalInvalidate, stag.STag(wr.Imm)
		return nil
	case wrBindMW:
		return q.bind(&wr.Bind, t)
	}
	sgl, err := sglOf(wr.SGL, wr.NumSGE)
	if err != nil {
		return err
	}
	sends := true // what the SGL names
	if wr.Flags&sendInline == 0 {
		sgl = q.engine.withNull(sgl, wr.Opcode == wrRead || wr.Opcode == wrCmpSwap || wr.Opcode == wrFetchAdd)
	}
	switch wr.Opcode {
	case wrSend:
		t.Op = rnic.OpSend
	case wrSendInv:
		t.Op, t.Invalidate = rnic.OpSendInvalidate, stag.STag(wr.Imm)
	case wrSendImm:
		t.Op, t.Immediate = door.OpSendImmediate, immediate(wr.Imm, 0)
		err = q.engine.beyond(immediateData)
	case wrWrite:
		t.Op, t.Remote = rnic.OpWrite, remote(wr)
	case wrWriteImm:
		t.Op, t.Remote, t.Immediate = rnic.OpWriteImmediate, remote(wr), immediate(wr.Imm, total(sgl))
		err = q.engine.beyond(immediateData)
	case wrRead:
		sends = false
		t.Op, t.Remote, t.SGL = rnic.OpRead, remote(wr), sgl
		err = q.engine.judgeSinks(sgl)
	case wrCmpSwap, wrFetchAdd:
		sends = false
		q.atomic(wr, t)
		t.SGL = sgl
		err = q.engine.beyond(atomics)
	default:
		return errOpcode
	}
	if err == nil && !sends {
		err = q.allows(t)
	}
	switch {
	case err != nil:
		return err
	case wr.Flags&sendInline != 0 && !sends:
		return errInline
	case !sends:
		return nil
	}
	if wr.Flags&sendSolicited != 0 && t.Op != rnic.OpWrite {
		t.Flags |= rnic.FlagSolicited
	}
	if wr.Flags&sendInline == 0 {
		t.SGL = sgl
		return nil
	}
	t.Flags |= rnic.FlagInline
	t.Inline, err = b.gather(sgl, int(q.init.MaxInline))
	return err
}

// atomic makes the request of an atomic operation.
func (q *qp) atomic(wr *SendWR, t *rnic.SendWR) {
	a := &wr.WR
	t.Remote = rnic.Remote{STag: stag.STag(a.RKey), TO: a.RemoteAddr}
	if t.Op = rnic.OpFetchAdd; wr.Opcode == wrFetchAdd {
		t.Atomic.Add = a.CompareAdd
		return
	}
	t.Op, t.Atomic = rnic.OpCmpSwap, rnic.Atomic{Compare: a.CompareAdd, Swap: a.Swap}
}

// gather copies inline data, of which limit bytes are taken.
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
		end := len(b.inline)
		b.inline = slices.Grow(b.inline, int(s.Length))[:end+int(s.Length)]
		if err := memfault.Copy(b.inline[end:], unsafe.Slice((*byte)(pointer(s.Addr)), s.Length)); err != nil {
			return nil, fmt.Errorf("inline data: %w: %w", syscall.EFAULT, err)
		}
	}
	return b.inline[at:], nil
}

func remote(wr *SendWR) rnic.Remote {
	r := wr.RDMA()
	return rnic.Remote{STag: stag.STag(r.RKey), TO: r.RemoteAddr}
}

// total returns the bytes of an SGL, as far as 32 bits can tell.
func total(sgl []rnic.SGE) (n uint32) {
	for i := range sgl {
		n += sgl[i].Length
	}
	return n
}
