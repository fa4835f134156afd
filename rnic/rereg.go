package rnic

import (
	"errors"
	"fmt"

	"urnic/stag"
)

// Reregister changes the domain and the rights of a region, and from which TO it counts,
// under the STag that it has. mem must name the memory that the region covers. The region
// is the one that is returned from then on, and m must not be used any more; on an error,
// m is as it was. The errors are those of RegisterMemory, and ErrBusy while windows are
// bound to the region.
//
// A peer that uses the STag while it changes is refused.
func (m *MR) Reregister(p *PD, mem Memory, access Access) (*MR, error) {
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
	put(p.dev, p.dev.regions, closer(n))
	remove(p.dev, p.dev.regions, closer(m))
	return n, nil
}
