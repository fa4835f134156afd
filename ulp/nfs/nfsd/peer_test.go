package nfsd_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// A transport carries one call, header and all, and returns the results, or the error of
// the server of calls.
type transport func(ctx context.Context, v *oncrpc.Invocation) error

// A bed is a server with one export of a filesystem, /tree, and a way to call it.
type bed struct {
	testing.TB
	server *nfsd.Server
	rpc    *oncrpc.Server
	fs     vfs.FS
	send   transport
	root   nfs3.Handle
}

// bare makes a bed without exports. Servers of which a test does not say the key have the
// same; one that is empty stands for none.
func bare(t testing.TB, cfg nfsd.Config) *bed {
	t.Helper()
	if cfg.Key == nil {
		cfg.Key = []byte("of the tests")
	}
	s, err := nfsd.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rpc := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(rpc); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rpc.Close() })
	b := &bed{TB: t, server: s, rpc: rpc}
	b.send = b.from("192.0.2.1:700")
	return b
}

// on makes a bed with an export: of an empty tree in memory that everybody may write if e
// has no filesystem.
func on(t testing.TB, cfg nfsd.Config, e nfsd.Export) *bed {
	t.Helper()
	b := bare(t, cfg)
	if e.FS == nil {
		e.FS = empty(t)
		t.Cleanup(func() { _ = e.FS.Close() })
	}
	if e.Path == "" {
		e.Path = "/tree"
	}
	if err := b.server.AddExport(e); err != nil {
		t.Fatal(err)
	}
	b.fs = e.FS
	b.root = b.mount(e.Path)
	return b
}

// empty returns an empty tree that everybody may write. Tests replace it.
var empty = func(testing.TB) vfs.FS { return memfs.New(memfs.Options{Mode: 0o777}) }

func tree(t testing.TB) *bed {
	t.Helper()
	return on(t, nfsd.Config{}, nfsd.Export{Squash: nfsd.SquashNone})
}

// xid is that of the last call: servers know a call again by it.
var xid atomic.Uint32

// from returns a transport of calls that come from an address, with no wire in between.
func (b *bed) from(addr string) transport {
	remote := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))
	return b.over(oncrpc.Exchange{Remote: remote})
}

// over returns a transport of calls of a connection.
func (b *bed) over(conn oncrpc.Exchange) transport {
	return func(ctx context.Context, v *oncrpc.Invocation) error {
		var call, reply xdr.Encoder
		head := oncrpc.Call{XID: xid.Add(1), Program: v.Program, Version: v.Version, Procedure: v.Procedure, Cred: v.Cred}
		if err := head.Encode(&call); err != nil {
			return err
		}
		v.Args(&call)
		x := conn
		x.Call, x.Netid = &oncrpc.Message{Stream: call.AppendTo(nil)}, "tcp"
		defer x.Return()
		if err := b.rpc.Serve(ctx, &x, &reply); err != nil {
			return err
		}
		d := xdr.NewDecoder(reply.AppendTo(nil))
		var r oncrpc.Reply
		if err := r.Decode(d); err != nil {
			return err
		}
		if r.Err != nil {
			return r.Err
		}
		if n := d.Left(); n > v.ResultsMost {
			b.Errorf("procedure %d of program %d: results of %d bytes; there were to be %d", v.Procedure, v.Program, n, v.ResultsMost)
		}
		if err := v.Results(d); err != nil {
			return err
		}
		return d.End()
	}
}

// call calls any procedure.
func (b *bed) call(who *user, program, version, proc uint32, args, res nfs3.Codec, most int) error {
	v := oncrpc.Invocation{
		Program: program, Version: version, Procedure: proc, ResultsMost: most,
		Args: args.Encode, Results: func(d *xdr.Decoder) error {
			err := res.Decode(d)
			if r, ok := res.(*nfs3.ReadRes); ok {
				r.Data = bytes.Clone(r.Data) // the reply's memory is another call's when this returns
			}
			return err
		},
	}
	if who != nil {
		cred, err := (&oncrpc.Sys{Machine: "client", UID: who.uid, GID: who.gid, Groups: who.groups}).Auth()
		if err != nil {
			return err
		}
		v.Cred = cred
	}
	return b.send(context.Background(), &v)
}

