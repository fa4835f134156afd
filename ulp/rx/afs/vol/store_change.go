package vol

import "urnic/ulp/rx/afs"

// Name returns the name of a transaction's volume.
func (s *Store) Name(id int32) (name string, err error) {
	err = s.use(id, "GetName", func(_ *transaction, v *volume) error {
		name = v.Name
		return nil
	})
	return name, err
}

// Flags returns the flags of a transaction's volume.
func (s *Store) Flags(id int32) (flags uint32, err error) {
	err = s.use(id, "GetFlags", func(t *transaction, _ *volume) error {
		flags = t.flags
		return nil
	})
	return flags, err
}

// Status returns the state of a transaction's volume.
func (s *Store) Status(id int32) (st Status, err error) {
	err = s.use(id, "GetStatus", func(_ *transaction, v *volume) error {
		st = Status{
			ID: v.ID, NextUnique: v.Files + 1, Type: v.Type, ParentID: v.ParentID, CloneID: v.CloneID, BackupID: v.BackupID,
			Quota: v.Quota, MinQuota: v.MinQuota, Created: v.Created, Accessed: v.Accessed, Updated: v.Updated,
			BackedUp: v.BackedUp, Copied: v.Copied,
		}
		return nil
	})
	return st, err
}

// SetIDs sets the name, the type and related IDs of a transaction's volume.
func (s *Store) SetIDs(a IDsArgs) error {
	return s.use(a.Transaction, "SetIdsTypes", func(_ *transaction, v *volume) error {
		if !validName(a.Name) {
			return ErrBadName
		}
		if a.Type < ReadWrite || a.Type > Backup {
			return ErrBadOperation
		}
		v.Name, v.Type, v.ParentID, v.CloneID, v.BackupID = a.Name, a.Type, a.Parent, a.CloneID, a.Backups
		return nil
	})
}

// SetDate sets when a transaction's volume was created.
func (s *Store) SetDate(id int32, created afs.Time) error {
	return s.use(id, "SetDate", func(_ *transaction, v *volume) error {
		v.Created = created
		return nil
	})
}

// SetInfo sets quotas, uses and times of a transaction's volume.
func (s *Store) SetInfo(a InfoArgs) error {
	return s.use(a.Transaction, "SetInfo", func(_ *transaction, v *volume) error {
		for _, f := range []struct{ to, from *int32 }{
			{&v.Quota, &a.Info.Quota},
			{&v.DayUse, &a.Info.DayUse},
			{&v.MinQuota, &a.Info.MinQuota},
			{&v.WeekUse, &a.Info.WeekUse},
			{&v.Flags, &a.Info.Flags},
		} {
			if *f.from != -1 {
				*f.to = *f.from
			}
		}
		for _, f := range []struct{ to, from *afs.Time }{{&v.Created, &a.Info.Created}, {&v.Updated, &a.Info.Updated}} {
			if *f.from != noTime {
				*f.to = *f.from
			}
		}
		return nil
	})
}

// Clone copies a transaction's volume to one with another ID on the same partition.
func (s *Store) Clone(a CloneArgs) (id uint32, err error) {
	err = s.use(a.Transaction, "Clone", func(t *transaction, v *volume) error {
		switch {
		case !validName(a.Name):
			return ErrBadName
		case a.Type != ReadOnly && a.Type != Backup && a.Type != ReadWrite:
			return ErrBadOperation
		case s.used+int64(len(v.dump)) > s.most || len(s.volumes) >= maxVolumes:
			return afs.ErrDiskFull
		}
		id = s.newID(a.ID)
		at := place{t.at.partition, id}
		if s.volumes[at] != nil && a.Purge != id {
			return afs.ErrVolumeExists
		}
		if a.Purge != 0 {
			s.remove(place{t.at.partition, a.Purge})
		}
		now := afs.TimeOf(s.now())
		s.volumes[at] = v.clone(Info{
			Name: a.Name, ID: id, Type: a.Type, ParentID: v.ParentID, Created: now, Copied: now, Updated: v.Updated, Status: OK, InUse: 1,
		})
		s.used += int64(len(v.dump))
		if a.Type == Backup {
			v.BackupID, v.BackedUp = id, now
		} else {
			v.CloneID = id
		}
		return nil
	})
	return id, err
}

// ReClone copies a transaction's volume over one of its clones.
func (s *Store) ReClone(id int32, clone uint32) error {
	return s.use(id, "ReClone", func(t *transaction, v *volume) error {
		at := place{t.at.partition, clone}
		old := s.volumes[at]
		switch {
		case old == nil:
			return afs.ErrNoVolume
		case old == v || old.ParentID != v.ParentID:
			return ErrBadOperation
		case s.used+int64(len(v.dump)-len(old.dump)) > s.most:
			return afs.ErrDiskFull
		case s.busy(at):
			return ErrVolumeBusy
		}
		s.used += int64(len(v.dump) - len(old.dump))
		i := old.Info
		i.Created, i.Updated = afs.TimeOf(s.now()), v.Updated
		s.volumes[at] = v.clone(i)
		return nil
	})
}
