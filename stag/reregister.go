package stag

import "urnic/pd"

// Reregister changes the domain, the rights and the TOs of a valid region. It keeps the
// memory and the STag. While it waits for users of the memory, the STag is not valid.
// When it returns, the new rights apply to all users. It returns a *RegisterError if the
// region can't be changed, and a *pd.LimitError if it exceeds a quota of the domain. On
// an error nothing has changed.
func (e *Entry) Reregister(d *pd.Domain, m Memory) error {
	if err := m.check(); err != nil {
		return err
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	fail := func(rule, reason string) error {
		return &RegisterError{Rule: rule, Reason: reason, STag: Make(e.index, e.lastKey)}
	}
	switch {
	case e.kind != Region:
		return fail("invalid region", "a window can't be registered: bind it")
	case e.state != valid:
		return fail("invalid region", "it is not valid")
	case e.windows > 0:
		return fail(RuleInUse, "memory windows are bound to it")
	case len(m.Mem) != len(e.mem) || &m.Mem[0] != &e.mem[0]:
		return fail("memory", "it is other memory: register that")
	}
	m.Stream = e.scope.Stream
	if d != e.domain {
		if err := d.Reserve(pd.Regions, 1); err != nil {
			return err
		}
		if err := d.Reserve(pd.MemoryOctets, e.maxLen); err != nil {
			d.Release(pd.Regions, 1)
			return err
		}
	}
	e.close()
	if d != e.domain {
		e.domain.Release(pd.MemoryOctets, e.maxLen)
		e.domain.Release(pd.Regions, 1)
		e.domain = d
	}
	e.validate(m, e.lastKey)
	return nil
}
