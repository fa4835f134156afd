package nfsd

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// Modes of what is created without one: for the owner, who will set another.
const (
	newFileMode = 0o600
	newDirMode  = 0o700
)

// maker makes something in a directory.
type maker func(ctx context.Context, dir *object) (vfs.Handle, vfs.Attr, error)

// make lets something be made under a new name, and says in r what became of it.
func (s *Server) make(ctx context.Context, c *call, where *nfs3.NameArgs, r *nfs3.NewRes, do maker) error {
	g, err := s.changing(ctx, c, &where.Dir)
	if err != nil {
		return err
	}
	defer func() { r.Dir = g.done(ctx)[0] }()
	dir := &g.files[0]
	if err := dir.entry(where.Name, nfs3.ErrExist); err != nil {
		return err
	}
	if dir.x.Squash == SquashOthers && dir.cred.squashed && !dir.x.features.SetOwner { // it would be the user's
		return nfs3.ErrAcces
	}
	h, attr, err := do(dir.as(ctx), dir)
	if err != nil {
		return dir.noteLoss(err)
	}
	r.Attr = dir.present(&attr)
	if r.Object.Handle, err = s.handle(dir.x, h); err != nil {
		return err
	}
	r.Object.Present = true
	return nil
}

// initial returns the attributes of something new in a directory: the caller's, and the
// group of the directory if that is set-group-ID. What the client wants is granted if the
// caller could set it afterwards.
func (dir *object) initial(a *nfs3.SetAttr, t vfs.Type) vfs.SetAttr {
	c := &dir.cred
	uid, gid := c.uid, c.gid
	inherit := dir.attr.Mode&modeSetGID != 0
	if inherit {
		gid = dir.attr.GID
	}
	if a.UID != nil && c.root() {
		uid = *a.UID
	}
	if a.GID != nil && (c.root() || c.in(*a.GID)) {
		gid = *a.GID
	}
	set := vfs.SetAttr{}
	switch {
	case dir.x.features.Callers: // then the caller's user and group are what it has by itself
		if a.UID != nil && c.root() {
			set.UID = &uid
		}
		if a.GID != nil && gid == *a.GID {
			set.GID = &gid
		}
	case dir.x.features.SetOwner:
		set.UID, set.GID = &uid, &gid
	}
	if t == vfs.Regular {
		set.Size = a.Size
	}
	if t != vfs.Symlink && dir.x.features.SetMode {
		mode := uint32(newFileMode)
		if t == vfs.Directory {
			mode = newDirMode
		}
		if a.Mode != nil {
			mode = *a.Mode & modeAll
		}
		if t != vfs.Directory && !c.root() && !c.in(gid) {
			mode &^= modeSetGID
		}
		mode = c.grant(mode, nil)
		if !dir.x.features.SetOwner { // it belongs to whom the server is
			mode &^= modeSetUID | modeSetGID
		}
		if t == vfs.Directory && inherit {
			mode |= modeSetGID
		}
		set.Mode = &mode
	}
	now := dir.s.now()
	for _, v := range []struct {
		from nfs3.SetTime
		to   **time.Time
	}{{a.Atime, &set.Atime}, {a.Mtime, &set.Mtime}} {
		switch {
		case !dir.x.features.SetTime:
		case v.from.How == nfs3.SetToServerTime:
			*v.to = &now
		case v.from.How == nfs3.SetToClientTime && v.from.Time.Nanoseconds < 1e9:
			when := v.from.Time.Time()
			*v.to = &when
		}
	}
	return set
}

// create is CREATE (RFC 1813 §3.3.8).
func (s *Server) create(ctx context.Context, c *call, a *nfs3.CreateArgs, r *nfs3.NewRes) error {
	return s.make(ctx, c, &a.Where, r, func(ctx context.Context, dir *object) (vfs.Handle, vfs.Attr, error) {
		if a.Mode == nfs3.Exclusive {
			return dir.exclusive(ctx, a)
		}
		if a.Attr.Size != nil {
			if err := dir.fits(*a.Attr.Size); err != nil {
				return "", vfs.Attr{}, err
			}
		}
		h, attr, err := dir.x.FS.Create(ctx, dir.h, a.Where.Name, dir.initial(&a.Attr, vfs.Regular))
		if a.Mode == nfs3.Guarded || !errors.Is(err, vfs.ErrExist) {
			return h, attr, err
		}
		return dir.open(ctx, a.Where.Name, a.Attr.Size)
	})
}

// open returns a file that exists already, and sets its size.
func (dir *object) open(ctx context.Context, name string, size *uint64) (vfs.Handle, vfs.Attr, error) {
	h, attr, err := dir.x.FS.Lookup(ctx, dir.h, name)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	if attr.Type != vfs.Regular {
		return "", vfs.Attr{}, nfs3.ErrExist
	}
	if size == nil {
		return h, attr, nil
	}
	change := dir.s.changes.begin(h)
	defer change.end()
	file := object{s: dir.s, x: dir.x, cred: dir.cred, h: h, attr: attr}
	if err := file.set(ctx, &nfs3.SetAttr{Size: size}); err != nil {
		return "", vfs.Attr{}, err
	}
	attr, err = dir.x.FS.GetAttr(ctx, h)
	return h, attr, err
}

