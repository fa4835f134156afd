package rnic

import (
	"errors"
	"fmt"

	"urnic/stag"
)

// reregister changes the domain, the rights and the TOs of a region, and keeps its STag.
// It returns the new region; m must not be used any more. On an error, m is unchanged.
func (m *MR) reregister(p *PD, mem Memory, access Access) (*MR, error) {
	const op = "reregister"
	if !m.made() {
		return nil, notMade(op, "MR")
	}
	if !p.made() {
		return nil, notMade(op, "PD")
	}
	if p.dev != m.pd.dev {
		return nil, m.fail(op, ErrForeign)
	}
	if err := p.dev.begin(); err != nil {
		return nil, m.fail(op, err)
	}
	defer p.dev.end()
	if err := mem.verify(access); err != nil {
		return nil, m.fail(op, err)
	}
	b, base, err := mem.region()
	if err != nil {
		return nil, m.fail(op, err)
	}
	m.closing.Lock()
	defer m.closing.Unlock()
	if err := m.entry.Reregister(p.domain, stag.Memory{Mem: b, Base: base, Access: access}); err != nil {
		if r, is := errors.AsType[*stag.RegisterError](err); is && r.Rule == stag.RuleInUse {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return nil, m.fail(op, ofDomain(err))
	}
	n := &MR{pd: p, entry: m.entry}
	p.dev.put(p.dev.regions, n)
	p.dev.remove(p.dev.regions, m)
	return n, nil
}
