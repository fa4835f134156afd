package dirfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// Something new gets its attributes after it is there, and so that nobody can use that.
//
// Whoever may change the directory may put another file in the place of the new one before
// we open it. For a caller, all is done with the caller's rights, from the first step to the
// last. But the other file may be one of the caller's, too, which must not get the new one's
// owner and mode. So a file is given attributes only if it looks like what was made: it
// belongs to whoever made it, has no bits in its mode that were not asked for, is empty, and has
// no other name. What the process makes for itself is for the process alone at first. For
// root the mode is 0 then, which nothing else has that root owns. A regular file has a
// descriptor from the beginning.

// A making is something new.
type making struct {
	dir  *node
	d    *desc
	name string
	c    *vfs.Caller // nil: the process
	typ  vfs.Type
	s    vfs.SetAttr
	rdev uint64
	link string // where a symbolic link points to
	own  bool   // what has the name now is what was made
}

// firstMode returns the mode with which something is made.
func (m *making) firstMode() uint32 {
	switch {
	case m.c != nil:
		return *m.s.Mode
	case unix.Geteuid() == 0:
		return 0
	case m.typ == vfs.Directory:
		return 0o700 // other calls may already use it
	}
	return 0o600
}

func (m *making) isDevice() bool { return m.typ == vfs.BlockDevice || m.typ == vfs.CharDevice }

// make makes something by do, and gives it its attributes. do returns a descriptor of it, or -1
// if it must be opened by its name. It gets the mode to make it with.
func (fs *linuxFS) make(ctx context.Context, h vfs.Handle, m *making, do func(dir int, mode uint32) (int, error)) (vfs.Handle, vfs.Attr, *desc, error) {
	if err := fs.writable(); err != nil {
		return "", vfs.Attr{}, nil, err
	}
	dir, d, err := fs.directory(ctx, h)
	if err != nil {
		return "", vfs.Attr{}, nil, err
	}
	defer d.done()
	if err = vfs.CheckName(m.name, MaxName); err == nil {
		err = check(m.typ, m.s)
	}
	if err != nil {
		return "", vfs.Attr{}, nil, err
	}
	m.dir, m.d, m.c = dir, d, fs.caller(ctx)
	if m.s.Mode == nil {
		mode := uint32(0o644)
		if m.typ == vfs.Directory {
			mode = 0o755
		}
		m.s.Mode = &mode
	}
	var f *found
	var g vfs.Handle
	fd := -1
	err = fs.as(m.c, func() (err error) {
		if fd, err = do(d.fd, m.firstMode()); err != nil {
			return taken(err)
		}
		f, g, fd, err = fs.made(m, fd)
		return err
	})
	if err == nil && m.typ == vfs.Regular && !fs.opt.Async {
		err = fail(fs.syncFD(fd, false))
	}
	if err == nil {
		err = fs.syncDir(d)
	}
	if err == nil {
		err = fail(fs.statAt(f, fd, ""))
	}
	if err != nil {
		if m.own {
			fs.unmake(m, g)
		}
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		return "", vfs.Attr{}, nil, err
	}
	fs.learn(dir, m.name, f, g)
	return g, fs.attrOf(fd, f), newDesc(fd), nil
}

// made gives what was just made its attributes, and returns what it is and a descriptor of
// it; if it fails, as far as it has come.
func (fs *linuxFS) made(m *making, fd int) (*found, vfs.Handle, int, error) {
	opened := fd >= 0
	if !opened {
		var err error
		if fd, err = fs.openFD(m.d.fd, m.name, unix.O_PATH, 0); err != nil {
			return nil, "", -1, fail(err)
		}
	}
	f, h, err := fs.identify(fd)
	if err != nil {
		return nil, "", fd, fail(err)
	}
	s := m.s
	switch {
	case m.typ == vfs.Symlink:
		s.Mode = nil
	case m.c != nil:
		s.Mode = fs.modeLeft(m, f)
	}
	if opened {
		m.own = true
	} else if err := fs.fresh(m, fd, f, s); err != nil {
		return nil, "", fd, err
	}
	return f, h, fd, fs.apply(fd, attrOf(&f.st), s)
}

// fresh finds out whether a file is the one that was just made, as the name may have become
// another's. It returns ErrExist if it is not, or if that is not sure and there is something
// left to set.
func (fs *linuxFS) fresh(m *making, fd int, f *found, s vfs.SetAttr) error {
	another := fmt.Errorf("%w: another file has taken the name meanwhile", vfs.ErrExist)
	if typeOf(&f.st) != m.typ || m.isDevice() && unix.Mkdev(f.st.Rdev_major, f.st.Rdev_minor) != m.rdev {
		return another
	}
	if m.typ == vfs.Symlink {
		if link, err := readLinkFD(fd); err != nil || link != m.link {
			return another
		}
	}
	uid, _ := fsIDs() // the caller's, or the process's
	m.own = f.st.Uid == uint32(uid)
	if m.typ != vfs.Symlink { // whose mode says nothing
		m.own = m.own && uint32(f.st.Mode)&(0o7777&^unix.S_ISGID)&^m.firstMode() == 0 // the umask may have taken some
	}
	switch {
	case m.typ != vfs.Directory:
		m.own = m.own && f.st.Nlink == 1
	case m.firstMode()&0o500 == 0o500 || uid == 0: // or its maker can't look
		m.own = m.own && fs.empty(fd)
	}
	old := attrOf(&f.st)
	same := (s.Mode == nil || *s.Mode == old.Mode) && (s.UID == nil || *s.UID == old.UID) && (s.GID == nil || *s.GID == old.GID)
	if m.own || same && s.Atime == nil && s.Mtime == nil { // some filesystems choose modes and owners themselves
		return nil
	}
	return another
}

