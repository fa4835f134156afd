package stag

import (
	"sync"
	"sync/atomic"

	"urnic/pd"
)

// A Kind is the kind of object that an STag names.
type Kind uint8

// The kinds.
const (
	Region  Kind = iota + 1
	Window1      // type 1: belongs to a domain, bound by the RNIC with a key of its choice
	Window2      // type 2: belongs to the stream that bound it, with the consumer's key
)

// An Entry is a memory region or window in a Table.
//
// A user of the memory holds a count on refs. The fields under "while valid"
// may be read only with such a count, and are changed only while there is none
// and none can be taken.
//
// Bind, FastRegister, Invalidate and Deregister wait for each other by turn, so
// that none of them meets an entry that waits for its pins on behalf of another
// one. The holder of a pin must not call them: they wait for it.
type Entry struct {
	table  *Table
	index  uint32
	kind   Kind
	domain *pd.Domain
	maxLen uint64 // bytes that a fast-registered region may cover

	refs    atomic.Int64  // pins held; plus revoked while the entry is not valid
	drained chan struct{} // notified when refs comes down to revoked

	turn sync.Mutex // held by changes of the state; taken before table.mu, held while waiting for pins

	// Under turn: the keys of a type 1 window, in the order in which they are used,
	// and which is next.
	keys  *[keys]uint8
	keyAt uint8

	// Under table.mu; state changes under turn as well.
	state   state
	lastKey uint8  // of the last STag that was valid
	windows int    // bound to this region
	region  *Entry // that this window is bound to

	// While valid.
	key    uint8
	scope  Scope
	access Access
	base   uint64 // TO of the first byte
	mem    []byte

	octetsIn, octetsOut atomic.Uint64
	accesses            atomic.Uint64
}

// A state is the state of an Entry.
type state uint8

const (
	invalid  state = iota
	valid          // refs >= 0
	revoking       // waiting for the pins, with table.mu open
	gone           // removed from the table
)

// revoked, added to refs, makes it negative whatever pins there are.
const revoked = -(int64(1) << 62)

// acquire takes a count if the entry is valid.
func (e *Entry) acquire() bool {
	if e.refs.Add(1) > 0 {
		return true
	}
	e.release()
	return false
}

// release gives a count back. Who brings refs down to revoked tells the
// revoker, who may have been waiting for it.
func (e *Entry) release() {
	if e.refs.Add(-1) == revoked {
		select {
		case e.drained <- struct{}{}:
		default:
		}
	}
}

// revoke ends the validity of a valid entry and waits until nothing holds it. A
// pin lasts for one copy, so the wait is short.
func (e *Entry) revoke() {
	e.refs.Add(revoked)
	for e.refs.Load() != revoked {
		<-e.drained
	}
}

// Kind returns what the entry is.
func (e *Entry) Kind() Kind { return e.kind }

// STag returns the STag that is valid, or was the last valid one.
func (e *Entry) STag() STag {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	return Make(e.index, e.lastKey)
}

// Valid reports whether the STag opens memory now.
func (e *Entry) Valid() bool { return e.refs.Load() >= 0 }

// Base returns the TO of the first byte; zero while the entry is not valid.
func (e *Entry) Base() uint64 {
	if !e.acquire() {
		return 0
	}
	defer e.release()
	return e.base
}

// Access returns the rights that the STag grants; none while it is not valid.
func (e *Entry) Access() Access {
	if !e.acquire() {
		return 0
	}
	defer e.release()
	return e.access
}

// Len returns the number of bytes that the STag covers; zero while the entry is
// not valid.
func (e *Entry) Len() uint64 {
	if !e.acquire() {
		return 0
	}
	defer e.release()
	return uint64(len(e.mem))
}

// Stats counts accesses through one STag.
type Stats struct {
	Accesses  uint64 // accesses that passed the checks
	OctetsIn  uint64 // bytes placed
	OctetsOut uint64 // bytes read
}

// Stats returns the counters of the entry since it was created.
func (e *Entry) Stats() Stats {
	return Stats{Accesses: e.accesses.Load(), OctetsIn: e.octetsIn.Load(), OctetsOut: e.octetsOut.Load()}
}
