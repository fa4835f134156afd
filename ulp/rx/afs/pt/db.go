package pt

import (
	"slices"
	"strings"
	"sync"
)

const (
	firstQuota  = 20 // groups that a new user may create
	maxElements = 5000
)

// A DB is a protection database in memory. Its methods may be called at the same time.
type DB struct {
	mu       sync.Mutex
	entries  map[int32]*record
	byName   map[string]*record
	order    []*record // for ListEntries; nil where one was deleted
	maxUser  int32
	maxGroup int32
}

type record struct {
	Entry
	members []int32 // of a group, or the groups of a user; sorted
}

// NewDB returns a database with the groups and the user that each has.
func NewDB() *DB {
	db := &DB{entries: make(map[int32]*record), byName: make(map[string]*record)}
	for _, e := range []struct {
		id   int32
		name string
	}{
		{Administrators, "system:administrators"},
		{Backup, "system:backup"},
		{AnyUser, "system:anyuser"},
		{AuthUser, "system:authuser"},
		{Viewers, "system:ptsviewers"},
		{Anonymous, "anonymous"},
	} {
		db.insert(Entry{ID: e.id, Name: e.name, Owner: Administrators, Creator: Administrators})
		db.maxGroup = min(db.maxGroup, e.id)
	}
	return db
}

// insert adds an entry, whose name and ID are new.
func (db *DB) insert(e Entry) {
	e.Flags = defaultUser
	if e.IsGroup() {
		e.Flags = defaultGroup
	} else {
		e.GroupQuota, e.ForeignQuota = firstQuota, firstQuota
	}
	r := &record{Entry: e}
	db.entries[e.ID], db.byName[e.Name] = r, r
	db.order = append(db.order, r)
}

// Create adds a user (its ID is positive) or a group, and returns its ID: a new one if id is
// 0. A group is owned by owner, or by its creator if that is 0.
func (db *DB) Create(name string, id int32, group bool, owner, creator int32) (int32, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	name = strings.ToLower(name)
	if owner == 0 || owner == Anonymous {
		owner = creator
	}
	if group {
		correct, err := db.groupName(name, owner)
		if err == nil && correct != name {
			err = ErrBadName
		}
		if err != nil {
			return 0, err
		}
	} else {
		owner = Administrators
		if !userName(name) || strings.Contains(name, "@") { // foreign users need the group of their cell
			return 0, ErrBadName
		}
	}
	if db.byName[name] != nil {
		return 0, ErrNameExists
	}
	switch {
	case id == 0:
		var err error
		if id, err = db.newID(group); err != nil {
			return 0, err
		}
	case group != (id < 0):
		return 0, ErrBadArgument
	case db.entries[id] != nil:
		return 0, ErrIDExists
	}
	db.maxUser, db.maxGroup = max(db.maxUser, id), min(db.maxGroup, id)
	db.insert(Entry{ID: id, Name: name, Owner: owner, Creator: creator})
	return id, nil
}

// newID returns the first free ID behind the last.
func (db *DB) newID(group bool) (int32, error) {
	step, id := int32(1), db.maxUser
	if group {
		step, id = -1, db.maxGroup
	}
	for {
		id += step
		if id == 0 || (id < 0) != group { // around the end
			return 0, ErrNoIDs
		}
		if db.entries[id] == nil {
			return id, nil
		}
	}
}

// userName reports whether a user may have this name.
func userName(name string) bool {
	return name != "" && len(name) < MaxName && !strings.ContainsAny(name, ":\n\x00")
}

// groupName returns the name that a group of this owner has when it is called name.
func (db *DB) groupName(name string, owner int32) (string, error) {
	if len(name) >= MaxName {
		return "", ErrBadName
	}
	_, suffix, prefixed := strings.Cut(name, ":")
	if prefixed {
		prefix := "system"
		if o := db.entries[owner]; owner != Administrators && o != nil {
			prefix, _, _ = strings.Cut(o.Name, ":")
		} else if owner != Administrators {
			prefix, _, _ = strings.Cut(name, ":") // of an owner that does not exist yet
		}
		name = prefix + ":" + suffix
	}
	if len(name) >= MaxName || strings.ContainsAny(suffix, ":\n\x00") || !prefixed && !userName(name) {
		return "", ErrBadName
	}
	return name, nil
}

// Delete removes an entry, and its memberships.
func (db *DB) Delete(id int32) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if id == Administrators || id == AnyUser || id == AuthUser || id == Anonymous {
		return ErrPermission
	}
	r := db.entries[id]
	if r == nil {
		return ErrNoEntry
	}
	for _, other := range r.members {
		db.entries[other].remove(id)
	}
	for _, other := range db.entries {
		if other.Owner == id && other != r {
			other.Owner = 0 // an orphan
		}
	}
	delete(db.entries, id)
	delete(db.byName, r.Name)
	db.order[slices.Index(db.order, r)] = nil
	return nil
}

func (r *record) add(id int32) bool {
	i, found := slices.BinarySearch(r.members, id)
	if found {
		return false
	}
	r.members = slices.Insert(r.members, i, id)
	r.Count++
	return true
}

func (r *record) remove(id int32) bool {
	i, found := slices.BinarySearch(r.members, id)
	if !found {
		return false
	}
	r.members = slices.Delete(r.members, i, i+1)
	r.Count--
	return true
}

// pair returns a user and a group.
func (db *DB) pair(user, group int32) (u, g *record, err error) {
	u, g = db.entries[user], db.entries[group]
	switch {
	case u == nil || g == nil:
		return nil, nil, ErrNoEntry
	case !g.IsGroup():
		return nil, nil, ErrNotGroup
	case u.IsGroup():
		return nil, nil, ErrNotUser
	}
	return u, g, nil
}

// AddToGroup makes a user a member of a group.
func (db *DB) AddToGroup(user, group int32) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if group == AnyUser || group == AuthUser || user == Anonymous {
		return ErrPermission
	}
	u, g, err := db.pair(user, group)
	switch {
	case err != nil:
		return err
	case len(g.members) >= maxElements || len(u.members) >= maxElements:
		return ErrTooMany
	case !g.add(user):
		return ErrIDExists
	}
	u.add(group)
	return nil
}

// RemoveFromGroup ends a membership.
func (db *DB) RemoveFromGroup(user, group int32) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	u, g, err := db.pair(user, group)
	if err != nil {
		return err
	}
	if !g.remove(user) {
		return ErrNoEntry
	}
	u.remove(group)
	return nil
}
