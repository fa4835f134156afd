package memfs

import (
	"context"

	"urnic/ulp/nfs/vfs"
)

// Lookup finds a name.
func (fs *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	d, err := fs.directory(ctx, dir)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	var n *node
	if name == ".." {
		n = d.dir.parent.Load()
	} else {
		if err := vfs.CheckName(name, MaxName); err != nil {
			return "", vfs.Attr{}, err
		}
		d.mu.RLock()
		n = d.dir.child(name)
		d.mu.RUnlock()
		if n == nil {
			return "", vfs.Attr{}, vfs.ErrNotExist
		}
	}
	a, err := n.attr()
	return n.handle, a, err
}

// Create makes a regular file.
func (fs *FS) Create(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.make(ctx, dir, name, vfs.Regular, s, nil)
}

// Mkdir makes a directory.
func (fs *FS) Mkdir(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.make(ctx, dir, name, vfs.Directory, s, nil)
}

// Symlink makes a symbolic link.
func (fs *FS) Symlink(ctx context.Context, dir vfs.Handle, name, target string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	if target == "" {
		return "", vfs.Attr{}, vfs.ErrInvalid
	}
	if len(target) > MaxTarget {
		return "", vfs.Attr{}, vfs.ErrNameTooLong
	}
	return fs.make(ctx, dir, name, vfs.Symlink, s, func(n *node) { n.target = target })
}

// Mknod makes a device, a socket or a FIFO, which are nothing but their attributes here.
func (fs *FS) Mknod(ctx context.Context, dir vfs.Handle, name string, t vfs.Type, major, minor uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	switch t {
	case vfs.BlockDevice, vfs.CharDevice:
	case vfs.Socket, vfs.FIFO:
		major, minor = 0, 0
	default:
		return "", vfs.Attr{}, vfs.ErrInvalid
	}
	return fs.make(ctx, dir, name, t, s, func(n *node) { n.major, n.minor = major, minor })
}

// make makes a file; fill does what its type needs.
func (fs *FS) make(ctx context.Context, dir vfs.Handle, name string, t vfs.Type, s vfs.SetAttr, fill func(*node)) (vfs.Handle, vfs.Attr, error) {
	d, err := fs.directory(ctx, dir)
	if err == nil {
		err = vfs.CheckName(name, MaxName)
	}
	if err == nil {
		err = fs.check(t, s)
	}
	if err != nil {
		return "", vfs.Attr{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := fs.mayAdd(d, name, t); err != nil {
		return "", vfs.Attr{}, err
	}
	n := fs.newNode(t, s)
	if fill != nil {
		fill(n)
	}
	if err := fs.takeName(name, n.cost()); err != nil {
		return "", vfs.Attr{}, err
	}
	a, err := n.attrLocked() // nobody else knows it yet
	if t == vfs.Directory {
		n.dir.parent.Store(d)
		d.links++
	}
	fs.enter(n)
	d.dir.names.Add(name, n)
	d.changed(true)
	return n.handle, a, err
}

// mayAdd returns an error if nothing of type t can get that name. The caller holds the
// directory's mu.
func (fs *FS) mayAdd(d *node, name string, t vfs.Type) error {
	switch {
	case d.links == 0:
		return vfs.ErrStale
	case d.dir.child(name) != nil:
		return vfs.ErrExist
	case t == vfs.Directory && d.links >= fs.links:
		return vfs.ErrTooManyLinks
	}
	return nil
}

// Link gives a file another name.
func (fs *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, error) {
	n, err := fs.node(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	d, err := fs.directory(ctx, dir)
	if err == nil {
		err = vfs.CheckName(name, MaxName)
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	if n.dir != nil {
		return vfs.Attr{}, vfs.ErrInvalid
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := fs.mayAdd(d, name, n.typ); err != nil {
		return vfs.Attr{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.links == 0:
		return vfs.Attr{}, vfs.ErrStale
	case n.links >= fs.links:
		return vfs.Attr{}, vfs.ErrTooManyLinks
	}
	if err := fs.takeName(name, 0); err != nil {
		return vfs.Attr{}, err
	}
	n.links++
	n.changed(false)
	d.dir.names.Add(name, n)
	d.changed(true)
	return n.attrLocked()
}

// Remove removes a name of anything but a directory.
func (fs *FS) Remove(ctx context.Context, dir vfs.Handle, name string) error {
	return fs.remove(ctx, dir, name, false)
}

// Rmdir removes an empty directory.
func (fs *FS) Rmdir(ctx context.Context, dir vfs.Handle, name string) error {
	return fs.remove(ctx, dir, name, true)
}

func (fs *FS) remove(ctx context.Context, dir vfs.Handle, name string, directory bool) error {
	d, err := fs.directory(ctx, dir)
	if err == nil {
		err = vfs.CheckName(name, MaxName)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.dir.child(name)
	switch {
	case d.links == 0:
		return vfs.ErrStale
	case n == nil:
		return vfs.ErrNotExist
	case directory && n.dir == nil:
		return vfs.ErrNotDirectory
	case !directory && n.dir != nil:
		return vfs.ErrIsDirectory
	}
	gone, err := n.unlink()
	if err != nil {
		return err
	}
	d.dir.names.Remove(name)
	d.changed(true)
	if directory {
		d.links--
	}
	fs.giveName(name)
	if gone {
		fs.drop(n)
	}
	return nil
}

// unlink takes one of its names from a node, and says whether it was the last. It returns
// ErrNotEmpty for a directory that is not. The caller holds the mu of the directory that
// the name is in.
func (n *node) unlink() (gone bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dir != nil {
		if n.dir.names.Len() > 0 {
			return false, vfs.ErrNotEmpty
		}
		n.links = 0 // nothing is made in it any more
		return true, nil
	}
	n.links--
	n.changed(false)
	return n.links == 0, nil
}
