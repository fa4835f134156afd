package dirfs

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

func (fs *linuxFS) Lookup(ctx context.Context, h vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	dir, d, err := fs.directory(ctx, h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer d.done()
	if err := fs.permit(ctx, dir, d, wantSearch); err != nil {
		return "", vfs.Attr{}, err
	}
	if name == ".." {
		return fs.up(ctx, dir)
	}
	if err := vfs.CheckName(name, MaxName); err != nil {
		return "", vfs.Attr{}, err
	}
	fd, err := fs.openFD(d.fd, name, unix.O_PATH, 0)
	if err != nil {
		return "", vfs.Attr{}, fail(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return fs.meet(dir, name, fd)
}

// meet learns what fd is, which was opened by a name in dir.
func (fs *linuxFS) meet(dir *node, name string, fd int) (vfs.Handle, vfs.Attr, error) {
	f, h, err := fs.identify(fd)
	if err != nil {
		return "", vfs.Attr{}, fail(err)
	}
	fs.learn(dir, name, f, h)
	return h, fs.attrOf(fd, f), nil
}

// up returns what holds a directory. It was found in the tree a moment ago, so where it is
// known to be is where it is.
func (fs *linuxFS) up(ctx context.Context, dir *node) (vfs.Handle, vfs.Attr, error) {
	fs.mu.Lock()
	n := dir
	if len(dir.places) > 0 {
		n = dir.places[0].dir
	}
	lost := dir != fs.root && n == dir
	fs.mu.Unlock()
	if lost {
		return "", vfs.Attr{}, vfs.ErrStale
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer d.done()
	f, h, err := fs.identify(d.fd)
	if err != nil {
		return "", vfs.Attr{}, fail(err)
	}
	return h, fs.attrOf(d.fd, f), nil
}

// syncDir makes changes of names in directories stable. One that may not be read can't be
// synchronised by us.
func (fs *linuxFS) syncDir(dirs ...*desc) error {
	if fs.opt.Async {
		return nil
	}
	for _, d := range dirs {
		err := fs.syncFD(d.fd, false)
		if err != nil && !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.EINVAL) {
			return fail(err)
		}
	}
	return nil
}

func (fs *linuxFS) Remove(ctx context.Context, h vfs.Handle, name string) error {
	return fs.remove(ctx, h, name, 0)
}

func (fs *linuxFS) Rmdir(ctx context.Context, h vfs.Handle, name string) error {
	return fs.remove(ctx, h, name, unix.AT_REMOVEDIR)
}

func (fs *linuxFS) remove(ctx context.Context, h vfs.Handle, name string, flags int) error {
	if err := fs.writable(); err != nil {
		return err
	}
	dir, d, err := fs.directory(ctx, h)
	if err != nil {
		return err
	}
	defer d.done()
	if err := vfs.CheckName(name, MaxName); err != nil {
		return err
	}
	var fd int
	var target vfs.Handle
	err = fs.as(fs.caller(ctx), func() (err error) {
		// What is open can't have its inode number taken while we look.
		if fd, err = fs.openFD(d.fd, name, unix.O_PATH, 0); err != nil {
			return fail(err)
		}
		if _, target, err = fs.identify(fd); err == nil {
			err = again0(func() error { return unix.Unlinkat(d.fd, name, flags) })
		}
		if err != nil {
			_ = unix.Close(fd)
		}
		if errors.Is(err, unix.EEXIST) {
			return vfs.ErrNotEmpty
		}
		return fail(err)
	})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	fs.unnamed(fd, target, place{dir, name})
	return fs.syncDir(d)
}

// unnamed notes that what fd is open at does not have a name any more.
func (fs *linuxFS) unnamed(fd int, h vfs.Handle, p place) {
	var f found
	if err := fs.statAt(&f, fd, ""); err != nil {
		return
	}
	fs.mu.Lock()
	n := fs.known[f.st.Ino]
	if n == nil || n.handle != h {
		n = newNode(f.st.Ino)
		n.handle = h
	}
	fs.dropPlace(n, p)
	fs.mu.Unlock()
	if f.st.Nlink == 0 {
		fs.removed(n)
	}
}

func (fs *linuxFS) Rename(ctx context.Context, from vfs.Handle, name string, to vfs.Handle, newName string) error {
	if err := fs.writable(); err != nil {
		return err
	}
	a, ad, err := fs.directory(ctx, from)
	if err != nil {
		return err
	}
	defer ad.done()
	b, bd, err := fs.directory(ctx, to)
	if err != nil {
		return err
	}
	defer bd.done()
	if err = vfs.CheckName(name, MaxName); err == nil {
		err = vfs.CheckName(newName, MaxName)
	}
	if err != nil {
		return err
	}
	r := renaming{from: ad.fd, name: name, to: bd.fd, newName: newName, src: -1, dst: -1}
	defer r.close()
	if err := fs.as(fs.caller(ctx), func() error { return fs.rename(&r) }); err != nil || r.src < 0 {
		return err
	}
	defer r.moved()
	if r.dst >= 0 {
		fs.unnamed(r.dst, r.replaced, place{b, newName})
	}
	n := fs.learn(b, newName, r.f, r.h)
	fs.mu.Lock()
	if a != b || name != newName {
		fs.dropPlace(n, place{a, name})
	}
	fs.mu.Unlock()
	if a == b {
		return fs.syncDir(ad)
	}
	return fs.syncDir(bd, ad)
}

// A renaming is what becomes of a Rename.
type renaming struct {
	from, to      int
	name, newName string

	src      int // what is renamed, or -1
	f        *found
	h        vfs.Handle
	dst      int // what is replaced, or -1
	replaced vfs.Handle
	moved    func()
}

func (r *renaming) close() {
	for _, fd := range []int{r.src, r.dst} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// rename renames a file. It leaves src -1 if there is nothing to do. Both files are open
// meanwhile, so that their inode numbers can't become others'.
func (fs *linuxFS) rename(r *renaming) error {
	src, err := fs.openFD(r.from, r.name, unix.O_PATH, 0)
	if err != nil {
		return fail(err)
	}
	dst := -1
	defer func() {
		if r.src < 0 {
			(&renaming{src: src, dst: dst}).close()
		}
	}()
	if r.f, r.h, err = fs.identify(src); err != nil {
		return fail(err)
	}
	if dst, err = fs.openFD(r.to, r.newName, unix.O_PATH, 0); err == nil {
		if _, r.replaced, err = fs.identify(dst); err != nil {
			return fail(err)
		}
		if r.replaced == r.h {
			return nil
		}
	}
	moved := fs.move(r.f.st.Ino, r.f.st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err := again0(func() error { return unix.Renameat2(r.from, r.name, r.to, r.newName, 0) }); err != nil {
		moved()
		switch {
		case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENOTEMPTY):
			return vfs.ErrExist
		}
		return fail(err)
	}
	r.src, r.dst, r.moved = src, dst, moved
	return nil
}

func (fs *linuxFS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, error) {
	if err := fs.writable(); err != nil {
		return vfs.Attr{}, err
	}
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	fd, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return vfs.Attr{}, err
	}
	defer fd.done()
	to, d, err := fs.directory(ctx, dir)
	if err != nil {
		return vfs.Attr{}, err
	}
	defer d.done()
	if err := vfs.CheckName(name, MaxName); err != nil {
		return vfs.Attr{}, err
	}
	if n.typ == vfs.Directory {
		return vfs.Attr{}, vfs.ErrInvalid
	}
	if c := fs.caller(ctx); c != nil {
		if err := fs.linkable(c, fd.fd); err != nil {
			return vfs.Attr{}, err
		}
		err = fs.linkAs(c, fd.fd, d.fd, name)
	} else if err = unix.Linkat(fd.fd, "", d.fd, name, unix.AT_EMPTY_PATH); errors.Is(err, unix.ENOENT) && fs.procFD { // not permitted: as root it is
		err = unix.Linkat(unix.AT_FDCWD, procPath(fd.fd), d.fd, name, unix.AT_SYMLINK_FOLLOW)
	}
	if errors.Is(err, unix.ENOENT) {
		if _, gone := fs.attr(n, fd.fd); gone != nil {
			return vfs.Attr{}, gone
		}
	}
	if err != nil {
		return vfs.Attr{}, fail(err)
	}
	fs.mu.Lock()
	fs.addPlace(n, place{to, name})
	fs.mu.Unlock()
	if err := fs.syncDir(d); err != nil {
		return vfs.Attr{}, err
	}
	return fs.attr(n, fd.fd)
}

// linkable returns ErrNotOwner for what fs.protected_hardlinks of proc_sys_fs(5) forbids,
// whether the system does or not: a name for a file of another user that the caller can't
// read and write, or that runs with its owner's rights. Such a name would keep a program
// that its owner has removed, or have the owner's programs do to the file what they do to
// the caller's.
func (fs *linuxFS) linkable(c *vfs.Caller, fd int) error {
	var f found
	if err := f.statAt(fd, ""); err != nil {
		return fail(err)
	}
	if c.UID == 0 || f.st.Uid == c.UID {
		return nil
	}
	const both = vfs.AccessRead | vfs.AccessWrite
	mode := f.st.Mode
	if mode&unix.S_IFMT != unix.S_IFREG || mode&unix.S_ISUID != 0 || mode&(unix.S_ISGID|unix.S_IXGRP) == unix.S_ISGID|unix.S_IXGRP {
		return vfs.ErrNotOwner
	}
	got, err := fs.access(c, fd, &f, both)
	if err == nil && got != both {
		err = vfs.ErrNotOwner
	}
	return err
}

// linkAs gives what fd is open at a name in dir, with a caller's rights.
func (fs *linuxFS) linkAs(c *vfs.Caller, fd, dir int, name string) error {
	if fs.procFD {
		return fs.as(c, func() error {
			return unix.Linkat(unix.AT_FDCWD, procPath(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
		})
	}
	// Without /proc only root may name a file by its descriptor. What a new name takes
	// is the right to change the directory.
	const change = vfs.AccessWrite | vfs.AccessExec
	var f found
	if err := f.statAt(dir, ""); err != nil {
		return err
	}
	got, err := fs.access(c, dir, &f, change)
	if err == nil && got != change {
		err = unix.EACCES
	}
	if err != nil {
		return err
	}
	return unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH)
}
