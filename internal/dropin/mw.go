//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/stag"
)

// A window is a struct ibv_mw's.
type window struct {
	pd    *protectionDomain
	verbs *rnic.MW

	mu sync.Mutex // of whoever binds a type 1 window
}

// MWAlloc makes a memory window, and returns its first rkey, which opens nothing.
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

// MWBind binds a type 1 window, and returns in b its rkey, which opens the memory as soon
// as the request has its turn. Without bytes it unbinds the window.
func (e *Engine) MWBind(h Handle, b *WindowBind) Errno {
	q := e.qps.get(h)
	if q == nil || b == nil || q.isReset() {
		return syscall.EINVAL
	}
	w := e.windows.get(b.MW)
	if w == nil || w.verbs.Type() != rnic.Type1 {
		return e.refuse(syscall.EINVAL, "bind: MW %d is no window of type 1", b.MW)
	}
	access, number := windowAccess(b.Access)
	if number != ok {
		return e.refuse(number, "bind: access flags 0x%x: a window grants remote access, and counts as its region does", b.Access)
	}
	wr := rnic.SendWR{ID: b.ID, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: w.verbs, Addr: b.Addr, Length: b.Length, Access: access}}
	if b.MR != 0 || b.Length != 0 {
		r := e.regions.get(b.MR)
		if r == nil {
			return syscall.EINVAL
		}
		wr.Bind.MR = r.verbs.Load()
	}
	if b.Flags&sendSignaled == 0 && !q.send.signalAll {
		wr.Flags |= rnic.FlagUnsignaled
	}
	if b.Flags&sendFence != 0 {
		wr.Flags |= rnic.FlagReadFence
	}
	w.mu.Lock() // keys are used in the order in which they are drawn
	defer w.mu.Unlock()
	wr.Bind = door.DrawKey(wr.Bind)
	if err := q.handOne(&wr); err != nil {
		return e.fail(err)
	}
	b.RKey = uint32(stag.Make(w.verbs.STag().Index(), wr.Bind.Key))
	return ok
}

// windowAccess returns what a window is to grant. A window is for the peer, so local
// write access in its flags adds nothing: the region decides about that. What is
// optional may be ignored.
func windowAccess(flags uint32) (rnic.Access, Errno) {
	const remote = accessRemoteWrite | accessRemoteRead | accessRemoteAtomic
	if flags&^(remote|accessLocalWrite|accessOptional) != 0 {
		return 0, syscall.EOPNOTSUPP // such as a window that counts from 0
	}
	return accessOf(flags & remote)
}

// An ibvMW and an ibvMR are as much of struct ibv_mw and struct ibv_mr as is needed.
type (
	ibvMW struct {
		_            [2]unsafe.Pointer
		rkey, handle uint32
	}
	ibvMR struct {
		_      [3]unsafe.Pointer
		length uintptr
		handle uint32
	}
)

// bind makes the request that binds a type 2 window.
func (q *qp) bind(b *BindWR, t *rnic.SendWR) error {
	e := q.engine
	if b.MW == nil || b.MR == nil {
		return errBind
	}
	w, r := e.windows.get(Handle((*ibvMW)(b.MW).handle)), e.regions.get(Handle((*ibvMR)(b.MR).handle))
	if w == nil || r == nil || w.verbs.Type() != rnic.Type2 || w.verbs.STag().Index() != stag.STag(b.RKey).Index() {
		return errBind
	}
	access, number := windowAccess(b.Access)
	if number != ok {
		return fmt.Errorf("bind: access flags 0x%x: a window grants remote access, and counts as its region does: %w", b.Access, number)
	}
	t.Op = rnic.OpBindWindow
	t.Bind = rnic.Bind{
		MW: w.verbs, MR: r.verbs.Load(), Addr: b.Addr, Length: b.Length,
		// The peer may invalidate a type 2 window, as on InfiniBand.
		Access: access | rnic.RemoteInvalidate, Key: stag.STag(b.RKey).Key(),
	}
	return nil
}

var errBind = errors.New("it is no window of type 2, no region, or its rkey is of another window")
