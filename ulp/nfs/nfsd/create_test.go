package nfsd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/billyfs"
	"urnic/ulp/nfs/vfs/memfs"
)

// makers are the procedures that make something under a name, and LINK.
func makers(b *bed, who *user, file nfs3.Handle) map[string]func(nfs3.NameArgs) nfs3.Status {
	created := func(p nfs3.Proc, args nfs3.Codec) nfs3.Status { return do[nfs3.NewRes](b, who, p, args).Status }
	return map[string]func(nfs3.NameArgs) nfs3.Status{
		"CREATE": func(at nfs3.NameArgs) nfs3.Status {
			return created(nfs3.ProcCreate, &nfs3.CreateArgs{Where: at, Mode: nfs3.Guarded})
		},
		"CREATE exclusive": func(at nfs3.NameArgs) nfs3.Status {
			return created(nfs3.ProcCreate, &nfs3.CreateArgs{Where: at, Mode: nfs3.Exclusive, Verifier: nfs3.Verifier{1}})
		},
		"MKDIR": func(at nfs3.NameArgs) nfs3.Status { return created(nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at}) },
		"SYMLINK": func(at nfs3.NameArgs) nfs3.Status {
			return created(nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at, Path: "x"})
		},
		"MKNOD": func(at nfs3.NameArgs) nfs3.Status {
			return created(nfs3.ProcMknod, &nfs3.MknodArgs{Where: at, Type: nfs3.FIFO})
		},
		"LINK": func(at nfs3.NameArgs) nfs3.Status {
			return do[nfs3.LinkRes](b, who, nfs3.ProcLink, &nfs3.LinkArgs{File: file, Link: at}).Status
		},
	}
}

func TestNewNamesAreChecked(t *testing.T) {
	b := tree(t)
	file := b.create(alice, b.root, "file", 0o666)
	b.symlink(alice, b.root, "nowhere")
	dirs := map[string]nfs3.Handle{
		"root": b.root, "file": file, "alice's": b.mkdir(alice, b.root, "a", 0o755), "no search": b.mkdir(alice, b.root, "b", 0o776), "no writing": b.mkdir(alice, b.root, "c", 0o775),
	}
	gone := b.mkdir(alice, b.root, "gone", 0o777)
	ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRmdir, new(at(b.root, "gone"))))
	dirs["gone"] = gone
	for _, tc := range []struct {
		dir, name string
		want      nfs3.Status
	}{
		{"root", "", nfs3.ErrAcces},
		{"root", "a/b", nfs3.ErrAcces},
		{"root", "../x", nfs3.ErrAcces},
		{"root", "/etc/passwd", nfs3.ErrAcces},
		{"root", "x\x00y", nfs3.ErrAcces},
		{"root", ".", nfs3.ErrExist},
		{"root", "..", nfs3.ErrExist},
		{"root", strings.Repeat("x", 256), nfs3.ErrNameTooLong},
		{"root", strings.Repeat("x", nfs3.MaxName), nfs3.ErrNameTooLong},
		{"root", "file", nfs3.ErrExist},
		{"root", "link", nfs3.ErrExist}, // and "nowhere" is not made
		{"root", "a", nfs3.ErrExist},
		{"file", "x", nfs3.ErrNotDir},
		{"alice's", "x", nfs3.ErrAcces},
		{"no search", "x", nfs3.ErrAcces},
		{"no writing", "x", nfs3.ErrAcces},
		{"gone", "x", nfs3.ErrStale},
	} {
		for p, make := range makers(b, bob, file) {
			if got := make(at(dirs[tc.dir], tc.name)); got != tc.want {
				t.Errorf("%s of %.20q in %s: %v; want %v", p, tc.name, tc.dir, got.String(), tc.want.String())
			}
		}
	}
	b.want("what the link says", b.lookup(root, b.root, "nowhere"), nfs3.ErrNoEnt)
	for p, make := range makers(b, bob, file) {
		if got := make(at(b.root, "new by "+p)); got != nfs3.OK {
			t.Errorf("%s: %v", p, got.String())
		}
	}
	ro := on(t, nfsd.Config{}, nfsd.Export{FS: b.fs, ReadOnly: true, Squash: nfsd.SquashNone})
	roFile := ok(ro, ro.lookup(root, ro.root, "file")).Object
	for p, make := range makers(ro, root, roFile) {
		if got := make(at(ro.root, "x")); got != nfs3.ErrROFS {
			t.Errorf("%s in an export that is read-only: %v", p, got.String())
		}
	}
}

