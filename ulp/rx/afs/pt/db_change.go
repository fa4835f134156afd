package pt

import "strings"

// Change gives an entry another name, owner or ID. What is empty or zero stays.
func (db *DB) Change(id int32, name string, owner, newID int32) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if id == Administrators || id == AnyUser || id == AuthUser || id == Anonymous {
		return ErrPermission
	}
	r := db.entries[id]
	if r == nil {
		return ErrNoEntry
	}
	changed, name := r.Entry, strings.ToLower(name)
	if newID != 0 && newID != id {
		if db.entries[newID] != nil {
			return ErrIDExists
		}
		if (newID < 0) != r.IsGroup() {
			return ErrPermission
		}
		changed.ID = newID
	}
	if owner != 0 && owner != r.Owner {
		if !r.IsGroup() {
			return ErrPermission
		}
		changed.Owner = owner
	}
	if err := db.rename(&changed, r, name); err != nil {
		return err
	}
	if changed.ID != id {
		db.renumber(r, changed.ID)
	}
	delete(db.byName, r.Name)
	db.byName[changed.Name] = r
	r.Entry = changed
	return nil
}

// rename gives a changed entry its name: what the caller wants, or what its new owner demands.
func (db *DB) rename(changed *Entry, r *record, name string) error {
	switch {
	case r.IsGroup():
		wanted := name
		if wanted == "" {
			wanted = r.Name
		}
		correct, err := db.groupName(wanted, changed.Owner)
		if err != nil {
			return err
		}
		if name != "" && correct != name {
			return ErrBadName
		}
		if name != "" || changed.Owner != r.Owner {
			changed.Name = correct
		}
	case name != "":
		if !userName(name) {
			return ErrBadName
		}
		changed.Name = name
	}
	if other := db.byName[changed.Name]; other != nil && other != r {
		return ErrNameExists
	}
	return nil
}

// renumber gives an entry a new ID in all others.
func (db *DB) renumber(r *record, id int32) {
	for _, other := range r.members {
		db.entries[other].remove(r.ID)
		db.entries[other].add(id)
	}
	for _, other := range db.entries {
		if other.Owner == r.ID {
			other.Owner = id
		}
	}
	delete(db.entries, r.ID)
	db.entries[id] = r
	db.maxUser, db.maxGroup = max(db.maxUser, id), min(db.maxGroup, id)
}

// SetFields sets flags and quotas of an entry.
func (db *DB) SetFields(f FieldsArgs) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if f.ID == AnyUser || f.ID == AuthUser || f.ID == Anonymous {
		return ErrPermission
	}
	r := db.entries[f.ID]
	switch {
	case r == nil:
		return ErrNoEntry
	case f.Mask&SetGroupQuota != 0 && f.GroupQuota < 0, f.Mask&SetForeignQuota != 0 && f.ForeignQuota < 0:
		return ErrBadArgument
	}
	mask := int32(f.Mask & 0xff)
	r.Flags = r.Flags&^mask | f.Flags&mask
	if f.Mask&SetGroupQuota != 0 {
		r.GroupQuota = f.GroupQuota
	}
	if f.Mask&SetForeignQuota != 0 {
		r.ForeignQuota = f.ForeignQuota
	}
	return nil
}

// SetMax sets the ID behind which new ones of users or of groups are chosen.
func (db *DB) SetMax(id int32, group bool) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case group && id < 0:
		db.maxGroup = id
	case !group && id >= 0:
		db.maxUser = id
	default:
		return ErrBadArgument
	}
	return nil
}
