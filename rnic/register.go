package rnic

import (
	"fmt"

	"urnic/stag"
)

// Register opens Go memory under a new STag. TOs are addresses. Others must not
// use the memory while the RNIC uses it; see the package documentation. It
// returns an *OpError that wraps a *stag.RegisterError or a *pd.LimitError.
func (p *PD) Register(mem []byte, access Access) (*MR, error) {
	return p.RegisterMemory(Memory{Slice: mem}, access, nil)
}

// RegisterMemory opens memory of any kind under a new STag. If qp is not nil,
// only its stream can use the STag (RFC 5041 §8.2). The errors are those of
// Register.
func (p *PD) RegisterMemory(m Memory, access Access, qp *QP) (*MR, error) {
	if !p.made() {
		return nil, notMade("register", "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail("register", err)
	}
	defer p.dev.end()
	if err := m.verify(access); err != nil {
		return nil, p.fail("register", err)
	}
	mem, base, err := m.region()
	if err != nil {
		return nil, p.fail("register", err)
	}
	s := stag.Memory{Mem: mem, Base: base, Access: access}
	if qp != nil {
		if qp.pd != p {
			return nil, p.fail("register", fmt.Errorf("QP %d belongs to another protection domain", qp.Num()))
		}
		s.Stream = qp.scope().Stream
	}
	entry, err := p.dev.memory.Register(p.domain, s)
	return p.newMR(entry, "register", err)
}

// AllocMR returns a region for at most maxLen bytes that is not valid yet. A
// work request with OpFastRegister makes it valid.
func (p *PD) AllocMR(maxLen uint64) (*MR, error) {
	if !p.made() {
		return nil, notMade("allocate MR", "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail("allocate MR", err)
	}
	defer p.dev.end()
	entry, err := p.dev.memory.Allocate(p.domain, maxLen)
	return p.newMR(entry, "allocate MR", err)
}

func (p *PD) newMR(entry *stag.Entry, op string, err error) (*MR, error) {
	if err != nil {
		return nil, p.fail(op, err)
	}
	mr := &MR{pd: p, entry: entry}
	p.dev.put(p.dev.regions, mr)
	return mr, nil
}