func TestWhatIsNewIsItsMakers(t *testing.T) {
	b := tree(t)
	plain := b.mkdir(root, b.root, "plain", 0o777)
	group := b.mkdir(root, b.root, "group", 0o777)
	ok(b, b.setAttr(root, group, nfs3.SetAttr{GID: new(uint32(500)), Mode: new(uint32(0o2777))}))
	then := nfs3.SetTime{How: nfs3.SetToClientTime, Time: nfs3.Time{Seconds: 12345, Nanoseconds: 678}}
	for _, tc := range []struct {
		name           string
		who            *user
		dir            nfs3.Handle
		set            nfs3.SetAttr
		mode, uid, gid uint32
		dirMode        uint32
	}{
		{"a user's", alice, plain, nfs3.SetAttr{Mode: new(uint32(0o640))}, 0o640, 1000, 100, 0o640},
		{"without a mode", alice, plain, nfs3.SetAttr{}, 0o600, 1000, 100, 0o700},
		{"an anonymous caller's", nil, plain, nfs3.SetAttr{Mode: new(uint32(0o640))}, 0o640, nfsd.Nobody, nfsd.Nobody, 0o640},
		{"for somebody else", alice, plain, nfs3.SetAttr{Mode: new(uint32(0o644)), UID: new(uint32(7)), GID: new(uint32(8))}, 0o644, 1000, 100, 0o644},
		{"for an own group", alice, plain, nfs3.SetAttr{Mode: new(uint32(0o2644)), GID: new(uint32(101))}, 0o2644, 1000, 101, 0o2644},
		{"by the superuser for somebody else", root, plain, nfs3.SetAttr{Mode: new(uint32(0o644)), UID: new(uint32(7)), GID: new(uint32(8))}, 0o644, 7, 8, 0o644},
		{"in a set-group-ID directory", alice, group, nfs3.SetAttr{Mode: new(uint32(0o755))}, 0o755, 1000, 500, 0o2755},
		{"set-group-ID of another group", alice, group, nfs3.SetAttr{Mode: new(uint32(0o2755))}, 0o755, 1000, 500, 0o2755},
		{"with a time", alice, plain, nfs3.SetAttr{Mode: new(uint32(0o644)), Mtime: then, Atime: then}, 0o644, 1000, 100, 0o644},
		{"now", alice, plain, nfs3.SetAttr{Mode: new(uint32(0o644)), Mtime: nfs3.SetTime{How: nfs3.SetToServerTime}}, 0o644, 1000, 100, 0o644},
	} {
		check := func(p string, r *nfs3.NewRes, mode uint32, kind nfs3.FileType) {
			t.Helper()
			if r.Status != nfs3.OK || !r.Object.Present || !r.Attr.Present || !r.Dir.Before.Present || !r.Dir.After.Present {
				t.Errorf("%s, %s: %+v", p, tc.name, r)
				return
			}
			a := b.getAttr(r.Object.Handle)
			if a != r.Attr.Attr || a.Type != kind || a.Mode != mode && kind != nfs3.Symlink || a.UID != tc.uid || a.GID != tc.gid || tc.set.Mtime == then && (a.Mtime != then.Time || a.Atime != then.Time) {
				t.Errorf("%s, %s: %+v", p, tc.name, a)
			}
			if r.Dir.Before.Mtime == r.Dir.After.Attr.Mtime {
				t.Errorf("%s, %s: the directory has not changed", p, tc.name)
			}
		}
		check("CREATE", do[nfs3.NewRes](b, tc.who, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(tc.dir, tc.name+" f"), Attr: tc.set}), tc.mode, nfs3.Regular)
		check("MKDIR", do[nfs3.NewRes](b, tc.who, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at(tc.dir, tc.name+" d"), Attr: tc.set}), tc.dirMode, nfs3.Directory)
		check("SYMLINK", do[nfs3.NewRes](b, tc.who, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at(tc.dir, tc.name+" l"), Attr: tc.set, Path: "x"}), 0, nfs3.Symlink)
		check("MKNOD", do[nfs3.NewRes](b, tc.who, nfs3.ProcMknod, &nfs3.MknodArgs{Where: at(tc.dir, tc.name+" p"), Type: nfs3.FIFO, Attr: tc.set}), tc.mode, nfs3.FIFO)
	}
}

