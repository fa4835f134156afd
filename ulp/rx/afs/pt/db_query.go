package pt

import (
	"slices"
	"strconv"
	"strings"
)

// Find returns the ID of a name.
func (db *DB) Find(name string) (int32, bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	r := db.byName[strings.ToLower(name)]
	if r == nil {
		return 0, false
	}
	return r.ID, true
}

// Names returns the names of IDs. The name of an unknown one is its number.
func (db *DB) Names(ids []int32) []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	names := make([]string, len(ids))
	for i, id := range ids {
		if r := db.entries[id]; r != nil {
			names[i] = r.Name
		} else {
			names[i] = strconv.Itoa(int(id))
		}
	}
	return names
}

// Entry returns an entry.
func (db *DB) Entry(id int32) (Entry, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if r := db.entries[id]; r != nil {
		return r.Entry, nil
	}
	return Entry{}, ErrNoEntry
}

// Entries returns at most so many users, groups or both, from a place on, and the place where
// to continue, -1 at the end.
func (db *DB) Entries(which, start int32, most int) ([]Entry, int32) {
	db.mu.Lock()
	defer db.mu.Unlock()
	var part []Entry
	for i := max(0, int(start)); i < len(db.order); i++ {
		r := db.order[i]
		if r == nil || r.IsGroup() && which&Groups == 0 || !r.IsGroup() && which&Users == 0 {
			continue
		}
		if len(part) == most {
			return part, int32(i)
		}
		part = append(part, r.Entry)
	}
	return part, -1
}

// Maxima returns the IDs behind which new ones are chosen.
func (db *DB) Maxima() Maxima {
	db.mu.Lock()
	defer db.mu.Unlock()
	return Maxima{User: db.maxUser, Group: db.maxGroup}
}

// Elements returns the members of a group, or the groups of a user.
func (db *DB) Elements(id int32) ([]int32, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if r := db.entries[id]; r != nil {
		return slices.Clone(r.members), nil
	}
	return nil, ErrNoEntry
}

// Owned returns the groups that an entry owns, or those without an owner for 0.
func (db *DB) Owned(id int32) ([]int32, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if id != 0 && db.entries[id] == nil {
		return nil, ErrNoEntry
	}
	var owned []int32
	for _, r := range db.order {
		if r != nil && r.IsGroup() && r.Owner == id {
			owned = append(owned, r.ID)
		}
	}
	return owned, nil
}

// IsMember reports whether a user belongs to a group.
func (db *DB) IsMember(user, group int32) (bool, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	u, g := db.entries[user], db.entries[group]
	switch {
	case u == nil || g == nil:
		return false, ErrNoEntry
	case u.IsGroup() || !g.IsGroup():
		return false, ErrBadArgument
	case group == AnyUser, group == AuthUser && user != Anonymous:
		return true, nil
	}
	_, found := slices.BinarySearch(g.members, user)
	return found, nil
}

// CPS returns the IDs that count for the rights of an entry: its own, its groups, and those
// of anybody.
func (db *DB) CPS(id int32) ([]int32, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	r := db.entries[id]
	if r == nil {
		return nil, ErrNoEntry
	}
	cps := append(slices.Clone(r.members), AnyUser, id)
	if id != Anonymous && id != AnyUser {
		cps = append(cps, AuthUser)
	}
	slices.Sort(cps)
	return slices.Compact(cps), nil
}
