//go:build linux

package dropin

import (
	"sync/atomic"
	"syscall"

	"urnic/rnic"
)

// A protectionDomain is a struct ibv_pd's.
type protectionDomain struct {
	ctx   *rdmaContext
	verbs *rnic.PD
	ahs   atomic.Int32 // address handles
}

// PDAlloc makes a protection domain.
func (e *Engine) PDAlloc(ctx Handle) (Handle, Errno) {
	c := e.contexts.get(ctx)
	if c == nil {
		return 0, syscall.EINVAL
	}
	verbs, err := e.device.AllocPD()
	if err != nil {
		return 0, e.fail(err)
	}
	h := e.pds.add(&protectionDomain{ctx: c, verbs: verbs})
	if h == 0 {
		_ = verbs.Close() // nobody has used it
		return 0, syscall.ENOMEM
	}
	return h, ok
}

// PDFree gives a protection domain up, unless something belongs to it.
func (e *Engine) PDFree(pd Handle) Errno {
	p := e.pds.get(pd)
	if p == nil {
		return syscall.EINVAL
	}
	if p.ahs.Load() > 0 {
		return syscall.EBUSY
	}
	if err := p.verbs.Close(); err != nil {
		return e.fail(err)
	}
	e.pds.remove(pd)
	return ok
}
