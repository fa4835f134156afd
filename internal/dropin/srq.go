//go:build linux

package dropin

import (
	"sync"
	"syscall"

	"urnic/rnic"
)

// A sharedQueue is a struct ibv_srq's.
type sharedQueue struct {
	pd     *protectionDomain
	cookie uint64
	verbs  *rnic.SRQ
	recv   recvBatch
	kept   keptQueue

	mu sync.Mutex // of whoever modifies it
}

// SRQCreate makes a shared receive queue, and tells in attr how large it is.
func (e *Engine) SRQCreate(pd Handle, attr *SRQAttr, cookie uint64) (h Handle, num uint32, _ Errno) {
	p := e.pds.get(pd)
	if p == nil || attr == nil || attr.MaxWR == 0 || attr.MaxWR > rnic.MaxWR || attr.MaxSGE > rnic.MaxSGE {
		return 0, 0, syscall.EINVAL
	}
	verbs, err := p.verbs.CreateSRQ(rnic.SRQAttr{MaxWR: int(attr.MaxWR), MaxSGE: int(attr.MaxSGE)})
	if err != nil {
		return 0, 0, e.fail(err)
	}
	s := &sharedQueue{pd: p, cookie: cookie, verbs: verbs}
	if e.noDatagrams() != "" {
		s.kept.by.Store(uint32(sharedByConnected))
	}
	if h = e.srqs.add(s); h == 0 {
		_ = verbs.Close() // nobody has used it
		return 0, 0, syscall.ENOMEM
	}
	e.ofSRQ.Store(verbs, s)
	s.tell(attr)
	return h, verbs.Num(), ok
}

func (s *sharedQueue) tell(out *SRQAttr) {
	a := s.verbs.Attr()
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	*out = SRQAttr{MaxWR: uint32(a.MaxWR), MaxSGE: uint32(a.MaxSGE), Limit: uint32(max(a.Limit, s.kept.limit))}
}

// SRQModify changes the size of a queue, or arms its limit event, as mask says.
func (e *Engine) SRQModify(srq Handle, attr *SRQAttr, mask uint32) Errno {
	s := e.srqs.get(srq)
	if s == nil || attr == nil || mask&^(srqMaxWR|srqLimit) != 0 {
		return syscall.EINVAL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.verbs.Attr()
	most := uint32(now.MaxWR)
	if mask&srqMaxWR != 0 {
		if most = attr.MaxWR; most > rnic.MaxWR {
			return syscall.EINVAL
		}
	}
	if mask&srqLimit != 0 && attr.Limit > most {
		return syscall.EINVAL
	}
	if number, kept := s.modifyKept(attr, mask, int(most)); kept {
		return number
	}
	if mask&srqMaxWR != 0 {
		if err := s.verbs.Resize(int(attr.MaxWR)); err != nil {
			return e.fail(err)
		}
	}
	if mask&srqLimit != 0 {
		return e.fail(s.verbs.ArmLimit(int(attr.Limit)))
	}
	return ok
}

// SRQQuery tells the size of a queue, and the limit that is armed.
func (e *Engine) SRQQuery(srq Handle, out *SRQAttr) Errno {
	s := e.srqs.get(srq)
	if s == nil || out == nil {
		return syscall.EINVAL
	}
	s.tell(out)
	return ok
}

// SRQDestroy gives a shared receive queue up, unless a queue pair uses it. The
// receives in it don't complete.
func (e *Engine) SRQDestroy(srq Handle) Errno {
	s := e.srqs.get(srq)
	if s == nil {
		return syscall.EINVAL
	}
	if err := s.verbs.Close(); err != nil {
		return e.fail(err)
	}
	if e.srqs.remove(srq) == nil {
		return syscall.EINVAL
	}
	e.ofSRQ.Delete(s.verbs)
	s.pd.ctx.forget(s.cookie, isSRQEvent)
	return ok
}