// mount returns the handle of an export.
func (b *bed) mount(path string) nfs3.Handle {
	b.Helper()
	var r nfs3.MountRes
	if err := b.callMount(root, nfs3.MountProcMnt, &nfs3.MountArgs{Path: path}, &r); err != nil || r.Status != nfs3.MountOK {
		b.Fatalf("mount %s: %v, %v", path, err, r.Status)
	}
	return r.Handle
}

func (b *bed) callMount(who *user, p nfs3.MountProc, args, res nfs3.Codec) error {
	return b.call(who, nfs3.MountProgram, nfs3.MountVersion, uint32(p), args, res, p.MaxReply())
}

// A user calls the server.
type user struct {
	uid, gid uint32
	groups   []uint32
}

var (
	root  = &user{}
	alice = &user{uid: 1000, gid: 100, groups: []uint32{101, 102}}
	bob   = &user{uid: 1001, gid: 200}
)

// do carries out a procedure of NFS, whatever its status.
func do[R any, PR interface {
	*R
	nfs3.Result
}](b *bed, who *user, p nfs3.Proc, args nfs3.Codec) PR {
	b.Helper()
	r := PR(new(R))
	most := p.MaxReply(args)
	switch a := args.(type) {
	case *nfs3.ReadArgs:
		most += int(a.Count)&^3 + 4
	case *nfs3.HandleArgs:
		most += nfs3.MaxPath
	}
	if err := b.call(who, nfs3.Program, nfs3.Version, uint32(p), args, r, most); err != nil {
		b.Fatalf("%v: %v", p, err)
	}
	return r
}

// want checks a status.
func (b *bed) want(what string, r nfs3.Result, want nfs3.Status) {
	b.Helper()
	if got := *r.Stat(); got != want {
		b.Errorf("%s: %v; want %v", what, got.String(), want.String())
	}
}

// ok ends the test unless the procedure has succeeded.
func ok[R nfs3.Result](b *bed, r R) R {
	b.Helper()
	if st := *r.Stat(); st != nfs3.OK {
		b.Fatal(st)
	}
	return r
}

func at(dir nfs3.Handle, name string) nfs3.NameArgs { return nfs3.NameArgs{Dir: dir, Name: name} }

func (b *bed) getAttr(h nfs3.Handle) nfs3.Attr {
	b.Helper()
	return ok(b, do[nfs3.GetAttrRes](b, root, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h})).Attr
}

func (b *bed) lookup(who *user, dir nfs3.Handle, name string) *nfs3.LookupRes {
	b.Helper()
	return do[nfs3.LookupRes](b, who, nfs3.ProcLookup, new(at(dir, name)))
}

func (b *bed) create(who *user, dir nfs3.Handle, name string, mode uint32) nfs3.Handle {
	b.Helper()
	r := do[nfs3.NewRes](b, who, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(dir, name), Mode: nfs3.Guarded, Attr: nfs3.SetAttr{Mode: &mode}})
	return ok(b, r).Object.Handle
}

func (b *bed) mkdir(who *user, dir nfs3.Handle, name string, mode uint32) nfs3.Handle {
	b.Helper()
	r := do[nfs3.NewRes](b, who, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at(dir, name), Attr: nfs3.SetAttr{Mode: &mode}})
	return ok(b, r).Object.Handle
}

// symlink makes a symbolic link of the name "link".
func (b *bed) symlink(who *user, dir nfs3.Handle, target string) nfs3.Handle {
	b.Helper()
	return ok(b, do[nfs3.NewRes](b, who, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at(dir, "link"), Path: target})).Object.Handle
}

func (b *bed) write(who *user, h nfs3.Handle, off uint64, data string) *nfs3.WriteRes {
	b.Helper()
	return do[nfs3.WriteRes](b, who, nfs3.ProcWrite, &nfs3.WriteArgs{File: h, Offset: off, Data: []byte(data)})
}

func (b *bed) read(who *user, h nfs3.Handle, off uint64, n uint32) *nfs3.ReadRes {
	b.Helper()
	return do[nfs3.ReadRes](b, who, nfs3.ProcRead, &nfs3.ReadArgs{File: h, Offset: off, Count: n})
}

func (b *bed) setAttr(who *user, h nfs3.Handle, a nfs3.SetAttr) *nfs3.WccRes {
	b.Helper()
	return do[nfs3.WccRes](b, who, nfs3.ProcSetAttr, &nfs3.SetAttrArgs{Object: h, Attr: a})
}
