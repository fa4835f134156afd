package nfsd_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
)

// gate lets writes wait in the middle of what they do.
type gate struct {
	vfs.FS
	in, out chan bool
}

func (g *gate) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	if string(p) == "wait" {
		g.in <- true
		<-g.out
	}
	return g.FS.Write(ctx, h, p, off, sync)
}

// A client that is told what a file was before its call takes all that has changed since
// for its own doing.
func TestAttributesFromBeforeAreThoseOfOneCallAlone(t *testing.T) {
	fs := &gate{FS: memfs.New(memfs.Options{Mode: 0o777}), in: make(chan bool), out: make(chan bool)}
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	h := b.create(alice, b.root, "file", 0o666)
	other := b.create(alice, b.root, "other", 0o666)

	before := b.getAttr(h)
	r := ok(b, b.write(alice, h, 0, "x"))
	if w := r.Wcc.Before; !w.Present || w.Size != before.Size || w.Mtime != before.Mtime || w.Ctime != before.Ctime || r.Wcc.After.Attr != b.getAttr(h) {
		t.Errorf("alone: %+v; it was %+v", r.Wcc, before)
	}
	slow := make(chan *nfs3.WriteRes)
	start := func() {
		go func() { slow <- b.write(alice, h, 0, "wait") }()
		<-fs.in
	}
	finish := func() *nfs3.WriteRes { fs.out <- true; return <-slow }

	start()
	if r := ok(b, b.write(alice, other, 0, "x")); !r.Wcc.After.Present {
		t.Errorf("of another file: %+v", r.Wcc)
	}
	if r := ok(b, b.write(bob, h, 0, "x")); r.Wcc.Before.Present || !r.Wcc.After.Present {
		t.Errorf("while another one writes: %+v", r.Wcc)
	}
	if r := finish(); r.Wcc.Before.Present {
		t.Errorf("while another one has written: %+v", r.Wcc)
	}
	start()
	if r := ok(b, b.setAttr(alice, h, nfs3.SetAttr{Mode: new(uint32(0o644))})); r.Wcc.Before.Present {
		t.Errorf("SETATTR while another one writes: %+v", r.Wcc)
	}
	if r := finish(); r.Wcc.Before.Present {
		t.Errorf("while another one has set attributes: %+v", r.Wcc)
	}
	start()
	ok(b, do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "file"), Attr: nfs3.SetAttr{Size: new(uint64(0))}}))
	if r := finish(); r.Wcc.Before.Present {
		t.Errorf("while another one has cut it: %+v", r.Wcc)
	}
	start()
	if r := finish(); !r.Wcc.Before.Present {
		t.Errorf("alone again: %+v", r.Wcc)
	}
	if r := ok(b, do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h})); !r.Wcc.Before.Present {
		t.Errorf("COMMIT alone: %+v", r.Wcc)
	}
}

// broken is a filesystem where one method fails.
type broken struct {
	vfs.FS
	what string
	err  error
}

func (f *broken) fails(what string) error {
	if f.what == what {
		return f.err
	}
	return nil
}

func (f *broken) GetAttr(ctx context.Context, h vfs.Handle) (vfs.Attr, error) {
	if err := f.fails("GetAttr"); err != nil {
		return vfs.Attr{}, err
	}
	return f.FS.GetAttr(ctx, h)
}

func (f *broken) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	if err := f.fails("SetAttr"); err != nil {
		return vfs.Attr{}, err
	}
	return f.FS.SetAttr(ctx, h, s)
}

func (f *broken) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	h, a, err := f.FS.Lookup(ctx, dir, name)
	switch {
	case f.what == "handle":
		h = vfs.Handle(strings.Repeat("x", vfs.MaxHandle+1))
	case f.what == "no handle":
		h = ""
	case f.fails("Lookup") != nil:
		return "", vfs.Attr{}, f.err
	}
	return h, a, err
}

func (f *broken) ReadLink(ctx context.Context, h vfs.Handle) (string, error) {
	if f.what == "target" {
		return strings.Repeat("x", nfs3.MaxPath+1), nil
	}
	if err := f.fails("ReadLink"); err != nil {
		return "", err
	}
	return f.FS.ReadLink(ctx, h)
}

func (f *broken) Read(ctx context.Context, h vfs.Handle, p []byte, off uint64) (int, bool, error) {
	if err := f.fails("Read"); err != nil {
		return 0, false, err
	}
	return f.FS.Read(ctx, h, p, off)
}

func (f *broken) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	if err := f.fails("Write"); err != nil {
		return err
	}
	return f.FS.Write(ctx, h, p, off, sync)
}

func (f *broken) ReadDir(ctx context.Context, dir vfs.Handle, cookie uint64, plus bool, add func(vfs.Entry) bool) (bool, error) {
	if err := f.fails("ReadDir"); err != nil {
		return false, err
	}
	return f.FS.ReadDir(ctx, dir, cookie, plus, func(e vfs.Entry) bool {
		if f.what == "attributes of entries" {
			e.Attr = nil
		}
		return add(e)
	})
}

func (f *broken) Stat(ctx context.Context, h vfs.Handle) (vfs.Stat, error) {
	if err := f.fails("Stat"); err != nil {
		return vfs.Stat{}, err
	}
	return f.FS.Stat(ctx, h)
}

