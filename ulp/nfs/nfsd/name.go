package nfsd

import (
	"context"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
)

// remove is REMOVE (RFC 1813 §3.3.12). It removes no directories.
func (s *Server) remove(ctx context.Context, c *call, a *nfs3.NameArgs, r *nfs3.WccRes) error {
	return s.unname(ctx, c, a, r, vfs.FS.Remove)
}

// rmdir is RMDIR (§3.3.13).
func (s *Server) rmdir(ctx context.Context, c *call, a *nfs3.NameArgs, r *nfs3.WccRes) error {
	return s.unname(ctx, c, a, r, vfs.FS.Rmdir)
}

func (s *Server) unname(ctx context.Context, c *call, a *nfs3.NameArgs, r *nfs3.WccRes, do func(vfs.FS, context.Context, vfs.Handle, string) error) error {
	g, err := s.changing(ctx, c, &a.Dir)
	if err != nil {
		return err
	}
	defer func() { r.Wcc = g.done(ctx)[0] }()
	dir := &g.files[0]
	dots := nfs3.ErrInval
	if a.Name == ".." {
		dots = nfs3.ErrExist // §3.3.13
	}
	if err := dir.entry(a.Name, dots); err != nil {
		return err
	}
	ctx = dir.as(ctx)
	if err := dir.unstuck(ctx, a.Name); err != nil {
		return err
	}
	return dir.noteLoss(do(dir.x.FS, ctx, dir.h, a.Name))
}

// unstuck returns ErrPerm if the directory is sticky and the file not the caller's.
func (dir *object) unstuck(ctx context.Context, name string) error {
	if dir.attr.Mode&modeSticky == 0 || dir.cred.owns(&dir.attr) {
		return nil
	}
	_, attr, err := dir.x.FS.Lookup(ctx, dir.h, name)
	if err != nil {
		return err
	}
	if dir.cred.sticks(&dir.attr, &attr) {
		return nfs3.ErrPerm
	}
	return nil
}

// rename is RENAME (§3.3.14).
func (s *Server) rename(ctx context.Context, c *call, a *nfs3.RenameArgs, r *nfs3.RenameRes) error {
	g, err := s.changing(ctx, c, &a.From.Dir, &a.To.Dir)
	if err != nil {
		return err
	}
	defer func() {
		w := g.done(ctx)
		r.From, r.To = w[0], w[1]
	}()
	from, to := &g.files[0], &g.files[1]
	if err := from.entry(a.From.Name, nfs3.ErrInval); err != nil {
		return err
	}
	if err := to.entry(a.To.Name, nfs3.ErrInval); err != nil {
		return err
	}
	ctx = from.as(ctx)
	_, attr, err := from.x.FS.Lookup(ctx, from.h, a.From.Name)
	if err != nil {
		return err
	}
	if from.cred.sticks(&from.attr, &attr) {
		return nfs3.ErrPerm
	}
	if attr.Type == vfs.Directory && from.h != to.h && !from.x.features.Callers && !from.cred.may(&attr, modeWrite) { // its ".." changes
		return nfs3.ErrAcces
	}
	if err := to.unstuck(ctx, a.To.Name); err != nil && status(err) != nfs3.ErrNoEnt {
		return err
	}
	return from.noteLoss(from.x.FS.Rename(ctx, from.h, a.From.Name, to.h, a.To.Name))
}

// link is LINK (§3.3.15).
func (s *Server) link(ctx context.Context, c *call, a *nfs3.LinkArgs, r *nfs3.LinkRes) error {
	file, err := s.object(ctx, c, &a.File)
	if err != nil {
		return err
	}
	r.Attr = file.present(&file.attr)
	g, err := s.changing(ctx, c, &a.Link.Dir)
	if err != nil {
		return err
	}
	defer func() { r.Dir = g.done(ctx)[0] }()
	dir := &g.files[0]
	switch {
	case dir.x != file.x:
		return nfs3.ErrXDev
	case !dir.x.features.HardLinks:
		return nfs3.ErrNotSupp
	case file.attr.Type == vfs.Directory:
		return nfs3.ErrInval
	}
	if err := dir.entry(a.Link.Name, nfs3.ErrExist); err != nil {
		return err
	}
	if !dir.x.features.Callers && !linkable(&file) {
		return nfs3.ErrPerm
	}
	attr, err := dir.x.FS.Link(dir.as(ctx), file.h, dir.h, a.Link.Name)
	if err != nil {
		return dir.noteLoss(err)
	}
	r.Attr = file.present(&attr)
	return nil
}

// linkable reports whether the caller may give a file one more name: its owner may, and
// others who may read and write it, unless it runs with the rights of its owner. That is what
// Linux has as fs.protected_hardlinks.
func linkable(file *object) bool {
	return file.cred.owns(&file.attr) ||
		file.attr.Type == vfs.Regular && unprivileged(file.attr.Mode) == file.attr.Mode && file.cred.may(&file.attr, modeRead|modeWrite)
}
