package nfsd

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// mounts are what was mounted and not unmounted, the oldest first: a client that ends
// without unmounting stays, until there are too many.
type mounts struct {
	most int
	mu   sync.Mutex
	list []nfs3.Mount
}

func (m *mounts) add(n nfs3.Mount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(o nfs3.Mount) bool { return o == n })
	if len(m.list) >= m.most {
		m.list = slices.Delete(m.list, 0, 1)
	}
	m.list = append(m.list, n)
}

// remove forgets what a host has mounted, all of it if there is no directory.
func (m *mounts) remove(host, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = slices.DeleteFunc(m.list, func(o nfs3.Mount) bool { return o.Host == host && (dir == "" || o.Dir == dir) })
}

func (m *mounts) all() []nfs3.Mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// Mounts returns what clients have mounted and not unmounted, as far as the server
// remembers, the oldest first.
func (s *Server) Mounts() []nfs3.Mount { return s.mounts.all() }

// host is a client's name in the list of mounts.
func (c *call) host() string {
	if !c.remote.IsValid() {
		return "unknown"
	}
	return c.remote.String()
}

// mnt is MNT (RFC 1813 §5.2.1).
func (s *Server) mnt(ctx context.Context, c call, args *xdr.Decoder, res *xdr.Encoder) error {
	var a nfs3.MountArgs
	if err := a.Decode(args); err != nil {
		return err
	}
	if err := args.End(); err != nil {
		return err
	}
	r := nfs3.MountRes{Flavors: []uint32{uint32(oncrpc.AuthSys), uint32(oncrpc.AuthNone)}}
	h, err := s.mount(ctx, &c, a.Path)
	if r.Status = mountStatus(err); r.Status == nfs3.MountOK {
		r.Handle = h
	}
	s.log.Info("nfsd: mount", "client", c.host(), "path", a.Path, "status", r.Status.String())
	r.Encode(res)
	return nil
}

// mount returns the handle of a directory of an export: its root, or one below, on the
// way to which no symbolic link is followed.
func (s *Server) mount(ctx context.Context, c *call, p string) (nfs3.Handle, error) {
	x, rest := s.exports.Load().above(p)
	if x == nil {
		return nfs3.Handle{}, nfs3.ErrNoEnt
	}
	if !x.allows(c.remote) {
		return nfs3.Handle{}, nfs3.ErrAcces
	}
	cred, err := x.cred(c)
	if err != nil {
		return nfs3.Handle{}, err
	}
	o := object{s: s, x: x, cred: cred, h: x.FS.Root()}
	if err := o.load(ctx); err != nil {
		return nfs3.Handle{}, err
	}
	for name := range strings.SplitSeq(rest, "/") {
		switch name {
		case "":
			continue
		case ".", "..":
			return nfs3.Handle{}, nfs3.ErrInval
		}
		if err := o.directory(modeExec); err != nil {
			return nfs3.Handle{}, err
		}
		if err := o.name(name); err != nil {
			return nfs3.Handle{}, err
		}
		var err error
		if o.h, o.attr, err = x.FS.Lookup(o.as(ctx), o.h, name); err != nil {
			return nfs3.Handle{}, err
		}
	}
	if o.attr.Type != vfs.Directory {
		return nfs3.Handle{}, nfs3.ErrNotDir
	}
	h, err := s.handle(x, o.h)
	if err == nil {
		s.mounts.add(nfs3.Mount{Host: c.host(), Dir: tidy(p)})
	}
	return h, err
}

// tidy returns a path with single slashes, none of them at the end.
func tidy(p string) string {
	parts := slices.DeleteFunc(strings.Split(p, "/"), func(s string) bool { return s == "" })
	return "/" + strings.Join(parts, "/")
}

// above returns the export whose path is the longest that a path begins with, and what
// follows it.
func (e *exports) above(p string) (x *export, rest string) {
	if !strings.HasPrefix(p, "/") {
		return nil, ""
	}
	p = tidy(p)
	for at := p; ; {
		if x := e.paths[at]; x != nil {
			return x, strings.TrimPrefix(p, at)
		}
		if at == "/" {
			return nil, ""
		}
		if at = at[:strings.LastIndexByte(at, '/')]; at == "" {
			at = "/"
		}
	}
}

// mountStatus returns what MNT says of an error: those of its statuses that NFS has too,
// or a failure.
func mountStatus(err error) nfs3.MountStatus {
	switch st := status(err); st {
	case nfs3.OK, nfs3.ErrPerm, nfs3.ErrNoEnt, nfs3.ErrIO, nfs3.ErrAcces, nfs3.ErrNotDir, nfs3.ErrInval, nfs3.ErrNameTooLong, nfs3.ErrNotSupp:
		return nfs3.MountStatus(st)
	default:
		return nfs3.MountErrServerFault
	}
}

// dump is DUMP (§5.2.2).
func (s *Server) dump(_ context.Context, _ call, args *xdr.Decoder, res *xdr.Encoder) error {
	if err := args.End(); err != nil {
		return err
	}
	(&nfs3.DumpRes{Mounts: s.Mounts()}).Encode(res)
	return nil
}

// umnt is UMNT (§5.2.3).
func (s *Server) umnt(_ context.Context, c call, args *xdr.Decoder, _ *xdr.Encoder) error {
	var a nfs3.MountArgs
	if err := a.Decode(args); err != nil {
		return err
	}
	if err := args.End(); err != nil {
		return err
	}
	s.mounts.remove(c.host(), tidy(a.Path))
	return nil
}

// umntAll is UMNTALL (§5.2.4).
func (s *Server) umntAll(_ context.Context, c call, args *xdr.Decoder, _ *xdr.Encoder) error {
	if err := args.End(); err != nil {
		return err
	}
	s.mounts.remove(c.host(), "")
	return nil
}

// export is EXPORT (§5.2.5).
func (s *Server) export(_ context.Context, _ call, args *xdr.Decoder, res *xdr.Encoder) error {
	if err := args.End(); err != nil {
		return err
	}
	var r nfs3.ExportRes
	paths := s.exports.Load().paths
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		x := nfs3.Export{Dir: p}
		for _, a := range paths[p].Allowed {
			x.Groups = append(x.Groups, a.String())
		}
		r.Exports = append(r.Exports, x)
	}
	r.Encode(res)
	return nil
}

// mountProcedures returns those of MOUNT, but NULL.
func (s *Server) mountProcedures() map[nfs3.MountProc]procedure {
	return map[nfs3.MountProc]procedure{
		nfs3.MountProcMnt:     s.mnt,
		nfs3.MountProcDump:    s.dump,
		nfs3.MountProcUmnt:    s.umnt,
		nfs3.MountProcUmntAll: s.umntAll,
		nfs3.MountProcExport:  s.export,
	}
}