func TestCreateOpensWhatExistsIfItMay(t *testing.T) {
	b := tree(t)
	h := b.create(alice, b.root, "file", 0o600)
	ok(b, b.write(alice, h, 0, "data"))
	b.create(alice, b.root, "other", 0o644)
	b.mkdir(alice, b.root, "dir", 0o755)
	b.symlink(alice, b.root, "file")
	create := func(who *user, name string, mode nfs3.CreateMode, size *uint64) *nfs3.NewRes {
		return do[nfs3.NewRes](b, who, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, name), Mode: mode, Attr: nfs3.SetAttr{Size: size, Mode: new(uint32(0o777))}})
	}
	b.want("guarded", create(alice, "file", nfs3.Guarded, nil), nfs3.ErrExist)
	if r := ok(b, create(alice, "file", nfs3.Unchecked, nil)); r.Object.Handle != h || r.Attr.Attr.Size != 4 || r.Attr.Attr.Mode != 0o600 {
		t.Errorf("unchecked: %+v", r)
	}
	b.want("unchecked, cut by who may not write", create(bob, "file", nfs3.Unchecked, new(uint64(0))), nfs3.ErrAcces)
	b.want("unchecked, by who may not write", create(bob, "file", nfs3.Unchecked, nil), nfs3.OK)
	if r := ok(b, create(alice, "file", nfs3.Unchecked, new(uint64(0)))); r.Object.Handle != h || r.Attr.Attr.Size != 0 {
		t.Errorf("unchecked and cut: %+v", r)
	}
	b.want("over a directory", create(alice, "dir", nfs3.Unchecked, nil), nfs3.ErrExist)
	b.want("over a symbolic link", create(alice, "link", nfs3.Unchecked, nil), nfs3.ErrExist)
	if r := ok(b, create(alice, "new", nfs3.Unchecked, new(uint64(10)))); r.Attr.Attr.Size != 10 {
		t.Errorf("a new one of ten bytes: %+v", r)
	}
	b.want("a new one that is too large", create(alice, "large", nfs3.Unchecked, new(uint64(1<<63))), nfs3.ErrFBig)
}

func TestExclusiveCreateHappensOnce(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	create := func(b *bed, v nfs3.Verifier) *nfs3.NewRes {
		return do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "file"), Mode: nfs3.Exclusive, Verifier: v})
	}
	v := nfs3.Verifier{0xff, 2, 3, 4, 5, 6, 7, 8}
	h := ok(b, create(b, v)).Object.Handle
	b.want("again, with another verifier", create(b, nfs3.Verifier{0xff, 2, 3, 4, 5, 6, 7, 9}), nfs3.ErrExist)
	b.want("again, with the first half of it", create(b, nfs3.Verifier{0xff, 2, 3, 5, 5, 6, 7, 8}), nfs3.ErrExist)
	// The reply was lost, and the server has started again.
	b = on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	if r := ok(b, create(b, v)); r.Object.Handle != h || !r.Attr.Present {
		t.Errorf("again: %+v; the file was %v", r, h)
	}
	if a := b.getAttr(h); a.UID != alice.uid || a.Mode != 0o600 {
		t.Errorf("it is %+v", a)
	}
	// The client sets what the file should be, and from then on it is no duplicate.
	now := nfs3.SetTime{How: nfs3.SetToServerTime}
	ok(b, b.setAttr(alice, h, nfs3.SetAttr{Atime: now, Mtime: now}))
	b.want("after it was set", create(b, v), nfs3.ErrExist)
	b.want("over a directory", do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "."), Mode: nfs3.Exclusive}), nfs3.ErrExist)
}

// coarse is a filesystem that keeps no time of access, and of others whole multiples of a
// step.
type coarse struct {
	vfs.FS
	step time.Duration
}

func (c coarse) show(a vfs.Attr) vfs.Attr {
	a.Mtime, a.Ctime = a.Mtime.Truncate(c.step), a.Ctime.Truncate(c.step)
	a.Atime = a.Mtime
	return a
}

func (c coarse) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	h, a, err := c.FS.Lookup(ctx, dir, name)
	return h, c.show(a), err
}

func (c coarse) Create(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	h, a, err := c.FS.Create(ctx, dir, name, s)
	return h, c.show(a), err
}

// settable is a directory by go-billy, whose times can be set.
type settable struct {
	billy.Filesystem
	dir string
}

func (s settable) path(name string) string { return filepath.Join(s.dir, name) }

