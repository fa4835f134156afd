package stag

// A Lease is a series of accesses by one user. Mostly, many in a row use the
// same STag: the Lease looks it up once, holds its memory open until End, and
// only checks each access. The zero Lease is ready for use; it is not safe for
// concurrent use.
//
// Invalidation and deregistration wait for the End. So it must come soon, and
// before its user waits for anything or changes the state of an entry.
type Lease struct{ held []tenancy }

// A tenancy is an entry that a Lease holds, and counts of the accesses through
// it.
type tenancy struct {
	entry                         *Entry
	stag                          STag
	accesses, octetsIn, octetsOut uint64
}

// leaseReach is how many of the entries that were opened last are searched
// before the table.
const leaseReach = 4

// Open is like Table.Acquire, but the memory stays open until End.
func (l *Lease) Open(t *Table, s STag, by Scope, need Access, to, n uint64) ([]byte, error) {
	h, off, err := l.look(t, s, by, need, to, n)
	if err != nil {
		return nil, err
	}
	h.accesses++
	if need.writes() {
		h.octetsIn += n
	} else {
		h.octetsOut += n
	}
	return h.entry.mem[off : off+n : off+n], nil
}

// Check is like Table.Check.
func (l *Lease) Check(t *Table, s STag, by Scope, need Access, to, n uint64) error {
	_, _, err := l.look(t, s, by, need, to, n)
	return err
}

// look checks an access to an entry, which is held afterwards, and returns
// where in its memory the access begins.
func (l *Lease) look(t *Table, s STag, by Scope, need Access, to, n uint64) (*tenancy, uint64, error) {
	h := l.find(s)
	if h == nil {
		e := t.index.find(s.Index())
		if e == nil || !e.acquire() {
			return nil, 0, violation(InvalidSTag, s, need, to, n)
		}
		l.held = append(l.held, tenancy{entry: e, stag: s})
		h = &l.held[len(l.held)-1]
	}
	if v := h.entry.judge(s, by, need, to, n); v != 0 {
		return nil, 0, h.entry.refused(v, s, need, to, n)
	}
	return h, to - h.entry.base, nil
}

func (l *Lease) find(s STag) *tenancy {
	for i := range min(len(l.held), leaseReach) {
		if h := &l.held[len(l.held)-1-i]; h.stag == s {
			return h
		}
	}
	return nil
}

// Idle reports whether nothing is held.
func (l *Lease) Idle() bool { return len(l.held) == 0 }

// End releases everything. Memory that Open has returned must not be accessed
// after it.
func (l *Lease) End() {
	for i := range l.held {
		h := &l.held[i]
		h.count()
		h.entry.release()
		h.entry = nil
	}
	l.held = l.held[:0]
}

// Count updates the Stats of the entries, as End does.
func (l *Lease) Count() {
	for i := range l.held {
		l.held[i].count()
	}
}

func (h *tenancy) count() {
	if h.accesses == 0 {
		return
	}
	h.entry.accesses.Add(h.accesses)
	if h.octetsIn > 0 {
		h.entry.octetsIn.Add(h.octetsIn)
	}
	if h.octetsOut > 0 {
		h.entry.octetsOut.Add(h.octetsOut)
	}
	h.accesses, h.octetsIn, h.octetsOut = 0, 0, 0
}
