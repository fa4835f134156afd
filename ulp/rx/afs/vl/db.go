package vl

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"urnic/ulp/rx/afs"
)

const (
	firstID      = 0x20000000 // the first volume ID that is given away
	maxIncrement = 2000       // volume IDs that are reserved at once
	lockTime     = 10 * time.Hour
)

// A DB is a volume location database in memory. Its methods may be called at the same time.
type DB struct {
	mu      sync.Mutex
	entries []*record // nil where one was deleted
	servers []Server
	nextID  uint32
	now     func() time.Time
}

type record struct {
	Entry
	locked time.Time // zero if it is not
}

// NewDB returns an empty database. Locks expire by the clock now, which is time.Now if nil.
func NewDB(now func() time.Time) *DB {
	if now == nil {
		now = time.Now
	}
	return &DB{nextID: firstID, now: now}
}

// byID returns the record with this volume ID.
func (db *DB) byID(id uint32, typ int32) (*record, error) {
	if typ < AnyType || typ >= types {
		return nil, ErrBadType
	}
	if id == 0 {
		return nil, ErrNoEntry
	}
	for _, r := range db.entries {
		if r != nil && (typ == AnyType && slices.Contains(r.IDs[:], id) || typ != AnyType && r.IDs[typ] == id) {
			return r, nil
		}
	}
	return nil, ErrNoEntry
}

// byName returns the record with this name.
func (db *DB) byName(name string) *record {
	for _, r := range db.entries {
		if r != nil && r.Name == name {
			return r
		}
	}
	return nil
}

// ByID returns the entry that has this volume ID, as that of the given type or of any.
func (db *DB) ByID(id uint32, typ int32) (Entry, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	r, err := db.byID(id, typ)
	if err != nil {
		return Entry{}, err
	}
	return db.resolved(r.Entry), nil
}

// ByName returns the entry of a name, of a name with the suffix .readonly or .backup, or of a
// number.
func (db *DB) ByName(name string) (Entry, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return db.ByID(uint32(id), AnyType)
	}
	if !validName(name) {
		return Entry{}, ErrBadName
	}
	base, typ := name, ReadWrite
	if b, ok := strings.CutSuffix(name, ".readonly"); ok {
		base, typ = b, ReadOnly
	} else if b, ok := strings.CutSuffix(name, ".backup"); ok {
		base, typ = b, Backup
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	r := db.byName(base)
	if r == nil || typ == ReadOnly && r.Flags&HasReadOnly == 0 || typ == Backup && r.Flags&HasBackup == 0 {
		return Entry{}, ErrNoEntry
	}
	return db.resolved(r.Entry), nil
}

