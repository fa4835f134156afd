package dirfs

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

func (fs *linuxFS) Lookup(ctx context.Context, h vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	dir, d, err := fs.directory(ctx, h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer d.done()
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
	return h, attrOf(&f.st), nil
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
	return h, attrOf(&f.st), nil
}

// syncDir makes changes of names in directories stable. One that may not be read can't be
// synchronised by us.
func (fs *linuxFS) syncDir(dirs ...*desc) error {
	if fs.opt.Async {
		return nil
	}
	for _, d := range dirs {
		err := fs.sync(d.fd, false)
		if err != nil && !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.EINVAL) {
			return fail(err)
		}
	}
	return nil
}

// making opens the directory in which a file is to be made, and checks what can be.
func (fs *linuxFS) making(ctx context.Context, h vfs.Handle, name string, t vfs.Type, s vfs.SetAttr) (*node, *desc, error) {
	if err := fs.writable(); err != nil {
		return nil, nil, err
	}
	dir, d, err := fs.directory(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	if err = vfs.CheckName(name, MaxName); err == nil {
		err = check(t, s)
	}
	if err != nil {
		d.done()
		return nil, nil, err
	}
	return dir, d, nil
}

// made gives a file that was just made its attributes. fd is open at it. If that fails, the
// name is removed again.
func (fs *linuxFS) made(dir *node, d *desc, name string, fd int, mode uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	f, h, err := fs.identify(fd)
	if err == nil {
		if s.Mode == nil {
			s.Mode = &mode
		}
		if f.st.Mode&unix.S_IFMT == unix.S_IFLNK {
			s.Mode = nil
		}
		err = fs.apply(fd, attrOf(&f.st), s)
	}
	if err == nil && f.st.Mode&unix.S_IFMT == unix.S_IFREG && !fs.opt.Async {
		err = fs.sync(fd, false)
	}
	if err == nil {
		err = f.statAt(fd, "")
	}
	if err == nil {
		err = fs.syncDir(d)
	}
	if err != nil {
		flags := 0
		if f != nil && f.st.Mode&unix.S_IFMT == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR
		}
		_ = unix.Unlinkat(d.fd, name, flags)
		return "", vfs.Attr{}, fail(err)
	}
	fs.learn(dir, name, f, h)
	return h, attrOf(&f.st), nil
}

func (fs *linuxFS) Create(ctx context.Context, h vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	dir, d, err := fs.making(ctx, h, name, vfs.Regular, s)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer d.done()
	fd, err := fs.openFD(d.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
	if err != nil {
		return "", vfs.Attr{}, taken(err)
	}
	w := newDesc(fd)
	w.both = true
	defer w.done()
	g, a, err := fs.made(dir, d, name, fd, 0o644, s)
	if err == nil {
		fs.keepNew(g, a, w)
	}
	return g, a, err
}

// keepNew keeps the descriptor of a new file: it is written next, most likely, and by its
// maker whatever its mode says.
func (fs *linuxFS) keepNew(h vfs.Handle, a vfs.Attr, d *desc) {
	fs.mu.Lock()
	n := fs.known[a.FileID]
	same := n != nil && n.handle == h
	if same {
		n.checked = time.Now()
	}
	fs.mu.Unlock()
	if same {
		fs.keep(n, d, writeDesc)
	}
}

// taken says that a name is taken also where the system says what has it.
func taken(err error) error {
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) {
		return vfs.ErrExist
	}
	return fail(err)
}

func (fs *linuxFS) Mkdir(ctx context.Context, h vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.mk(ctx, h, name, vfs.Directory, 0o755, s, func(dir int) error { return unix.Mkdirat(dir, name, 0o700) })
}

func (fs *linuxFS) Symlink(ctx context.Context, h vfs.Handle, name, target string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.mk(ctx, h, name, vfs.Symlink, 0o777, s, func(dir int) error {
		if target == "" {
			return vfs.ErrInvalid
		}
		return unix.Symlinkat(target, dir, name)
	})
}

func (fs *linuxFS) Mknod(ctx context.Context, h vfs.Handle, name string, t vfs.Type, major, minor uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	var mode uint32
	dev := 0
	switch t {
	case vfs.BlockDevice, vfs.CharDevice:
		mode = unix.S_IFBLK
		if t == vfs.CharDevice {
			mode = unix.S_IFCHR
		}
		// What the system call takes: 12 bits of one, 20 of the other.
		if major >= 1<<12 || minor >= 1<<20 {
			return "", vfs.Attr{}, vfs.ErrInvalid
		}
		dev = int(uint32(unix.Mkdev(major, minor)))
	case vfs.Socket:
		mode = unix.S_IFSOCK
	case vfs.FIFO:
		mode = unix.S_IFIFO
	default:
		return "", vfs.Attr{}, vfs.ErrInvalid
	}
	return fs.mk(ctx, h, name, t, 0o644, s, func(dir int) error { return unix.Mknodat(dir, name, mode|0o600, dev) })
}

// mk makes anything but a regular file.
func (fs *linuxFS) mk(ctx context.Context, h vfs.Handle, name string, t vfs.Type, mode uint32, s vfs.SetAttr, do func(dir int) error) (vfs.Handle, vfs.Attr, error) {
	dir, d, err := fs.making(ctx, h, name, t, s)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer d.done()
	if err := again0(func() error { return do(d.fd) }); err != nil {
		return "", vfs.Attr{}, fail(err)
	}
	fd, err := fs.openFD(d.fd, name, unix.O_PATH, 0)
	if err != nil {
		return "", vfs.Attr{}, fail(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return fs.made(dir, d, name, fd, mode, s)
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
	// What is open can't have its inode number taken while we look.
	fd, err := fs.openFD(d.fd, name, unix.O_PATH, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = unix.Close(fd) }()
	_, target, err := fs.identify(fd)
	if err != nil {
		return fail(err)
	}
	if err := again0(func() error { return unix.Unlinkat(d.fd, name, flags) }); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return vfs.ErrNotEmpty
		}
		return fail(err)
	}
	fs.unnamed(fd, target, place{dir, name})
	return fs.syncDir(d)
}

// unnamed notes that what fd is open at does not have a name any more.
func (fs *linuxFS) unnamed(fd int, h vfs.Handle, p place) {
	var f found
	if err := f.statAt(fd, ""); err != nil {
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
	src, err := fs.openFD(ad.fd, name, unix.O_PATH, 0)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = unix.Close(src) }()
	f, h, err := fs.identify(src)
	if err != nil {
		return fail(err)
	}
	var old vfs.Handle
	dst, err := fs.openFD(bd.fd, newName, unix.O_PATH, 0)
	if err == nil {
		defer func() { _ = unix.Close(dst) }()
		if _, old, err = fs.identify(dst); err != nil {
			return fail(err)
		}
		if old == h {
			return nil
		}
	}
	moved := fs.move(f.st.Ino, f.st.Mode&unix.S_IFMT == unix.S_IFDIR)
	defer moved()
	if err := again0(func() error { return unix.Renameat2(ad.fd, name, bd.fd, newName, 0) }); err != nil {
		switch {
		case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENOTEMPTY):
			return vfs.ErrExist
		}
		return fail(err)
	}
	if old != "" {
		fs.unnamed(dst, old, place{b, newName})
	}
	n := fs.learn(b, newName, f, h)
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
	err = unix.Linkat(fd.fd, "", d.fd, name, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.ENOENT) && fs.procFD { // not permitted: as root it is
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
