package stag

import (
	"sync"

	"urnic/pd"
)

// A Table holds the STags of one device. The zero Table is empty and ready.
type Table struct {
	mu    sync.Mutex // serializes changes of an entry's state; no pin is held under it
	index index
}

// A Memory describes what a region covers and which accesses are allowed.
type Memory struct {
	Mem []byte // at least one byte

	// Base is the TO of Mem's first byte: the address, 0 for a zero-based
	// region, or a value that the program chooses. Base+len(Mem) must be less
	// than 2^64.
	Base   uint64
	Access Access
	Stream Stream // if not zero, only this stream may use the STag (RFC 5041 §8.2)
}

func (m *Memory) check() error {
	if len(m.Mem) == 0 {
		return &RegisterError{Rule: "length", Reason: "a region of no octets: give at least one"}
	}
	if m.Base+uint64(len(m.Mem)) < m.Base {
		return &RegisterError{Rule: "virtual address", Reason: "the region's offsets would wrap"}
	}
	return m.Access.check()
}

// Register opens memory under a new STag of domain d, with a random index and
// key. It returns a *RegisterError for memory or rights that can't be
// registered, a *pd.LimitError when a quota is used up.
func (t *Table) Register(d *pd.Domain, m Memory) (*Entry, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	e, err := t.add(d, Region, uint64(len(m.Mem)))
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e.validate(m, uint8(randomUint32()))
	return e, nil
}

// Allocate creates a region of domain d for up to maxLen bytes. It is not valid
// until Entry.FastRegister. The errors are those of Register.
func (t *Table) Allocate(d *pd.Domain, maxLen uint64) (*Entry, error) {
	if maxLen == 0 {
		return nil, &RegisterError{Rule: "length", Reason: "a region for no octets: give at least one"}
	}
	return t.add(d, Region, maxLen)
}

// AllocateWindow creates a window of domain d that is not bound yet; kind is
// Window1 or Window2.
func (t *Table) AllocateWindow(d *pd.Domain, kind Kind) (*Entry, error) {
	if kind != Window1 && kind != Window2 {
		return nil, &RegisterError{Rule: "window type", Reason: "there are types 1 and 2"}
	}
	return t.add(d, kind, 0)
}

// add puts an invalid entry into the table and charges d for it.
func (t *Table) add(d *pd.Domain, kind Kind, octets uint64) (*Entry, error) {
	if err := d.Reserve(kind.resource(), 1); err != nil {
		return nil, err
	}
	if err := d.Reserve(pd.MemoryOctets, octets); err != nil {
		d.Release(kind.resource(), 1)
		return nil, err
	}
	e := &Entry{table: t, kind: kind, domain: d, maxLen: octets, drained: make(chan struct{}, 1)}
	e.refs.Store(revoked)
	t.mu.Lock()
	defer t.mu.Unlock()
	e.index = t.index.draw()
	e.lastKey = uint8(randomUint32())
	t.index.insert(e)
	return e, nil
}

func (k Kind) resource() pd.Resource {
	if k == Region {
		return pd.Regions
	}
	return pd.Windows
}

// validate opens memory under a key. The caller holds mu, and the entry is
// invalid.
func (e *Entry) validate(m Memory, key uint8) {
	e.key, e.lastKey = key, key
	e.scope = Scope{e.domain, m.Stream}
	e.access = m.Access
	e.base, e.mem = m.Base, m.Mem
	e.state = valid
	e.refs.Add(-revoked)
}

// FastRegister makes an allocated region valid: it then covers memory of at
// most the length that it was allocated for. The caller's key must differ from
// the last one, so that an old STag does not match. It returns a *RegisterError
// if the region is already valid, or the key or the memory is wrong.
func (e *Entry) FastRegister(m Memory, key uint8) error {
	if err := m.check(); err != nil {
		return err
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	fail := func(rule, reason string) error {
		return &RegisterError{Rule: rule, Reason: reason, STag: Make(e.index, key)}
	}
	switch {
	case e.kind != Region:
		return fail("invalid region", "a window can't be registered: bind it")
	case e.state != invalid:
		return fail("STag not in invalid state", "invalidate the region first")
	case uint64(len(m.Mem)) > e.maxLen:
		return fail("length", "more octets than the region was allocated for")
	case key == e.lastKey:
		return fail("key", "the region's last STag had the same key: choose another")
	}
	e.validate(m, key)
	return nil
}

// Invalidate closes the memory of a valid region or window; the entry can be
// made valid again. When it returns, nothing is placed through the STag any
// more. It returns an *AccessError if s is not the STag that is valid now, a
// *RegisterError if windows are bound to the region.
func (t *Table) Invalidate(s STag, by Scope) error {
	return t.invalidate(s, by, 0)
}

// RemoteInvalidate is Invalidate on behalf of a peer. It requires the right
// RemoteInvalidate and an STag that no other stream can use (RFC 5040 §8.1.1
// rule 7). It returns an *AccessError if the STag is not valid or not the
// stream's, a *RegisterError if it can't be invalidated.
func (t *Table) RemoteInvalidate(s STag, by Scope) error {
	return t.invalidate(s, by, RemoteInvalidate)
}

func (t *Table) invalidate(s STag, by Scope, need Access) error {
	e := t.index.find(s.Index())
	if e == nil {
		return violation(InvalidSTag, s, need, 0, 0)
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.state != valid || e.key != s.Key() {
		return violation(InvalidSTag, s, need, 0, 0)
	}
	if err := e.mayInvalidate(s, by, need); err != nil {
		return err
	}
	e.close()
	return nil
}

// mayInvalidate checks under mu whether a valid entry may be invalidated.
func (e *Entry) mayInvalidate(s STag, by Scope, need Access) error {
	switch {
	case !e.scope.admits(by):
		return &AccessError{Violation: NotAssociated, STag: s, Wanted: need}
	case e.access&need != need:
		return &AccessError{Violation: NoRights, STag: s, Wanted: need, Granted: e.access}
	case e.windows > 0:
		return &RegisterError{Rule: RuleInUse, Reason: "memory windows are bound to it", STag: s}
	case need == RemoteInvalidate && e.scope.Stream == 0 && e.domain.Held(pd.QueuePairs) > 1:
		return &RegisterError{Rule: "shared STag", Reason: "other streams of the protection domain can use it", STag: s}
	}
	return nil
}

// close ends the validity of an entry. The caller holds turn and mu; mu is open
// while close waits for the pins.
func (e *Entry) close() {
	e.state = revoking
	e.table.mu.Unlock()
	e.revoke()
	e.table.mu.Lock()
	e.clear()
}

// clear forgets the memory of an entry that nothing holds. The caller holds mu.
func (e *Entry) clear() {
	e.mem, e.access, e.scope = nil, 0, Scope{}
	if e.region != nil {
		e.region.windows--
		e.region = nil
	}
	e.state = invalid
}

// Deregister removes the entry from the table for good. When it returns,
// nothing is placed through its STag any more. It returns a *RegisterError if
// windows are bound to the region, and nil if the entry is already gone.
func (e *Entry) Deregister() error {
	e.turn.Lock()
	defer e.turn.Unlock()
	t := e.table
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.state == gone:
		return nil
	case e.windows > 0:
		return &RegisterError{Rule: RuleInUse, Reason: "memory windows are bound to it", STag: Make(e.index, e.lastKey)}
	case e.state == valid:
		e.close()
	}
	e.state = gone
	t.index.remove(e)
	e.domain.Release(pd.MemoryOctets, e.maxLen)
	e.domain.Release(e.kind.resource(), 1)
	return nil
}
