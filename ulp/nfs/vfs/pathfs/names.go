package pathfs

import (
	"context"
	"errors"
	"path"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/internal/dirlist"
)

// Lookup asks the tree.
func (fs *FS) Lookup(ctx context.Context, h vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	fs.names.RLock()
	defer fs.names.RUnlock()
	dir, p, err := fs.directory(ctx, h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	if name == ".." {
		up := dir
		fs.mu.Lock()
		if len(dir.places) > 0 {
			up = dir.places[0].dir
		}
		fs.mu.Unlock()
		_, _, info, err := fs.find(ctx, up.handle)
		return up.handle, info.Attr, err
	}
	if err := fs.checkName(name); err != nil {
		return "", vfs.Attr{}, err
	}
	return fs.meet(dir, p, name)
}

// meet learns what has a name. The caller holds names.
func (fs *FS) meet(dir *node, p, name string) (vfs.Handle, vfs.Attr, error) {
	info, err := fs.tree.Lstat(path.Join(p, name))
	if err != nil {
		return "", vfs.Attr{}, Fail(err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.see(dir, name, info)
	return n.handle, fs.complete(n, info).Attr, nil
}

// make makes a file, by do, in a directory.
func (fs *FS) make(ctx context.Context, h vfs.Handle, name string, t vfs.Type, mode uint32, s vfs.SetAttr, do func(path string, mode uint32) error) (vfs.Handle, vfs.Attr, error) {
	if fs.can.ReadOnly {
		return "", vfs.Attr{}, vfs.ErrReadOnly
	}
	fs.names.Lock()
	defer fs.names.Unlock()
	dir, p, err := fs.directory(ctx, h)
	if err == nil {
		err = fs.checkName(name)
	}
	if err == nil {
		err = fs.check(t, s)
	}
	if err != nil {
		return "", vfs.Attr{}, err
	}
	full := path.Join(p, name)
	if _, err := fs.tree.Lstat(full); err == nil {
		return "", vfs.Attr{}, vfs.ErrExist
	}
	if s.Mode == nil {
		s.Mode = &mode
	}
	if err := do(full, *s.Mode); err != nil {
		return "", vfs.Attr{}, Fail(err)
	}
	info, err := fs.tree.Lstat(full)
	if !fs.can.SetMode {
		s.Mode = nil
	}
	if t == vfs.Symlink {
		s.Mode, s.Atime, s.Mtime = nil, nil, nil
	}
	if err == nil {
		err = fs.apply(full, info.Attr, s)
	}
	if err != nil {
		return "", vfs.Attr{}, Fail(errors.Join(err, fs.tree.Remove(full)))
	}
	return fs.meet(dir, p, name)
}

// Create makes a regular file.
func (fs *FS) Create(ctx context.Context, h vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.make(ctx, h, name, vfs.Regular, 0o644, s, func(path string, mode uint32) error {
		f, err := fs.tree.Create(path, mode)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// Mkdir makes a directory.
func (fs *FS) Mkdir(ctx context.Context, h vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.make(ctx, h, name, vfs.Directory, 0o755, s, fs.tree.Mkdir)
}

// Symlink makes a symbolic link, if the tree can.
func (fs *FS) Symlink(ctx context.Context, h vfs.Handle, name, target string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.make(ctx, h, name, vfs.Symlink, 0o777, s, func(path string, _ uint32) error {
		if !fs.can.Symlinks {
			return vfs.ErrNotSupported
		}
		if target == "" {
			return vfs.ErrInvalid
		}
		return fs.tree.Symlink(target, path)
	})
}

// Mknod makes nothing: no tree can.
func (fs *FS) Mknod(ctx context.Context, h vfs.Handle, name string, _ vfs.Type, _, _ uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.make(ctx, h, name, vfs.FIFO, 0, s, func(string, uint32) error { return vfs.ErrNotSupported })
}

// Remove removes anything but a directory.
func (fs *FS) Remove(ctx context.Context, h vfs.Handle, name string) error {
	return fs.remove(ctx, h, name, false)
}

// Rmdir removes an empty directory.
func (fs *FS) Rmdir(ctx context.Context, h vfs.Handle, name string) error {
	return fs.remove(ctx, h, name, true)
}

func (fs *FS) remove(ctx context.Context, h vfs.Handle, name string, directory bool) error {
	if fs.can.ReadOnly {
		return vfs.ErrReadOnly
	}
	fs.names.Lock()
	defer fs.names.Unlock()
	dir, p, err := fs.directory(ctx, h)
	if err == nil {
		err = fs.checkName(name)
	}
	if err != nil {
		return err
	}
	full := path.Join(p, name)
	info, err := fs.tree.Lstat(full)
	switch is := info.Attr.Type == vfs.Directory; {
	case err != nil:
		return Fail(err)
	case is && !directory:
		return vfs.ErrIsDirectory
	case !is && directory:
		return vfs.ErrNotDirectory
	case directory:
		if err := fs.empty(full); err != nil {
			return err
		}
	}
	if err := fs.tree.Remove(full); err != nil {
		return Fail(err)
	}
	fs.drop(dir, name)
	return nil
}

// empty returns ErrNotEmpty if something is in a directory.
func (fs *FS) empty(path string) error {
	list, err := fs.tree.ReadDir(path)
	if err != nil {
		return Fail(err)
	}
	if len(list) > 0 {
		return vfs.ErrNotEmpty
	}
	return nil
}

// drop notes that nothing has a name any more.
func (fs *FS) drop(dir *node, name string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if e := dir.kids.Get(name); e != nil {
		fs.leave(e.Item, place{dir, name})
	}
}

// Rename gives a file another name.
func (fs *FS) Rename(ctx context.Context, from vfs.Handle, name string, to vfs.Handle, newName string) error {
	if fs.can.ReadOnly {
		return vfs.ErrReadOnly
	}
	fs.names.Lock()
	defer fs.names.Unlock()
	a, ap, err := fs.directory(ctx, from)
	if err != nil {
		return err
	}
	b, bp, err := fs.directory(ctx, to)
	if err == nil {
		err = fs.checkName(name)
	}
	if err == nil {
		err = fs.checkName(newName)
	}
	if err != nil {
		return err
	}
	src, dst := path.Join(ap, name), path.Join(bp, newName)
	info, err := fs.tree.Lstat(src)
	if err != nil {
		return Fail(err)
	}
	fs.mu.Lock()
	n := fs.see(a, name, info)
	within := n.holds(b)
	fs.mu.Unlock()
	if within {
		return vfs.ErrInvalid
	}
	if src == dst {
		return nil
	}
	old, err := fs.tree.Lstat(dst)
	switch {
	case err == nil:
		if same, err := fs.makeRoom(n, b, newName, dst, old); same || err != nil {
			return err
		}
	case !missing(Fail(err)):
		return Fail(err)
	}
	if err := fs.tree.Rename(src, dst); err != nil {
		return Fail(err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if e := b.kids.Get(newName); e != nil {
		fs.leave(e.Item, place{b, newName})
	}
	fs.join(n, place{b, newName})
	fs.leave(n, place{a, name})
	return nil
}

// makeRoom checks that a file may take the place of another. It removes a directory, which
// not all trees replace. same says that both are the same file.
func (fs *FS) makeRoom(n, dir *node, name, path string, old Info) (same bool, err error) {
	fs.mu.Lock()
	target := fs.see(dir, name, old)
	fs.mu.Unlock()
	if target == n {
		return true, nil
	}
	if (n.kids != nil) != (target.kids != nil) {
		return false, vfs.ErrExist
	}
	if n.kids == nil {
		return false, nil
	}
	switch err := fs.empty(path); {
	case errors.Is(err, vfs.ErrNotEmpty):
		return false, vfs.ErrExist
	case err != nil:
		return false, err
	}
	if err := fs.tree.Remove(path); err != nil {
		return false, Fail(err)
	}
	return false, nil
}

// holds says whether n is dir or holds it. The caller holds mu.
func (n *node) holds(dir *node) bool {
	for dir != n {
		if len(dir.places) == 0 {
			return false
		}
		dir = dir.places[0].dir
	}
	return true
}

// Link gives a file another name, if the tree can.
func (fs *FS) Link(ctx context.Context, h, to vfs.Handle, name string) (vfs.Attr, error) {
	if fs.can.ReadOnly {
		return vfs.Attr{}, vfs.ErrReadOnly
	}
	fs.names.Lock()
	defer fs.names.Unlock()
	n, src, _, err := fs.find(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	dir, p, err := fs.directory(ctx, to)
	if err == nil {
		err = fs.checkName(name)
	}
	switch {
	case err != nil:
		return vfs.Attr{}, err
	case !fs.can.HardLinks:
		return vfs.Attr{}, vfs.ErrNotSupported
	case n.kids != nil:
		return vfs.Attr{}, vfs.ErrInvalid
	}
	if err := fs.tree.Link(src, path.Join(p, name)); err != nil {
		return vfs.Attr{}, Fail(err)
	}
	_, a, err := fs.meet(dir, p, name)
	return a, err
}

// ReadDir lists names in the order in which they were seen first. It asks the tree for
// them when a listing begins.
func (fs *FS) ReadDir(ctx context.Context, h vfs.Handle, cookie uint64, plus bool, add func(vfs.Entry) bool) (bool, error) {
	var room [64]dirlist.Entry[*node]
	for count := 8; ; count = len(room) { // who lists takes few at a time, or many
		items, end, err := fs.some(ctx, h, cookie, plus, count == 8 && cookie == 0, room[:count])
		if err != nil {
			return false, err
		}
		for _, item := range items {
			if item.Name != "" && !add(item) {
				return false, nil
			}
			cookie = item.Cookie
		}
		if end {
			return true, nil
		}
	}
}

// some returns some entries; those that are gone have no name. end says that no more
// follow.
func (fs *FS) some(ctx context.Context, h vfs.Handle, cookie uint64, plus, fresh bool, list []dirlist.Entry[*node]) ([]vfs.Entry, bool, error) {
	fs.names.RLock()
	defer fs.names.RUnlock()
	dir, p, err := fs.directory(ctx, h)
	if err == nil && fresh {
		err = fs.refresh(dir, p)
	}
	if err != nil {
		return nil, false, err
	}
	fs.mu.Lock()
	n, ok := dir.kids.After(cookie, list)
	fs.mu.Unlock()
	if !ok {
		return nil, false, vfs.ErrBadCookie
	}
	items := make([]vfs.Entry, n)
	for i := range items {
		e := &list[i]
		items[i].Cookie = e.Cookie
		info, err := fs.tree.Lstat(path.Join(p, e.Name))
		if err != nil || !e.Item.is(info) {
			continue
		}
		info = fs.complete(e.Item, info)
		items[i].Name, items[i].FileID = e.Name, info.Attr.FileID
		if plus {
			items[i].Handle, items[i].Attr = e.Item.handle, &info.Attr
		}
	}
	return items, n < len(list), nil
}

// refresh learns the names that the tree has.
func (fs *FS) refresh(dir *node, p string) error {
	list, err := fs.tree.ReadDir(p)
	if err != nil {
		return Fail(err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, info := range list {
		if fs.checkName(info.Name) == nil {
			fs.see(dir, info.Name, info)
		}
	}
	return nil
}
