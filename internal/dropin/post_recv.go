//go:build linux

package dropin

import (
	"errors"
	"sync"
	"syscall"
	"unsafe"

	"urnic/rnic"
)

// A recvBatch is where lists of receives are made what package rnic takes.
type recvBatch struct {
	mu  sync.Mutex
	wrs []rnic.RecvWR // as many as were needed so far, up to postBatch
}

// postBatch is how many requests are posted at a time.
const postBatch = 32

// post posts a list by f. On an error bad points to the first request that is not
// posted.
func (b *recvBatch) post(wr *RecvWR, bad **RecvWR, f func(...rnic.RecvWR) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for wr != nil {
		first, n := wr, 0
		var refused error
		for ; wr != nil && n < postBatch; wr = wr.Next {
			sgl, err := sglOf(wr.SGL, wr.NumSGE)
			if err != nil {
				refused = err
				break
			}
			if n == len(b.wrs) {
				b.wrs = append(b.wrs, rnic.RecvWR{})
			}
			b.wrs[n] = rnic.RecvWR{ID: wr.ID, SGL: sgl}
			n++
		}
		if n > 0 {
			if err := f(b.wrs[:n]...); err != nil {
				skip := 0
				if at := (*rnic.WRError)(nil); errors.As(err, &at) {
					skip = at.Index
				}
				for range skip {
					first = first.Next
				}
				*bad = first
				return err
			}
		}
		if refused != nil {
			*bad = wr
			return refused
		}
	}
	return nil
}

// sglOf returns an SGL where the program has it: struct ibv_sge is rnic.SGE.
func sglOf(sgl *SGE, n int32) ([]rnic.SGE, error) {
	switch {
	case n == 0:
		return nil, nil
	case n < 0 || n > rnic.MaxSGE || sgl == nil:
		return nil, errSGL
	}
	return unsafe.Slice((*rnic.SGE)(unsafe.Pointer(sgl)), n), nil
}

var errSGL = errors.New("an SGL of a bad length, or at no address")

// QPPostRecv posts a list of receives. On an error *bad is the first that is not
// posted: EINVAL if it is malformed, ENOMEM if the queue is full.
func (e *Engine) QPPostRecv(h Handle, wr *RecvWR, bad **RecvWR) Errno {
	var none *RecvWR
	if bad == nil {
		bad = &none
	}
	q := e.qps.get(h)
	if q == nil || q.init.SRQ != 0 || q.isReset() {
		*bad = wr
		return syscall.EINVAL
	}
	if q.datagram != nil {
		return q.datagram.postRecv(wr, bad)
	}
	if err := q.recv.post(wr, bad, func(wrs ...rnic.RecvWR) error { e.replaceNulls(wrs); return e.timeline.PostRecv(q.verbs, wrs...) }); err != nil {
		return e.fail(err)
	}
	return ok
}

// SRQPostRecv is QPPostRecv for a shared receive queue.
func (e *Engine) SRQPostRecv(h Handle, wr *RecvWR, bad **RecvWR) Errno {
	var none *RecvWR
	if bad == nil {
		bad = &none
	}
	s := e.srqs.get(h)
	if s == nil {
		*bad = wr
		return syscall.EINVAL
	}
	if number, kept := s.postKept(wr, bad); kept {
		return number
	}
	if err := s.recv.post(wr, bad, func(wrs ...rnic.RecvWR) error { e.replaceNulls(wrs); return e.timeline.PostShared(s.verbs, wrs...) }); err != nil {
		return e.fail(err)
	}
	return ok
}
