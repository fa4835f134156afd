package dirfs

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// What a caller may do is for the kernel to say: it is asked on a thread that has the
// caller's identity. So modes, access control lists and security modules count as they do
// for the machine's own users.

// A want is what a caller asks for: a vfs.Access, or one of the two below.
type want uint8

const (
	wantSearch = want(vfs.AccessExec)
	wantList   = want(vfs.AccessRead)

	// Data of a file may be read and written by the owner whatever the mode says, who
	// may have opened it before the mode changed, and read by those who may execute it
	// (RFC 1813 §4.4).
	wantRead  want = 8
	wantWrite want = 16
)

// A grant is what was granted. It holds for fs.recheck, as a descriptor does, so not each
// READ asks the kernel again.
type grant struct {
	n        *node
	want     want
	uid, gid uint32
	groups   int
	group    [maxGroups]uint32
}

const (
	maxGroups = 16 // of AUTH_SYS; the grants of callers with more are not kept
	maxGrants = 4096
)

func newGrant(n *node, w want, c *vfs.Caller) (g grant, ok bool) {
	g = grant{n: n, want: w, uid: c.UID, gid: c.GID, groups: len(c.Groups)}
	return g, copy(g.group[:], c.Groups) == len(c.Groups)
}

// caller returns whom a call is made for, or nil if that is the process.
func (fs *linuxFS) caller(ctx context.Context) *vfs.Caller {
	if fs.self == nil {
		return nil
	}
	return vfs.CallerOf(ctx)
}

// as calls do with the rights of a caller.
func (fs *linuxFS) as(c *vfs.Caller, do func() error) error {
	if c == nil {
		return do()
	}
	return fs.self.as(c, do)
}

// permit returns ErrAccess unless the caller may do something with a file. d is open at it,
// or nil.
func (fs *linuxFS) permit(ctx context.Context, n *node, d *desc, w want) error {
	c := fs.caller(ctx)
	if c == nil || c.UID == 0 && fs.self.uid == 0 {
		return nil // then the system says it when the file is used
	}
	g, keep := newGrant(n, w, c)
	now := time.Now()
	fs.mu.Lock()
	held := keep && now.Before(fs.grants[g])
	fs.mu.Unlock()
	if held {
		return nil
	}
	if d == nil {
		var err error
		if d, err = fs.acquire(ctx, n, anyDesc); err != nil {
			return err
		}
		defer d.done()
	}
	if err := fs.ask(c, d.fd, w); err != nil {
		return err
	}
	if keep {
		fs.mu.Lock()
		if len(fs.grants) >= maxGrants {
			clear(fs.grants)
		}
		fs.grants[g] = now.Add(fs.recheck)
		fs.mu.Unlock()
	}
	return nil
}

// ask is permit without what was granted before.
func (fs *linuxFS) ask(c *vfs.Caller, fd int, w want) error {
	var f found
	if err := f.statAt(fd, ""); err != nil {
		return fail(err)
	}
	one := vfs.Access(w) // of these is enough
	switch w {           //nolint:exhaustive // the others are of vfs
	case wantRead:
		one = vfs.AccessRead | vfs.AccessExec
	case wantWrite:
		one = vfs.AccessWrite
	}
	if (w == wantRead || w == wantWrite) && f.st.Uid == c.UID {
		return nil
	}
	got, err := fs.access(c, fd, &f, one)
	if err == nil && got == 0 {
		err = vfs.ErrAccess
	}
	return err
}

// access returns which of want a caller may do with what fd is open at.
func (fs *linuxFS) access(c *vfs.Caller, fd int, f *found, want vfs.Access) (got vfs.Access, err error) {
	if !fs.faccess {
		if c == nil {
			uid, gid := fsIDs()
			c = &vfs.Caller{UID: uint32(uid), GID: uint32(gid)}
		}
		return fs.accessByMode(c, fd, f) & want, nil
	}
	err = fs.as(c, func() error {
		for bit := vfs.AccessExec; bit <= vfs.AccessRead; bit <<= 1 { // R_OK, W_OK and X_OK have these values
			if want&bit == 0 {
				continue
			}
			err := again0(func() error { return unix.Faccessat2(fd, "", uint32(bit), unix.AT_EMPTY_PATH|unix.AT_EACCESS) })
			switch {
			case err == nil:
				got |= bit
			case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS), errors.Is(err, unix.ETXTBSY):
			default:
				return fail(err)
			}
		}
		return nil
	})
	return got, err
}

// accessByMode stands in for the kernel where it has no faccessat2 (Linux 5.8), or a
// container forbids it. Where there is an access control list, nobody but the owner may do
// anything: the mode's group bits are the most that anybody in it may do then, and not
// what the group may.
func (fs *linuxFS) accessByMode(c *vfs.Caller, fd int, f *found) vfs.Access {
	mode := vfs.Access(f.st.Mode)
	switch {
	case c.UID == 0:
		mode = vfs.AccessRead | vfs.AccessWrite
		if f.st.Mode&unix.S_IFMT == unix.S_IFDIR || f.st.Mode&0o111 != 0 {
			mode |= vfs.AccessExec
		}
	case c.UID == f.st.Uid:
		mode = vfs.Access(f.st.Mode >> 6)
	case fs.hasACL(fd, aclAccess):
		return 0
	case c.In(f.st.Gid):
		mode = vfs.Access(f.st.Mode >> 3)
	}
	return mode & 7
}

// canAccess reports whether the system reports what a thread's identity may do.
func canAccess(fd int) bool {
	return unix.Faccessat2(fd, "", unix.F_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS) == nil
}

// Access is that of a vfs.Checker.
func (fs *linuxFS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return 0, err
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return 0, err
	}
	defer d.done()
	var f found
	if err := f.statAt(d.fd, ""); err != nil {
		return 0, fail(err)
	}
	got, err := fs.access(fs.caller(ctx), d.fd, &f, want)
	if fs.opt.ReadOnly {
		got &^= vfs.AccessWrite
	}
	return got, err
}

// Access control lists of POSIX, as extended attributes.
const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default" // for what is made in a directory
)

// hasACL reports whether a file has an access control list that says more than its mode. It
// says so also where that can't be known.
func (fs *linuxFS) hasACL(fd int, which string) bool {
	_, err := unix.Fgetxattr(fd, which, nil)
	if errors.Is(err, unix.EBADF) && fs.procFD { // O_PATH
		_, err = unix.Getxattr(procPath(fd), which, nil)
	}
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP)
}
