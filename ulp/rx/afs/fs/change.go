package fs

import (
	"context"
	"math"
	"slices"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/afs/dir"
	"urnic/ulp/rx/rpc"
)

// change carries out a change, then tells those who were promised to be told.
func (s *Server) change(ctx context.Context, f func() ([]afs.FID, error)) error {
	s.mu.Lock()
	files, err := f()
	tell := s.broken(ctx, files...)
	s.mu.Unlock()
	s.tell(ctx, tell)
	return err
}

// apply sets what a client wants to set.
func (n *vnode) apply(st *StoreStatus) {
	if st.Mask&SetModified != 0 {
		n.status.Modified = st.Modified
	}
	if st.Mask&SetOwner != 0 {
		n.status.Owner = st.Owner
	}
	if st.Mask&SetGroup != 0 {
		n.status.Group = st.Group
	}
	if st.Mask&SetMode != 0 {
		n.status.Mode = st.Mode & 0o7777
	}
}

// directory returns a directory, if the caller has rights to it.
func (s *Server) directory(ctx context.Context, f afs.FID, rights uint32) (*volume, *vnode, error) {
	v, d, err := s.find(ctx, f, rights)
	if err == nil && d.status.Type != Directory {
		err = ErrNotDirectory
	}
	return v, d, err
}

// newFile makes a file of any type.
func (s *Server) newFile(ctx context.Context, a *CreateArgs, typ, mode uint32, data []byte) (c Created, err error) {
	err = s.change(ctx, func() ([]afs.FID, error) {
		v, d, err := s.directory(ctx, a.Dir, Insert)
		if err != nil {
			return nil, err
		}
		var n *vnode
		if typ == Directory {
			n, err = v.makeDir(d, a.Name, mode, s.time())
		} else {
			n, err = v.makeFile(d, a.Name, typ, mode, data, s.time())
		}
		if err != nil {
			return nil, err
		}
		n.apply(&a.Status)
		c = Created{n.fid, s.status(ctx, v, n), s.status(ctx, v, d), s.promise(ctx, v, n.fid), v.sync()}
		return []afs.FID{d.fid}, nil
	})
	return c, err
}

func (s *Server) symlink(ctx context.Context, a *SymlinkArgs) (Made, error) {
	c, err := s.newFile(ctx, &CreateArgs{a.NameArgs, a.Status}, Symlink, linkMode, []byte(a.Target))
	return Made{c.FID, c.File, c.Dir, c.Sync}, err
}

func (s *Server) link(ctx context.Context, a *LinkArgs) (two Two, err error) {
	err = s.change(ctx, func() ([]afs.FID, error) {
		v, d, err := s.directory(ctx, a.Dir, Insert)
		if err != nil {
			return nil, err
		}
		_, n, err := s.find(ctx, a.File, Write)
		switch {
		case err != nil:
			return nil, err
		case n.status.Type == Directory:
			return nil, ErrIsDirectory
		case a.File.Volume != a.Dir.Volume || n.status.ParentVnode != d.fid.Vnode:
			return nil, ErrCrossDevice
		}
		if err := d.link(a.Name, n, s.time()); err != nil {
			return nil, err
		}
		n.status.Links++
		two = Two{s.status(ctx, v, n), s.status(ctx, v, d), v.sync()}
		return []afs.FID{d.fid, n.fid}, nil
	})
	return two, err
}

// entry returns a name's place in a directory and its file.
func (v *volume) entry(d *vnode, name string) (int, *vnode, error) {
	i := d.find(name)
	if i < 0 {
		return 0, nil, ErrNoEntry
	}
	if name == "." || name == ".." {
		return 0, nil, ErrInvalid
	}
	n := v.files[d.entries[i].Vnode]
	if n == nil {
		return 0, nil, afs.ErrNoVnode
	}
	return i, n, nil
}

// removeName removes a name of a directory, or of something else.
func (s *Server) removeName(ctx context.Context, a *NameArgs, directory bool) (c Changed, err error) {
	err = s.change(ctx, func() ([]afs.FID, error) {
		v, d, err := s.directory(ctx, a.Dir, Delete)
		if err != nil {
			return nil, err
		}
		i, n, err := v.entry(d, a.Name)
		if err != nil {
			return nil, err
		}
		if err := removable(n, directory); err != nil {
			return nil, err
		}
		d.unlink(i, s.time())
		v.dropName(n)
		c = Changed{s.status(ctx, v, d), v.sync()}
		return []afs.FID{d.fid, n.fid}, nil
	})
	return c, err
}

// removable reports why a file can't be removed as a directory, or as something else.
func removable(n *vnode, directory bool) error {
	switch {
	case directory && n.status.Type != Directory:
		return ErrNotDirectory
	case !directory && n.status.Type == Directory:
		return ErrIsDirectory
	case directory && len(n.entries) > 2:
		return ErrNotEmpty
	}
	return nil
}

// dropName notes that a file has a name less.
func (v *volume) dropName(n *vnode) {
	n.status.Links--
	if n.status.Links == 0 || n.status.Type == Directory {
		v.remove(n)
	}
}

func (s *Server) rename(ctx context.Context, a *RenameArgs) (two Two, err error) {
	err = s.change(ctx, func() ([]afs.FID, error) {
		v, from, err := s.directory(ctx, a.Old.Dir, Delete)
		if err != nil {
			return nil, err
		}
		_, to, err := s.directory(ctx, a.New.Dir, Insert)
		if err != nil {
			return nil, err
		}
		if a.Old.Dir.Volume != a.New.Dir.Volume {
			return nil, ErrCrossDevice
		}
		changed, err := v.move(from, a.Old.Name, to, a.New.Name, s.time())
		if err != nil {
			return nil, err
		}
		two = Two{s.status(ctx, v, from), s.status(ctx, v, to), v.sync()}
		return append(changed, from.fid, to.fid), nil
	})
	return two, err
}

