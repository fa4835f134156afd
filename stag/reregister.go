package stag

import "urnic/pd"

// Reregister changes the domain and the rights of a valid region, and from which TO it
// counts. Memory and STag stay. While it waits for those who use the memory, the STag is
// not valid; when it returns, the new rights hold for everybody. On an error nothing has
// changed. It returns a *RegisterError if the region can't be changed, and a
// *pd.LimitError if it exceeds a quota of the domain.
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
