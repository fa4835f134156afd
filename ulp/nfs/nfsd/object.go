package nfsd

import (
	"context"
	"net/netip"
	"strings"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/oncrpc"
)

// A call is who asks for a procedure.
type call struct {
	sys      *oncrpc.Sys // nil for anonymous callers
	remote   netip.Addr
	peer     *peer
	exchange *oncrpc.Exchange
}

// An object is a file that a call names, in an export that the caller may use.
type object struct {
	s    *Server
	x    *export
	cred cred
	h    vfs.Handle
	attr vfs.Attr // as it was when the call came
}

// named returns the object without its attributes.
func (s *Server) named(c *call, h *nfs3.Handle) (object, error) {
	x, file, err := s.file(h)
	if err != nil {
		return object{}, err
	}
	if !x.allows(c.remote) {
		return object{}, nfs3.ErrAcces
	}
	cred, err := x.cred(c)
	if err != nil {
		return object{}, err
	}
	return object{s: s, x: x, cred: cred, h: file}, nil
}

// object returns the object that a handle names.
func (s *Server) object(ctx context.Context, c *call, h *nfs3.Handle) (object, error) {
	o, err := s.named(c, h)
	if err == nil {
		err = o.load(ctx)
	}
	return o, err
}

// as returns a context in which the filesystem acts for the caller, if it can.
func (o *object) as(ctx context.Context) context.Context {
	if !o.x.features.Callers {
		return ctx
	}
	return vfs.WithCaller(ctx, vfs.Caller{UID: o.cred.uid, GID: o.cred.gid, Groups: o.cred.groups})
}

// may reports whether the caller may do all that want has. A filesystem that knows callers
// is asked when the call is carried out, and says no itself.
func (o *object) may(want uint32) bool {
	return o.x.features.Callers || o.cred.may(&o.attr, want)
}

// granted returns ErrAcces unless the caller may do one of want with data, or is the owner.
// It is for calls that do not get to the filesystem, which else would say it.
func (o *object) granted(ctx context.Context, want vfs.Access) error {
	fs, ok := o.x.FS.(vfs.Checker)
	if !ok || !o.x.features.Callers || o.cred.owns(&o.attr) {
		return nil
	}
	got, err := fs.Access(o.as(ctx), o.h, want)
	if err == nil && got == 0 {
		err = nfs3.ErrAcces
	}
	return err
}

// load gets the attributes.
func (o *object) load(ctx context.Context) (err error) {
	o.attr, err = o.x.FS.GetAttr(ctx, o.h)
	return err
}

// post returns the attributes as they are now, if they can be had.
func (o *object) post(ctx context.Context) nfs3.PostOpAttr {
	a, err := o.x.FS.GetAttr(ctx, o.h)
	if err != nil {
		return nfs3.PostOpAttr{}
	}
	return o.present(&a)
}

// present returns attributes as the client gets them.
func (o *object) present(a *vfs.Attr) nfs3.PostOpAttr {
	return nfs3.PostOpAttr{Present: true, Attr: o.x.attr(a)}
}

func (x *export) attr(a *vfs.Attr) nfs3.Attr {
	return nfs3.Attr{
		Type: nfs3.FileType(a.Type), Mode: a.Mode & modeAll, Links: a.Links, UID: a.UID, GID: a.GID, Size: a.Size, Used: a.Used,
		Major: a.Major, Minor: a.Minor, FSID: uint64(x.number), FileID: a.FileID,
		Atime: nfs3.TimeOf(a.Atime), Mtime: nfs3.TimeOf(a.Mtime), Ctime: nfs3.TimeOf(a.Ctime),
	}
}

// changeable returns ErrROFS if nothing may be changed.
func (o *object) changeable() error {
	if o.x.readOnly() {
		return nfs3.ErrROFS
	}
	return nil
}

// regular returns ErrInval unless the object is a regular file, as READ, WRITE and COMMIT
// say of others, directories included (RFC 1813 §3.3.6, §3.3.7).
func (o *object) regular() error {
	if o.attr.Type != vfs.Regular {
		return nfs3.ErrInval
	}
	return nil
}

// directory returns ErrNotDir unless the object is a directory, and ErrAcces unless the
// caller may use it as want says.
func (o *object) directory(want uint32) error {
	switch {
	case o.attr.Type != vfs.Directory:
		return nfs3.ErrNotDir
	case !o.may(want):
		return nfs3.ErrAcces
	}
	return nil
}

// name checks a name in a directory: "" and what no name can hold is ErrAcces (RFC 1813
// §3.2), and so much too long ErrNameTooLong.
func (o *object) name(name string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "/\x00"):
		return nfs3.ErrAcces
	case o.x.features.MaxName > 0 && len(name) > o.x.features.MaxName:
		return nfs3.ErrNameTooLong
	}
	return nil
}

// entry checks that the caller may change what the directory has under a name, and says
// dots of "." and "..".
func (o *object) entry(name string, dots nfs3.Status) error {
	if o.attr.Type != vfs.Directory {
		return nfs3.ErrNotDir
	}
	if err := o.name(name); err != nil {
		return err
	}
	if name == "." || name == ".." {
		return dots
	}
	if err := o.changeable(); err != nil {
		return err
	}
	return o.directory(modeWrite | modeExec)
}