// exclusive makes a file that keeps the verifier in its times, where it survives the server;
// the client sets these afterwards. A file that has the verifier is the one that an earlier
// call made, whose reply was lost.
func (dir *object) exclusive(ctx context.Context, a *nfs3.CreateArgs) (vfs.Handle, vfs.Attr, error) {
	if !dir.x.features.SetTime {
		return "", vfs.Attr{}, nfs3.ErrNotSupp
	}
	mark := dir.s.exclusiveTime(a.Verifier, dir.cred.uid, dir.x.features.TimeDelta)
	set := dir.initial(&nfs3.SetAttr{}, vfs.Regular)
	set.Atime, set.Mtime = &mark, &mark
	h, attr, err := dir.x.FS.Create(ctx, dir.h, a.Where.Name, set)
	if !errors.Is(err, vfs.ErrExist) {
		return h, attr, err
	}
	h, attr, err = dir.x.FS.Lookup(ctx, dir.h, a.Where.Name)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	if attr.Type != vfs.Regular || attr.Size != 0 || !isMark(attr.Mtime, mark) {
		return "", vfs.Attr{}, nfs3.ErrExist
	}
	return h, attr, nil
}

// exclusiveTime returns the time of modification that stands for a caller's verifier. It
// has all of it, because not all filesystems keep a time of access. It takes the server's
// key and the caller, so that another user who guesses the verifier can't make a file that
// passes for the caller's.
func (s *Server) exclusiveTime(v nfs3.Verifier, uid uint32, delta time.Duration) time.Time {
	var p [handleHead + len(v) + 4]byte
	p[0] = 'E' // no handle begins with it
	copy(p[handleHead:], v[:])
	binary.BigEndian.PutUint32(p[handleHead+len(v):], uid)
	c := s.check(p[:])
	n := binary.BigEndian.Uint64(c[:])
	sec, micro := n>>33, n%1e6 // 31 bits: not all filesystems have times after 2038
	if delta > time.Microsecond {
		micro = 0
	}
	return time.Unix(int64(sec), int64(micro)*1000)
}

// isMark reports whether a file has the time that it was made with. A filesystem may keep
// whole seconds only.
func isMark(t, mark time.Time) bool {
	return t.Unix() == mark.Unix() && (t.Nanosecond() == 0 || t.Nanosecond() == mark.Nanosecond())
}

// mkdir is MKDIR (§3.3.9).
func (s *Server) mkdir(ctx context.Context, c *call, a *nfs3.MkdirArgs, r *nfs3.NewRes) error {
	return s.make(ctx, c, &a.Where, r, func(ctx context.Context, dir *object) (vfs.Handle, vfs.Attr, error) {
		return dir.x.FS.Mkdir(ctx, dir.h, a.Where.Name, dir.initial(&a.Attr, vfs.Directory))
	})
}

// symlink is SYMLINK (§3.3.10). The path is the client's business: it may point anywhere,
// because the server never follows it.
func (s *Server) symlink(ctx context.Context, c *call, a *nfs3.SymlinkArgs, r *nfs3.NewRes) error {
	return s.make(ctx, c, &a.Where, r, func(ctx context.Context, dir *object) (vfs.Handle, vfs.Attr, error) {
		switch {
		case !dir.x.features.Symlinks:
			return "", vfs.Attr{}, nfs3.ErrNotSupp
		case a.Path == "" || strings.ContainsRune(a.Path, 0):
			return "", vfs.Attr{}, nfs3.ErrInval
		case len(a.Path) > nfs3.MaxPath:
			return "", vfs.Attr{}, nfs3.ErrNameTooLong
		}
		return dir.x.FS.Symlink(ctx, dir.h, a.Where.Name, a.Path, dir.initial(&a.Attr, vfs.Symlink))
	})
}

// mknod is MKNOD (§3.3.11). Devices are the superuser's.
func (s *Server) mknod(ctx context.Context, c *call, a *nfs3.MknodArgs, r *nfs3.NewRes) error {
	return s.make(ctx, c, &a.Where, r, func(ctx context.Context, dir *object) (vfs.Handle, vfs.Attr, error) {
		switch a.Type {
		case nfs3.Socket, nfs3.FIFO:
		case nfs3.CharDevice, nfs3.BlockDevice:
			if !dir.cred.root() {
				return "", vfs.Attr{}, nfs3.ErrPerm
			}
		case nfs3.Regular, nfs3.Directory, nfs3.Symlink:
			return "", vfs.Attr{}, nfs3.ErrBadType
		default:
			return "", vfs.Attr{}, nfs3.ErrBadType
		}
		t := vfs.Type(a.Type)
		return dir.x.FS.Mknod(ctx, dir.h, a.Where.Name, t, a.Major, a.Minor, dir.initial(&a.Attr, t))
	})
}