// empty reports whether a directory has nothing in it.
func (fs *linuxFS) empty(fd int) bool {
	in, err := fs.openFD(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(in) }()
	none := true
	err = eachDirent(in, make([]byte, 512), func(*dirent) bool {
		none = false
		return false
	})
	return none && err == nil
}

// modeLeft returns the mode that what a caller has made must still be given, or nil.
func (fs *linuxFS) modeLeft(m *making, f *found) *uint32 {
	got, mode := uint32(f.st.Mode)&0o7777, *m.s.Mode
	if f.st.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= got & unix.S_ISGID // inherited
	}
	lacks := mode &^ got
	switch {
	case mode&0o6000 != 0 && (m.s.Size != nil || m.s.UID != nil || m.s.GID != nil):
		return &mode // which these are going to take away
	case lacks == 0 && got&^mode == 0:
		return nil
	case lacks&^0o777 == 0 && got&^mode == 0 && fs.hasACL(m.d.fd, aclDefault):
		// The directory says what new files in it get at most, and not the process's umask.
		return nil
	case got&unix.S_ISGID != 0 && m.c.UID != 0 && !m.c.In(f.st.Gid):
		// To change the mode would take the bit away, which the directory has demanded.
		return nil
	}
	return &mode
}

// unmake removes what was made, and could not be finished, if the name is still its own.
func (fs *linuxFS) unmake(m *making, h vfs.Handle) {
	_ = fs.as(m.c, func() error {
		fd, err := fs.openFD(m.d.fd, m.name, unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		if _, got, err := fs.identify(fd); err != nil || got != h {
			return err
		}
		flags := 0
		if m.typ == vfs.Directory {
			flags = unix.AT_REMOVEDIR
		}
		return unix.Unlinkat(m.d.fd, m.name, flags)
	})
}

func (fs *linuxFS) Create(ctx context.Context, h vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	m := making{name: name, typ: vfs.Regular, s: s}
	g, a, w, err := fs.make(ctx, h, &m, func(dir int, mode uint32) (int, error) {
		return fs.openFD(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, uint64(mode))
	})
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer w.done()
	w.both, w.fs, w.ino = true, fs, a.FileID
	fs.keepNew(g, a, w)
	return g, a, nil
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
	return fs.mk(ctx, h, making{name: name, typ: vfs.Directory, s: s}, func(dir int, mode uint32) error {
		return unix.Mkdirat(dir, name, mode)
	})
}

func (fs *linuxFS) Symlink(ctx context.Context, h vfs.Handle, name, target string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	return fs.mk(ctx, h, making{name: name, typ: vfs.Symlink, s: s, link: target}, func(dir int, _ uint32) error {
		if target == "" {
			return vfs.ErrInvalid
		}
		return unix.Symlinkat(target, dir, name)
	})
}

func (fs *linuxFS) Mknod(ctx context.Context, h vfs.Handle, name string, t vfs.Type, major, minor uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	m := making{name: name, typ: t, s: s}
	var typ uint32
	switch t {
	case vfs.BlockDevice, vfs.CharDevice:
		typ = unix.S_IFBLK
		if t == vfs.CharDevice {
			typ = unix.S_IFCHR
		}
		// What the system call takes: 12 bits of one, 20 of the other.
		if major >= 1<<12 || minor >= 1<<20 {
			return "", vfs.Attr{}, vfs.ErrInvalid
		}
		m.rdev = unix.Mkdev(major, minor)
	case vfs.Socket:
		typ = unix.S_IFSOCK
	case vfs.FIFO:
		typ = unix.S_IFIFO
	default:
		return "", vfs.Attr{}, vfs.ErrInvalid
	}
	return fs.mk(ctx, h, m, func(dir int, mode uint32) error {
		return unix.Mknodat(dir, name, typ|mode, int(uint32(m.rdev)))
	})
}

// mk makes anything but a regular file.
func (fs *linuxFS) mk(ctx context.Context, h vfs.Handle, m making, do func(dir int, mode uint32) error) (vfs.Handle, vfs.Attr, error) {
	g, a, d, err := fs.make(ctx, h, &m, func(dir int, mode uint32) (int, error) {
		return -1, again0(func() error { return do(dir, mode) })
	})
	if err != nil {
		return "", vfs.Attr{}, err
	}
	d.done()
	return g, a, nil
}