func (s settable) Chmod(name string, mode os.FileMode) error { return os.Chmod(s.path(name), mode) }
func (s settable) Lchown(name string, uid, gid int) error    { return os.Lchown(s.path(name), uid, gid) }

func (s settable) Chown(name string, uid, gid int) error { return os.Chown(s.path(name), uid, gid) }

func (s settable) Chtimes(name string, a, m time.Time) error { return os.Chtimes(s.path(name), a, m) }

// A user who guesses another's verifier can't have a file taken for the other's.
func TestExclusiveCreateDoesNotReturnAnothersFile(t *testing.T) {
	b := tree(t)
	shared := b.mkdir(root, b.root, "shared", 0o777)
	as := func(who *user) *nfs3.NewRes {
		return do[nfs3.NewRes](b, who, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(shared, "file"), Mode: nfs3.Exclusive, Verifier: nfs3.Verifier{1, 2, 3}})
	}
	ok(b, as(bob))
	b.want("with the verifier of another user", as(alice), nfs3.ErrExist)
	ok(b, as(bob))
}

// It happens once also where no time of access is kept, and after the server has started
// again.
func TestExclusiveCreateNeedsNoTimeOfAccess(t *testing.T) {
	dir := t.TempDir()
	overPaths := func() vfs.FS {
		fs, err := billyfs.New(settable{osfs.New(dir), dir}, billyfs.Options{UID: alice.uid, GID: alice.gid})
		if err != nil {
			t.Fatal(err)
		}
		return fs
	}
	memory := memfs.New(memfs.Options{Mode: 0o777})
	for name, fs := range map[string]func() vfs.FS{
		"pathfs":       overPaths,
		"nanoseconds":  func() vfs.FS { return coarse{memory, 1} },
		"seconds only": func() vfs.FS { return coarse{memory, time.Second} },
	} {
		server := func(key string) *bed {
			return on(t, nfsd.Config{Key: []byte(key)}, nfsd.Export{FS: fs(), Squash: nfsd.SquashNone})
		}
		b := server("key")
		create := func(b *bed, v nfs3.Verifier) *nfs3.NewRes {
			return do[nfs3.NewRes](b, root, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, name), Mode: nfs3.Exclusive, Verifier: v})
		}
		v := nfs3.Verifier{0xff, 2, 3, 4, 5, 6, 7, 8}
		ok(b, create(b, v))
		ok(b, create(b, v)) // another call, which no memory of replies has answered
		b = server("key")
		ok(b, create(b, v))
		for i := range v {
			other := v
			other[i]++
			b.want(name+": another verifier", create(b, other), nfs3.ErrExist)
		}
		other := server("another key")
		b.want(name+": made up by another server", create(other, v), nfs3.ErrExist)
		h := b.lookup(root, b.root, name).Object
		ok(b, b.write(root, h, 0, "x"))
		b.want(name+": after it was written", create(b, v), nfs3.ErrExist)
	}
}

func TestDevicesAreTheSuperusers(t *testing.T) {
	b := tree(t)
	for kind, want := range map[nfs3.FileType][2]nfs3.Status{
		nfs3.CharDevice:  {nfs3.OK, nfs3.ErrPerm},
		nfs3.BlockDevice: {nfs3.OK, nfs3.ErrPerm},
		nfs3.Socket:      {nfs3.OK, nfs3.OK},
		nfs3.FIFO:        {nfs3.OK, nfs3.OK},
		nfs3.Regular:     {nfs3.ErrBadType, nfs3.ErrBadType},
		nfs3.Directory:   {nfs3.ErrBadType, nfs3.ErrBadType},
		nfs3.Symlink:     {nfs3.ErrBadType, nfs3.ErrBadType},
		9:                {nfs3.ErrBadType, nfs3.ErrBadType},
	} {
		for i, who := range []*user{root, alice} {
			name := kind.String() + []string{" of root", " of alice"}[i]
			r := do[nfs3.NewRes](b, who, nfs3.ProcMknod, &nfs3.MknodArgs{Where: at(b.root, name), Type: kind, Major: 8, Minor: 1})
			b.want(name, r, want[i])
			if r.Status != nfs3.OK {
				continue
			}
			device := kind == nfs3.CharDevice || kind == nfs3.BlockDevice
			if a := b.getAttr(r.Object.Handle); a.Type != kind || device != (a.Major == 8 && a.Minor == 1) {
				t.Errorf("%s is %+v", name, a)
			}
		}
	}
}