// move gives a file another name and directory. A file that has that name loses it.
func (v *volume) move(from *vnode, name string, to *vnode, newName string, now afs.Time) ([]afs.FID, error) {
	_, n, err := v.entry(from, name)
	if err != nil {
		return nil, err
	}
	if !dir.ValidName(newName) || newName == "." || newName == ".." || v.within(to, n) {
		return nil, ErrInvalid
	}
	changed := []afs.FID{n.fid}
	if i := to.find(newName); i >= 0 {
		_, old, err := v.entry(to, newName)
		if err != nil || old == n {
			return nil, err
		}
		if err := removable(old, n.status.Type == Directory); err != nil {
			return nil, err
		}
		to.unlink(i, now)
		v.dropName(old)
		changed = append(changed, old.fid)
	}
	if err := to.link(newName, n, now); err != nil {
		return nil, err
	}
	from.unlink(from.find(name), now)
	n.setParent(to)
	if n.status.Type == Directory && from != to {
		n.entries = slices.Clone(n.entries)
		n.entries[1] = dir.Entry{Name: "..", Vnode: to.fid.Vnode, Unique: to.fid.Unique}
		n.pages = nil
		n.changed(now)
	}
	return changed, nil
}

// within reports whether a directory is another one or below it.
func (v *volume) within(d, top *vnode) bool {
	for range len(v.files) {
		if d == top {
			return true
		}
		if d == nil || d.fid.Vnode == Root {
			return false
		}
		d = v.files[d.status.ParentVnode]
	}
	return true
}

func (s *Server) storeStatus(ctx context.Context, a *StatusArgs) (c Changed, err error) {
	err = s.change(ctx, func() ([]afs.FID, error) {
		v, n, err := s.find(ctx, a.FID, Write)
		if err != nil {
			return nil, err
		}
		n.apply(&a.Status)
		c = Changed{s.status(ctx, v, n), v.sync()}
		return []afs.FID{n.fid}, nil
	})
	return c, err
}

// checkStore reports whether a file can take data before that is read.
func (s *Server) checkStore(ctx context.Context, a *StoreArgs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, n, err := s.find(ctx, a.FID, Write)
	switch {
	case err != nil:
		return err
	case n.status.Type != File:
		return ErrIsDirectory
	case a.Offset > math.MaxInt32 || a.Length > math.MaxInt32 || a.FileLength > math.MaxInt32:
		return ErrTooLarge
	case v.used-int64(len(n.data))+int64(max(a.FileLength, a.Offset+a.Length)) > v.MaxBytes:
		return afs.ErrOverQuota
	}
	return nil
}

// store puts data into a file.
func (s *Server) store(ctx context.Context, a *StoreArgs, data []byte) (c Changed, err error) {
	if err := s.checkStore(ctx, a); err != nil { // it may have changed while data was read
		return Changed{}, err
	}
	err = s.change(ctx, func() ([]afs.FID, error) {
		v, n, err := s.find(ctx, a.FID, Write)
		if err != nil {
			return nil, err
		}
		old := n.data[:min(uint64(len(n.data)), a.FileLength)]
		p := make([]byte, max(a.FileLength, a.Offset+uint64(len(data))))
		copy(p, old)
		copy(p[a.Offset:], data)
		v.used += int64(len(p) - len(n.data))
		n.data = p
		n.changed(s.time())
		n.apply(&a.Status)
		c = Changed{s.status(ctx, v, n), v.sync()}
		return []afs.FID{n.fid}, nil
	})
	return c, err
}

const lockSeconds = 300

// lock locks a file for 5 minutes.
func (s *Server) lock(ctx context.Context, a *LockArgs) (Sync, error) {
	if a.Type != LockRead && a.Type != LockWrite {
		return Sync{}, ErrInvalid
	}
	return s.locks(ctx, a.FID, func(n *vnode) error {
		st := &n.status
		switch {
		case a.Type == LockRead && st.Locks >= 0 && st.Locks < math.MaxInt32:
			st.Locks++
		case a.Type == LockWrite && st.Locks == 0:
			st.Locks = -1
		default:
			return ErrLocked
		}
		n.lockUntil = s.time() + lockSeconds
		return nil
	})
}

func (s *Server) extendLock(ctx context.Context, f *afs.FID) (Sync, error) {
	return s.locks(ctx, *f, func(n *vnode) error {
		if n.status.Locks == 0 {
			return ErrInvalid
		}
		n.lockUntil = s.time() + lockSeconds
		return nil
	})
}

func (s *Server) unlock(ctx context.Context, f *afs.FID) (Sync, error) {
	return s.locks(ctx, *f, func(n *vnode) error {
		if n.status.Locks > 0 {
			n.status.Locks--
		} else {
			n.status.Locks = 0
		}
		return nil
	})
}

// locks calls f with a file, whose locks are gone if they have expired.
func (s *Server) locks(ctx context.Context, fid afs.FID, f func(*vnode) error) (Sync, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.volumes[fid.Volume]
	if v != nil && v.ReadOnly {
		return v.sync(), nil // nobody can write
	}
	v, n, err := s.find(ctx, fid, Lock)
	if err != nil {
		return Sync{}, err
	}
	if n.lockUntil <= s.time() {
		n.status.Locks = 0
	}
	return v.sync(), f(n)
}

func (s *Server) clock(context.Context, *rpc.Void) (Clock, error) {
	now := s.Now()
	return Clock{afs.TimeOf(now), uint32(now.Nanosecond() / 1000)}, nil
}
