package dirfs

import (
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

func (fs *linuxFS) GetAttr(ctx context.Context, h vfs.Handle) (vfs.Attr, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return vfs.Attr{}, err
	}
	defer d.done()
	return fs.attr(n, d.fd)
}

// attr returns the attributes of what fd is open at, if it has a name still.
func (fs *linuxFS) attr(n *node, fd int) (vfs.Attr, error) {
	var f found
	if err := fs.statAt(&f, fd, ""); err != nil {
		return vfs.Attr{}, fail(err)
	}
	if f.st.Nlink == 0 {
		fs.removed(n)
		return vfs.Attr{}, vfs.ErrStale
	}
	return fs.attrOf(fd, &f), nil
}

// attrOf returns attributes of what fd is open at.
func (fs *linuxFS) attrOf(fd int, f *found) vfs.Attr {
	a := attrOf(&f.st)
	a.ACL = fs.self == nil && fs.hasACL(fd, aclAccess)
	return a
}

// removed forgets a file that has no name any more.
func (fs *linuxFS) removed(n *node) {
	fs.mu.Lock()
	defer fs.unlock()
	if n.handle != "" {
		fs.gone.add(n.handle, time.Now().Add(forever))
	}
	if n.wr != nil {
		n.wr.dirty.Store(false) // nobody needs the data
	}
	fs.forget(n)
}

func (fs *linuxFS) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	if err := fs.writable(); err != nil {
		return vfs.Attr{}, err
	}
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return vfs.Attr{}, err
	}
	defer func() { d.done() }()
	if err := check(n.typ, s); err != nil {
		return vfs.Attr{}, err
	}
	if s.Size != nil {
		if err := fs.permit(ctx, n, d, wantWrite); err != nil {
			return vfs.Attr{}, err
		}
		w, err := fs.acquire(ctx, n, writeDesc)
		if err != nil {
			return vfs.Attr{}, err
		}
		d.done()
		d = w
	}
	before, err := fs.attr(n, d.fd)
	if err != nil {
		return vfs.Attr{}, err
	}
	c, now := fs.caller(ctx), vfs.SetAttr{}
	if c != nil && s.Now && c.UID != before.UID {
		// utimensat lets a writer set both times to the present or none. NFS has calls
		// for one, which does no more harm.
		if err := fs.permit(ctx, n, d, wantWrite); err != nil {
			return vfs.Attr{}, err
		}
		now.Atime, now.Mtime, s.Atime, s.Mtime = s.Atime, s.Mtime, nil, nil
	}
	if err := fs.as(c, func() error { return fs.apply(d.fd, before, s) }); err != nil {
		return vfs.Attr{}, err
	}
	if err := fs.applyRest(d.fd, now); err != nil {
		return vfs.Attr{}, err
	}
	if s.Size != nil {
		if err := fs.syncDesc(d, true); err != nil {
			return vfs.Attr{}, fail(err)
		}
	}
	return fs.attr(n, d.fd)
}

func check(t vfs.Type, s vfs.SetAttr) error {
	if err := s.Check(t); err != nil {
		return err
	}
	if s.Size != nil && *s.Size > math.MaxInt64 {
		return vfs.ErrTooBig
	}
	return nil
}

// apply changes the attributes of what fd is open at; to set a size, it must be open for
// writing. What is not permitted is most likely to give the file away, so that comes
// first, and is undone if something later fails.
func (fs *linuxFS) apply(fd int, old vfs.Attr, s vfs.SetAttr) error {
	uid, gid := -1, -1
	if s.UID != nil && *s.UID != old.UID {
		uid = int(*s.UID)
	}
	if s.GID != nil && *s.GID != old.GID {
		gid = int(*s.GID)
	}
	if uid >= 0 || gid >= 0 {
		if err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
			return fail(err)
		}
	}
	err := fs.applyRest(fd, s)
	if err != nil && (uid >= 0 || gid >= 0) {
		_ = unix.Fchownat(fd, "", int(old.UID), int(old.GID), unix.AT_EMPTY_PATH)
	}
	return err
}

func (fs *linuxFS) applyRest(fd int, s vfs.SetAttr) error {
	if s.Size != nil {
		if err := again0(func() error { return unix.Ftruncate(fd, int64(*s.Size)) }); err != nil {
			return fail(err)
		}
	}
	if s.Mode != nil {
		if err := fs.chmod(fd, *s.Mode); err != nil {
			return fail(err)
		}
	}
	if s.Atime == nil && s.Mtime == nil {
		return nil
	}
	var ts [2]unix.Timespec
	for i, t := range []*time.Time{s.Atime, s.Mtime} {
		ts[i].Nsec = unix.UTIME_OMIT
		if t == nil {
			continue
		}
		var err error
		if ts[i], err = unix.TimeToTimespec(*t); err != nil {
			return fail(err)
		}
	}
	return fail(unix.UtimesNanoAt(fd, "", ts[:], unix.AT_EMPTY_PATH))
}

// chmod works with O_PATH descriptors too.
func (fs *linuxFS) chmod(fd int, mode uint32) error {
	err := unix.Fchmod(fd, mode)
	if errors.Is(err, unix.EBADF) { // O_PATH
		err = unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH)
	}
	if (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)) && fs.procFD { // before Linux 6.6
		err = unix.Chmod(procPath(fd), mode)
	}
	return err
}

func (fs *linuxFS) ReadLink(ctx context.Context, h vfs.Handle) (string, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return "", err
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return "", err
	}
	defer d.done()
	if n.typ != vfs.Symlink {
		return "", vfs.ErrInvalid
	}
	link, err := readLinkFD(d.fd)
	return link, fail(err)
}

// readLinkFD returns where the symbolic link points to that fd is open at.
func readLinkFD(fd int) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		got, err := unix.Readlinkat(fd, "", b)
		if err != nil {
			return "", err
		}
		if got < size {
			return string(b[:got]), nil
		}
	}
}