func TestSymbolicLinksSayWhatTheyLike(t *testing.T) {
	b := tree(t)
	for path, want := range map[string]nfs3.Status{
		"../../../etc/passwd": nfs3.OK, "/": nfs3.OK, strings.Repeat("x", 4095): nfs3.OK,
		"": nfs3.ErrInval, "a\x00b": nfs3.ErrInval, strings.Repeat("x", 4097): nfs3.ErrNameTooLong, strings.Repeat("x", 16384): nfs3.ErrNameTooLong,
	} {
		r := do[nfs3.NewRes](b, alice, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at(b.root, "link"), Path: path})
		b.want(path[:min(len(path), 20)], r, want)
		if r.Status != nfs3.OK {
			continue
		}
		if l := ok(b, do[nfs3.ReadLinkRes](b, bob, nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: r.Object.Handle})); string(l.Path) != path {
			t.Errorf("%.20q is read as %.20q", path, l.Path)
		}
		ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(b.root, "link"))))
	}
}

// limited is a filesystem that can't do much.
type limited struct{ vfs.FS }

func (l limited) Features() vfs.Features {
	return vfs.Features{MaxName: 10, TimeDelta: 2e9, FoldsCase: true}
}

func TestWhatAFilesystemCannotDoIsNotAsked(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777, UID: nfsd.Nobody, GID: nfsd.Nobody})
	b := on(t, nfsd.Config{}, nfsd.Export{FS: limited{fs}, Squash: nfsd.SquashAll})
	r := do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "file"), Attr: nfs3.SetAttr{Mode: new(uint32(0o777)), UID: new(uint32(5))}})
	h := ok(b, r).Object.Handle
	if a := r.Attr.Attr; a.Mode == 0o777 || a.UID != nfsd.Nobody || a.GID != nfsd.Nobody {
		t.Errorf("it is asked for owner or mode: %+v", a)
	}
	ok(b, b.write(alice, h, 0, "x"))
	mode := r.Attr.Attr.Mode
	b.want("the same mode", b.setAttr(alice, h, nfs3.SetAttr{Mode: &mode}), nfs3.OK)
	b.want("another mode", b.setAttr(alice, h, nfs3.SetAttr{Mode: new(uint32(0o777))}), nfs3.ErrNotSupp)
	b.want("the same owner", b.setAttr(alice, h, nfs3.SetAttr{UID: new(uint32(nfsd.Nobody))}), nfs3.OK)
	b.want("a time", b.setAttr(alice, h, nfs3.SetAttr{Mtime: nfs3.SetTime{How: nfs3.SetToClientTime}}), nfs3.ErrInval)
	before := b.getAttr(h)
	if r := ok(b, b.setAttr(alice, h, nfs3.SetAttr{Mtime: nfs3.SetTime{How: nfs3.SetToServerTime}})); r.Wcc.After.Attr != before {
		t.Errorf("it is asked for a time: %+v becomes %+v", before, r.Wcc.After.Attr)
	}
	b.want("a symbolic link", do[nfs3.NewRes](b, alice, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at(b.root, "link"), Path: "x"}), nfs3.ErrNotSupp)
	b.want("a hard link", do[nfs3.LinkRes](b, alice, nfs3.ProcLink, &nfs3.LinkArgs{File: h, Link: at(b.root, "link")}), nfs3.ErrNotSupp)
	b.want("an exclusive file", do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "x"), Mode: nfs3.Exclusive}), nfs3.ErrNotSupp)
	b.want("a long name", b.lookup(alice, b.root, "01234567890"), nfs3.ErrNameTooLong)
	i := ok(b, do[nfs3.FSInfoRes](b, alice, nfs3.ProcFSInfo, &nfs3.HandleArgs{Handle: b.root}))
	if i.Properties != nfs3.FSFHomogeneous || i.TimeDelta.Seconds != 2 || i.MaxFileSize != 1<<63-1 {
		t.Errorf("FSINFO %+v", i)
	}
	if c := ok(b, do[nfs3.PathConfRes](b, alice, nfs3.ProcPathConf, &nfs3.HandleArgs{Handle: h})); c.MaxName != 10 || !c.CaseInsensitive {
		t.Errorf("PATHCONF %+v", c)
	}
	// The superuser may be real, and still nothing can be given away.
	all := on(t, nfsd.Config{}, nfsd.Export{FS: limited{fs}, Squash: nfsd.SquashNone})
	b.want("another owner", all.setAttr(root, h, nfs3.SetAttr{UID: new(uint32(5))}), nfs3.ErrNotSupp)
}
