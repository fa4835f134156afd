//go:build linux

package dropin

import (
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"urnic/internal/door"
	"urnic/rnic"
)

// A region is a struct ibv_mr's. Its lkey and rkey are one STag, its iova the TO of
// its first byte.
type region struct {
	mu    sync.Mutex // of those that change it
	pd    *protectionDomain
	is    Region // what the program has asked for last
	gone  bool
	sink  Handle // of a null region: where what is written ends, or 0
	verbs atomic.Pointer[rnic.MR]

	// use is held by those that copy datagrams, and by whoever changes what follows.
	use sync.RWMutex
	now usable
}

// MRReg opens memory of the program for what r.Access says, and returns handle and
// STag in r. As the man page of ibv_reg_mr has it, remote write and atomic access
// want local write access.
func (e *Engine) MRReg(pd Handle, r *Region) Errno {
	p := e.pds.get(pd)
	if p == nil || r == nil {
		return syscall.EINVAL
	}
	if r.Access&accessOnDemand != 0 && !r.implicit() {
		return syscall.EOPNOTSUPP
	}
	verbs, number := e.register(p, r)
	if number != ok {
		return number
	}
	m := &region{pd: p}
	m.verbs.Store(verbs)
	e.granted.Store(uint32(verbs.STag()), r.Access)
	h := e.regions.add(m)
	if h == 0 {
		_ = verbs.Close() // nobody has used it
		return syscall.ENOMEM
	}
	r.MR, r.STag = uint32(h), uint32(verbs.STag())
	m.is = *r
	e.usableAs(m, 0)
	return ok
}

func (e *Engine) register(p *protectionDomain, r *Region) (*rnic.MR, Errno) {
	if r.implicit() {
		r.Addr, r.Length, r.IOVA = lowest, highest-lowest, lowest
	}
	m, access, number := e.memory(r)
	if number != ok {
		return nil, number
	}
	verbs, err := p.verbs.RegisterMemory(m, access, nil)
	return verbs, e.fail(err)
}

// memory returns what a region covers, and its rights.
func (e *Engine) memory(r *Region) (m rnic.Memory, _ rnic.Access, _ Errno) {
	access, number := accessOf(r.Access)
	switch {
	case number != ok:
		return m, 0, e.refuse(number, "register: access flags 0x%x", r.Access)
	case r.Addr < lowest || r.Length == 0 || r.Length > math.MaxInt64:
		return m, 0, e.refuse(syscall.EINVAL, "register: no memory, %d bytes at 0x%x", r.Length, r.Addr)
	case access&(rnic.RemoteWrite|rnic.RemoteAtomic) != 0 && access&rnic.LocalWrite == 0:
		return m, 0, e.refuse(syscall.EINVAL, "register: remote write and atomic access need IBV_ACCESS_LOCAL_WRITE, too")
	}
	m = rnic.Memory{Pointer: pointer(r.Addr), Length: int(r.Length)}
	if r.Access&accessOnDemand != 0 { // most of it is not mapped: who uses it finds out what is
		return rnic.Memory{Slice: unsafe.Slice((*byte)(m.Pointer), m.Length)}, access, ok
	}
	switch {
	case r.Access&accessZeroBased != 0 || r.IOVA == 0:
		m.ZeroBased = true
	case r.IOVA != r.Addr:
		m.Base = r.IOVA
	}
	return m, access, ok
}

// lowest is the first address that memory can have: Go's runtime takes a pointer below
// it, other than nil, for a fault of its own.
const lowest = 4096

// highest is behind the last address that programs have, unless they ask for more: Linux gives them 47 bits on amd64.
const highest = 1<<47 - lowest

// implicit reports whether a region is of all memory of the process, as it is when it is used. Others with paging on demand
// are the affair of the C half.
func (r *Region) implicit() bool {
	return r.Access&accessOnDemand != 0 && r.Addr == 0 && r.Length == math.MaxUint64
}

