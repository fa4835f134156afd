package nfsd

import (
	"context"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// getAttr is GETATTR (RFC 1813 §3.3.1). It needs no permission.
func (s *Server) getAttr(ctx context.Context, c *call, a *nfs3.HandleArgs, r *nfs3.GetAttrRes) error {
	o, err := s.object(ctx, c, &a.Handle)
	if err == nil {
		r.Attr = o.x.attr(&o.attr)
	}
	return err
}

// lookup is LOOKUP (§3.3.3).
func (s *Server) lookup(ctx context.Context, c *call, a *nfs3.NameArgs, r *nfs3.LookupRes) error {
	dir, err := s.object(ctx, c, &a.Dir)
	if err != nil {
		return err
	}
	r.Dir = dir.present(&dir.attr)
	if err := dir.directory(modeExec); err != nil {
		return err
	}
	ctx = dir.as(ctx)
	if err := dir.name(a.Name); err != nil {
		return err
	}
	if a.Name == "." {
		switch has, err := dir.access(ctx); {
		case err != nil:
			return err
		case has&vfs.AccessExec == 0:
			return nfs3.ErrAcces
		}
		r.Object, r.Attr = a.Dir, r.Dir
		return nil
	}
	h, attr, err := dir.x.FS.Lookup(ctx, dir.h, a.Name)
	if err != nil {
		return err
	}
	r.Attr = dir.present(&attr)
	r.Object, err = s.handle(dir.x, h)
	return err
}

// access is ACCESS (§3.3.4): what the mode says, and nothing of what owners may besides
// (§4.4).
func (s *Server) access(ctx context.Context, c *call, a *nfs3.AccessArgs, r *nfs3.AccessRes) error {
	o, err := s.object(ctx, c, &a.Object)
	if err != nil {
		return err
	}
	r.Attr = o.present(&o.attr)
	has, err := o.access(ctx)
	if err != nil {
		return err
	}
	var may uint32
	if has&vfs.AccessRead != 0 {
		may |= nfs3.AccessRead
	}
	writes := uint32(nfs3.AccessModify | nfs3.AccessExtend)
	search := uint32(nfs3.AccessExecute)
	if o.attr.Type == vfs.Directory {
		writes |= nfs3.AccessDelete
		search = nfs3.AccessLookup
	}
	if !o.x.readOnly() && has&vfs.AccessWrite != 0 {
		may |= writes
	}
	if has&vfs.AccessExec != 0 {
		may |= search
	}
	r.Access = may & a.Access
	return nil
}

// access returns what the caller may do, but for what only owners may.
func (o *object) access(ctx context.Context) (has vfs.Access, err error) {
	if fs, ok := o.x.FS.(vfs.Checker); ok && o.x.features.Callers {
		return fs.Access(o.as(ctx), o.h, vfs.AccessRead|vfs.AccessWrite|vfs.AccessExec)
	}
	for bit := vfs.AccessExec; bit <= vfs.AccessRead; bit <<= 1 {
		if o.cred.may(&o.attr, uint32(bit)) {
			has |= bit
		}
	}
	return has, nil
}

// readLink is READLINK (§3.3.5).
func (s *Server) readLink(ctx context.Context, c *call, a *nfs3.HandleArgs, r *nfs3.ReadLinkRes) error {
	o, err := s.object(ctx, c, &a.Handle)
	if err != nil {
		return err
	}
	r.Attr = o.present(&o.attr)
	if o.attr.Type != vfs.Symlink {
		return nfs3.ErrInval
	}
	target, err := o.x.FS.ReadLink(ctx, o.h)
	if err != nil {
		return err
	}
	if len(target) > nfs3.MaxPath { // which no client could decode
		return nfs3.ErrNameTooLong
	}
	r.Path = c.exchange.Bulk(len(target))
	copy(r.Path, target)
	return nil
}

// setAttr is SETATTR (§3.3.2).
func (s *Server) setAttr(ctx context.Context, c *call, a *nfs3.SetAttrArgs, r *nfs3.WccRes) error {
	g, err := s.changing(ctx, c, &a.Object)
	if err != nil {
		return err
	}
	defer func() { r.Wcc = g.done(ctx)[0] }()
	o := &g.files[0]
	if a.Guard != nil && *a.Guard != nfs3.TimeOf(o.attr.Ctime) {
		return nfs3.ErrNotSync
	}
	if err := o.changeable(); err != nil {
		return err
	}
	return o.set(ctx, &a.Attr)
}

// set changes attributes, if the caller may.
func (o *object) set(ctx context.Context, a *nfs3.SetAttr) error {
	set, err := o.settable(a)
	if err != nil {
		return err
	}
	if set == (vfs.SetAttr{}) {
		return nil
	}
	return o.setAttrs(o.as(ctx), set)
}

// settable returns what is to be set, if the caller may set it: the owner the mode, the
// times, and the group to one of their own; the superuser the owner; and who may write
// the file its size and the times to now. What makes a program privileged does not outlive
// a new owner or new content.
func (o *object) settable(a *nfs3.SetAttr) (set vfs.SetAttr, err error) {
	if a.Size != nil {
		switch {
		case o.attr.Type == vfs.Directory:
			return set, nfs3.ErrIsDir
		case o.attr.Type != vfs.Regular:
			return set, nfs3.ErrInval
		case !o.x.features.Callers && !o.cred.mayWrite(&o.attr):
			return set, nfs3.ErrAcces
		}
		if err := o.fits(*a.Size); err != nil {
			return set, err
		}
		set.Size = a.Size
	}
	owner, err := o.newOwner(a, &set)
	if err != nil {
		return set, err
	}
	mode := o.attr.Mode & modeAll
	if a.Mode != nil {
		if !o.cred.owns(&o.attr) {
			return set, nfs3.ErrPerm
		}
		gid := o.attr.GID
		if a.GID != nil {
			gid = *a.GID
		}
		if mode = *a.Mode & modeAll; !o.cred.root() && !o.cred.in(gid) {
			mode &^= modeSetGID
		}
		mode = o.cred.grant(mode, &o.attr)
	}
	// A filesystem that knows callers does that by itself: not all who may write a file may
	// set its mode.
	strip := owner || a.Size != nil && a.Mode == nil && !o.cred.root() && !o.x.features.Callers
	if o.attr.Type != vfs.Directory && strip {
		mode = unprivileged(mode)
	}
	switch {
	case o.x.features.SetMode && (a.Mode != nil || mode != o.attr.Mode&modeAll):
		set.Mode = &mode
	case a.Mode != nil && mode != o.attr.Mode&modeAll:
		return set, nfs3.ErrNotSupp
	}
	now := o.s.now()
	if set.Atime, err = o.time(a.Atime, &now); err != nil {
		return set, err
	}
	set.Mtime, err = o.time(a.Mtime, &now)
	set.Now = (set.Atime == nil || set.Atime == &now) && (set.Mtime == nil || set.Mtime == &now) && (set.Atime != nil || set.Mtime != nil)
	return set, err
}

// newOwner fills in owner and group, and reports whether they are set.
func (o *object) newOwner(a *nfs3.SetAttr, set *vfs.SetAttr) (bool, error) {
	if a.UID == nil && a.GID == nil {
		return false, nil
	}
	other := a.UID != nil && *a.UID != o.attr.UID
	otherGroup := a.GID != nil && *a.GID != o.attr.GID
	switch {
	case !o.cred.owns(&o.attr), !o.cred.root() && (other || otherGroup && !o.cred.in(*a.GID)):
		return false, nfs3.ErrPerm
	case o.x.features.SetOwner:
		set.UID, set.GID = a.UID, a.GID
	case other || otherGroup:
		return false, nfs3.ErrNotSupp
	}
	return true, nil
}

// time returns to what a time is to be set, if the caller may set it to that.
func (o *object) time(t nfs3.SetTime, now *time.Time) (*time.Time, error) {
	switch {
	case t.How == nfs3.DontChange:
		return nil, nil
	case t.How == nfs3.SetToServerTime:
		switch {
		case !o.x.features.Callers && !o.cred.mayWrite(&o.attr):
			return nil, nfs3.ErrAcces
		case !o.x.features.SetTime: // clients ask for it when they cut files, whose time changes in any case
			return nil, nil
		}
		return now, nil
	case !o.cred.owns(&o.attr):
		return nil, nfs3.ErrPerm
	case !o.x.features.SetTime:
		return nil, nfs3.ErrInval
	case t.Time.Nanoseconds >= 1e9:
		return nil, nfs3.ErrInval
	}
	when := t.Time.Time()
	return &when, nil
}

// fits returns ErrFBig if a file can't become that large.
func (o *object) fits(size uint64) error {
	if most := o.x.features.MaxFileSize; size > 1<<63-1 || most > 0 && size > most {
		return nfs3.ErrFBig
	}
	return nil
}