func TestWhatTheFilesystemSaysIsPassedOn(t *testing.T) {
	fs := &broken{FS: memfs.New(memfs.Options{Mode: 0o777})}
	b := on(t, nfsd.Config{Now: time.Now}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	h := b.create(alice, b.root, "file", 0o6666)
	link := b.symlink(alice, b.root, "x")
	ok(b, b.write(root, h, 0, "data"))
	for err, want := range map[error]nfs3.Status{
		vfs.ErrStale: nfs3.ErrStale, vfs.ErrNotExist: nfs3.ErrNoEnt, vfs.ErrExist: nfs3.ErrExist, vfs.ErrNotOwner: nfs3.ErrPerm, vfs.ErrAccess: nfs3.ErrAcces,
		vfs.ErrNotDirectory: nfs3.ErrNotDir, vfs.ErrIsDirectory: nfs3.ErrIsDir, vfs.ErrNotEmpty: nfs3.ErrNotEmpty, vfs.ErrInvalid: nfs3.ErrInval,
		vfs.ErrNameTooLong: nfs3.ErrNameTooLong, vfs.ErrTooBig: nfs3.ErrFBig, vfs.ErrNoSpace: nfs3.ErrNoSpc, vfs.ErrQuota: nfs3.ErrDQuot, vfs.ErrReadOnly: nfs3.ErrROFS,
		vfs.ErrTooManyLinks: nfs3.ErrMLink, vfs.ErrCrossDevice: nfs3.ErrXDev, vfs.ErrNotSupported: nfs3.ErrNotSupp, vfs.ErrBadCookie: nfs3.ErrBadCookie,
		vfs.ErrIO: nfs3.ErrIO, vfs.ErrNoDevice: nfs3.ErrNXIO, vfs.ErrClosed: nfs3.ErrJukebox, context.Canceled: nfs3.ErrJukebox, context.DeadlineExceeded: nfs3.ErrJukebox,
		vfs.ErrTryLater: nfs3.ErrJukebox, strangeError{}: nfs3.ErrServerFault,
	} {
		fs.err = err
		for what, st := range map[string]func() nfs3.Result{
			"GetAttr": func() nfs3.Result {
				return do[nfs3.GetAttrRes](b, alice, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h})
			},
			"SetAttr": func() nfs3.Result { return b.setAttr(alice, h, nfs3.SetAttr{Mode: new(uint32(0o666))}) },
			"Lookup":  func() nfs3.Result { return b.lookup(alice, b.root, "file") },
			"ReadLink": func() nfs3.Result {
				return do[nfs3.ReadLinkRes](b, alice, nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: link})
			},
			"Read":  func() nfs3.Result { return b.read(alice, h, 0, 10) },
			"Write": func() nfs3.Result { return b.write(root, h, 0, "x") },
			"ReadDir": func() nfs3.Result {
				return do[nfs3.ReadDirRes](b, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: b.root, Count: 1024})
			},
			"Stat": func() nfs3.Result {
				return do[nfs3.FSStatRes](b, alice, nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: b.root})
			},
		} {
			fs.what = what
			b.want(what+" "+err.Error(), st(), want)
		}
		// Other ways to the same errors.
		fs.what = "SetAttr"
		b.want("WRITE that takes privileges away", b.write(bob, h, 0, "x"), want)
		fs.what = "GetAttr"
		b.want("CREATE in what can't be had", do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "x")}), want)
		b.want("WRITE to what can't be had", b.write(alice, h, 0, "x"), want)
		b.want("COMMIT of what can't be had", do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}), want)
		fs.what = "Lookup"
		b.want("READDIR without ..", do[nfs3.ReadDirRes](b, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: b.root, Count: 1024}), want)
		b.want("RENAME", do[nfs3.RenameRes](b, alice, nfs3.ProcRename, &nfs3.RenameArgs{From: at(b.root, "file"), To: at(b.root, "x")}), want)
		b.want("CREATE of what exists", do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "file")}), want)
		b.want("exclusive CREATE of what exists", do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "file"), Mode: nfs3.Exclusive}), want)
		var m nfs3.MountRes
		if cause := b.callMount(alice, nfs3.MountProcMnt, &nfs3.MountArgs{Path: "/tree/x"}, &m); cause != nil || m.Status == nfs3.MountOK || strings.HasPrefix(m.Status.String(), "mountstat3") {
			t.Errorf("MNT, where %v: %v, %v", err, m.Status, cause)
		}
	}
	fs.what = "handle"
	b.want("a handle that is too long", b.lookup(alice, b.root, "file"), nfs3.ErrIO)
	fs.what = "no handle"
	b.want("a handle that is none", b.lookup(alice, b.root, "file"), nfs3.ErrIO)
	fs.what = "target"
	b.want("a target that is too long", do[nfs3.ReadLinkRes](b, alice, nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: link}), nfs3.ErrNameTooLong)
	fs.what = "attributes of entries"
	for _, e := range b.listPlus(alice, b.root, 1024, 4096)[2:] {
		if e.Attr.Present || e.Handle.Present || e.FileID == 0 {
			t.Errorf("%+v", e)
		}
	}
}

type strangeError struct{}

func (strangeError) Error() string { return "strange" }