// Create adds an entry.
func (db *DB) Create(e Entry) error {
	if err := e.valid(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.free(&e, nil); err != nil {
		return err
	}
	e.Flags &^= operations
	db.entries = append(db.entries, &record{Entry: db.stored(e)})
	return nil
}

// free reports whether the name or a volume ID of an entry belongs to another one.
func (db *DB) free(e *Entry, except *record) error {
	if r := db.byName(e.Name); r != nil && r != except {
		return ErrNameExists
	}
	for _, id := range e.IDs {
		if r, err := db.byID(id, AnyType); err == nil && r != except {
			return ErrIDExists
		}
		if id != 0 {
			db.nextID = max(db.nextID, id+1)
		}
	}
	return nil
}

// Replace replaces an entry, and ends parts of its lock.
func (db *DB) Replace(id uint32, typ int32, e Entry, unlock int32) error {
	if unlock&^UnlockAll != 0 {
		return ErrBadRelease
	}
	if err := e.valid(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	r, err := db.byID(id, typ)
	if err != nil {
		return err
	}
	if err := db.free(&e, r); err != nil {
		return err
	}
	e.Flags = e.Flags&^operations | r.Flags&operations
	r.Entry = db.stored(e)
	r.unlock(unlock)
	return nil
}

// Delete removes an entry.
func (db *DB) Delete(id uint32, typ int32) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	r, err := db.byID(id, typ)
	if err != nil {
		return err
	}
	db.entries[slices.Index(db.entries, r)] = nil
	return nil
}

// NewID reserves n volume IDs and returns the first one.
func (db *DB) NewID(n uint32) (uint32, error) {
	if n > maxIncrement {
		return 0, ErrBadIncrement
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	id := db.nextID
	db.nextID += n
	return id, nil
}

// Lock locks an entry for an operation. A lock that is older than 10 hours is void.
func (db *DB) Lock(id uint32, typ int32, operation uint32) error {
	if operation&^operations != 0 || operation == 0 {
		return ErrBadOperation
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	r, err := db.byID(id, typ)
	if err != nil {
		return err
	}
	if !r.locked.IsZero() && db.now().Sub(r.locked) < lockTime {
		return ErrLocked
	}
	r.locked = db.now()
	r.Flags = r.Flags&^operations | operation
	return nil
}

// Unlock ends parts of a lock.
func (db *DB) Unlock(id uint32, typ, what int32) error {
	if what&^UnlockAll != 0 || what == 0 {
		return ErrBadRelease
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	r, err := db.byID(id, typ)
	if err != nil {
		return err
	}
	r.unlock(what)
	return nil
}

func (r *record) unlock(what int32) {
	if what&UnlockOperation != 0 {
		r.Flags &^= operations
	}
	if what&UnlockTime != 0 {
		r.locked = time.Time{}
	}
}

// Next returns the entry at a place or behind it, the place behind that, and how many entries
// follow. The place is 0 if there is no entry.
func (db *DB) Next(place int32) (e Entry, next, left int32) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for i := max(0, int(place)); i < len(db.entries); i++ {
		r := db.entries[i]
		switch {
		case r == nil:
		case next == 0:
			e, next = db.resolved(r.Entry), int32(i+1)
		default:
			left++
		}
	}
	return e, next, left
}

// List returns at most so many entries with these attributes from a place on, and the place
// where to continue, -1 at the end. A nil name matches all.
func (db *DB) List(a Attributes, name *regexp.Regexp, start int32, most int) ([]Entry, int32) {
	db.mu.Lock()
	defer db.mu.Unlock()
	var part []Entry
	for i := max(0, int(start)); i < len(db.entries); i++ {
		r := db.entries[i]
		if r == nil || name != nil && !name.MatchString(r.Name) {
			continue
		}
		e := db.resolved(r.Entry)
		match, ok := a.match(&e, db.sameServer)
		if !ok {
			continue
		}
		if len(part) == most {
			return part, int32(i)
		}
		e.Match = match
		part = append(part, e)
	}
	return part, -1
}

// match reports whether an entry has these attributes, and by which site.
func (a *Attributes) match(e *Entry, same func(s *Site, a afs.Addr) bool) (int32, bool) {
	if a.Mask&ByID != 0 && !slices.Contains(e.IDs[:], a.ID) || a.Mask&ByFlag != 0 && e.Flags&a.Flag == 0 {
		return 0, false
	}
	if a.Mask&(ByServer|ByPartition) == 0 {
		return 0, true
	}
	for i := range e.Sites {
		s := &e.Sites[i]
		if (a.Mask&ByServer == 0 || same(s, a.Server)) && (a.Mask&ByPartition == 0 || s.Partition == a.Partition) {
			typ := ReadOnly
			if s.Flags&SiteRW != 0 {
				typ = ReadWrite
			}
			return typ<<16 | int32(i), true
		}
	}
	return 0, false
}

// counts returns how many volumes of each type there are.
func (db *DB) counts() (n [types]int32, nextID uint32) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, r := range db.entries {
		for typ, flag := range [types]uint32{HasReadWrite, HasReadOnly, HasBackup} {
			if r != nil && r.Flags&flag != 0 {
				n[typ]++
			}
		}
	}
	return n, db.nextID
}