// pointer makes a pointer of an address that the program has given. It is memory
// that Go does not own.
func pointer(addr uint64) unsafe.Pointer {
	a := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

// accessOf returns what enum ibv_access_flags grants.
func accessOf(flags uint32) (a rnic.Access, _ Errno) {
	for _, f := range []struct {
		flag uint32
		a    rnic.Access
	}{
		{accessLocalWrite, rnic.LocalWrite},
		{accessRemoteWrite, rnic.RemoteWrite},
		{accessRemoteRead, rnic.RemoteRead},
		{accessRemoteAtomic, rnic.RemoteAtomic},
		{accessMWBind, rnic.BindWindow},
	} {
		if flags&f.flag != 0 {
			a |= f.a
			flags &^= f.flag
		}
	}
	if flags&^(accessZeroBased|accessOnDemand|accessHugeTLB|accessOptional) != 0 {
		return 0, syscall.EOPNOTSUPP
	}
	return a, ok
}

// MRRereg changes what a region covers, to whom it belongs, or its rights, as flags
// say. On an error the region is as it was. Other memory gets another STag; else the STag
// stays, as it does with most hardware, and programs count on that.
func (e *Engine) MRRereg(mr Handle, flags uint32, pd Handle, r *Region) Errno {
	m := e.regions.get(mr)
	if m == nil || r == nil || flags == 0 || flags&^(reregTranslation|reregPD|reregAccess) != 0 {
		return syscall.EINVAL
	}
	if flags&reregAccess != 0 && r.Access&accessOnDemand != 0 {
		return syscall.EOPNOTSUPP
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone || m.sink != 0 {
		return syscall.EINVAL
	}
	p, is := m.pd, m.is
	if flags&reregPD != 0 {
		if p = e.pds.get(pd); p == nil || p.ctx != m.pd.ctx {
			return syscall.EINVAL
		}
	}
	if flags&reregTranslation != 0 {
		is.Addr, is.Length, is.IOVA = r.Addr, r.Length, r.IOVA
	}
	if flags&reregAccess != 0 {
		if is.Access&accessZeroBased != 0 && r.Access&accessZeroBased == 0 && flags&reregTranslation == 0 {
			is.IOVA = is.Addr // it does not count from 0 any more
		}
		is.Access = r.Access | is.Access&accessOnDemand
	}
	if flags&reregTranslation != 0 {
		is.Access &^= accessOnDemand // other memory
	}
	change := m.alter
	if flags&reregTranslation != 0 {
		change = m.replace
	}
	old := m.verbs.Load()
	verbs, number := change(e, p, &is)
	if number != ok {
		return number
	}
	defer e.usableAs(m, uint32(old.STag()))
	e.granted.Delete(uint32(old.STag()))
	e.granted.Store(uint32(verbs.STag()), is.Access)
	m.pd, m.is = p, is
	m.verbs.Store(verbs)
	m.is.MR, m.is.STag = uint32(mr), uint32(verbs.STag())
	*r = m.is
	return ok
}

// replace registers other memory in place of that of a region. The caller holds mu.
func (m *region) replace(e *Engine, p *protectionDomain, is *Region) (*rnic.MR, Errno) {
	verbs, number := e.register(p, is)
	if number != ok {
		return nil, number
	}
	if err := m.verbs.Load().Close(); err != nil { // windows are bound to it
		_ = verbs.Close() // nobody has used it
		return nil, e.fail(err)
	}
	return verbs, ok
}

// alter changes domain and rights of a region. The caller holds mu.
func (m *region) alter(e *Engine, p *protectionDomain, is *Region) (*rnic.MR, Errno) {
	memory, access, number := e.memory(is)
	if number != ok {
		return nil, number
	}
	verbs, err := door.Reregister(m.verbs.Load(), p.verbs, memory, access)
	return verbs, e.fail(err)
}

// MRDereg closes a region. When it returns, nothing touches the memory any more. It
// returns EBUSY while windows are bound to it.
func (e *Engine) MRDereg(mr Handle) Errno {
	m := e.regions.get(mr)
	if m == nil {
		return syscall.EINVAL
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return syscall.EINVAL
	}
	if err := m.verbs.Load().Close(); err != nil {
		return e.fail(err)
	}
	m.gone = true
	m.nullDereg(e)
	e.usableAs(m, m.is.STag)
	e.granted.Delete(m.is.STag)
	e.regions.remove(mr)
	return ok
}
