package stag

// A Pin holds memory open for one copy. It must be released soon, and only
// once: invalidation and deregistration wait for it.
type Pin struct {
	entry *Entry
	mem   []byte
}

// Bytes returns the memory of the range that was requested.
func (p Pin) Bytes() []byte { return p.mem }

// Release ends the pin. The memory must not be accessed after it.
func (p Pin) Release() {
	if p.entry != nil {
		p.entry.release()
	}
}

// Acquire opens n bytes at offset to under an STag, for a user of that scope
// that needs all the rights in need. It returns an *AccessError that says which
// check failed, in the order of RFC 5041 §7.1.
//
// An empty range is checked too: callers that must not check the STag of an
// empty message (RFC 5041 §5.2) don't call Acquire.
func (t *Table) Acquire(s STag, by Scope, need Access, to, n uint64) (Pin, error) {
	p, err := t.Open(s, by, need, to, n)
	if err == nil {
		p.entry.count(need, n)
	}
	return p, err
}

// Open is like Acquire, but Stats does not count it: for a look at memory that
// is used later.
func (t *Table) Open(s STag, by Scope, need Access, to, n uint64) (Pin, error) {
	e := t.index.find(s.Index())
	if e == nil || !e.acquire() {
		return Pin{}, violation(InvalidSTag, s, need, to, n)
	}
	if v := e.judge(s, by, need, to, n); v != 0 {
		err := e.refused(v, s, need, to, n)
		e.release()
		return Pin{}, err
	}
	off := to - e.base
	return Pin{e, e.mem[off : off+n : off+n]}, nil
}

func violation(v Violation, s STag, need Access, to, n uint64) *AccessError {
	return &AccessError{Violation: v, STag: s, Wanted: need, TO: to, Len: n}
}

// refused is a violation with details of the entry, which is held.
func (e *Entry) refused(v Violation, s STag, need Access, to, n uint64) *AccessError {
	err := violation(v, s, need, to, n)
	err.Base, err.Size, err.Granted = e.base, uint64(len(e.mem)), e.access
	return err
}

// judge runs the checks on an entry that is held. It compares by subtraction,
// which is right even if to+n wraps.
func (e *Entry) judge(s STag, by Scope, need Access, to, n uint64) Violation {
	switch size := uint64(len(e.mem)); {
	case e.key != s.Key():
		return InvalidSTag
	case !e.scope.admits(by):
		return NotAssociated
	case e.access&need != need, need == 0 && e.kind != Region: // windows open memory only to peers
		return NoRights
	case to < e.base || to-e.base > size:
		return OutOfBounds
	case to+n < to:
		return Wrap
	case n > size-(to-e.base):
		return OutOfBounds
	}
	return 0
}

func (e *Entry) count(need Access, n uint64) {
	e.accesses.Add(1)
	if need.writes() {
		e.octetsIn.Add(n)
	} else {
		e.octetsOut.Add(n)
	}
}

// Check runs the checks of Acquire without opening the memory, for a range that
// is used later. That later access may fail all the same.
func (t *Table) Check(s STag, by Scope, need Access, to, n uint64) error {
	p, err := t.Open(s, by, need, to, n)
	if err == nil {
		p.Release()
	}
	return err
}

// Exists reports whether there is a region or window with the index of s, valid
// or not.
func (t *Table) Exists(s STag) bool { return t.index.find(s.Index()) != nil }

// Valid reports whether s opens memory now, to any user.
func (t *Table) Valid(s STag) bool {
	e := t.index.find(s.Index())
	if e == nil || !e.acquire() {
		return false
	}
	defer e.release()
	return e.key == s.Key()
}
