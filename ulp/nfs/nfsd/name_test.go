package nfsd_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs/memfs"
)

func TestRemoveAndRmdir(t *testing.T) {
	b := tree(t)
	dir := b.mkdir(alice, b.root, "dir", 0o755)
	file := b.create(alice, dir, "file", 0o666)
	b.mkdir(alice, dir, "sub", 0o777)
	full := b.mkdir(alice, dir, "full", 0o777)
	b.create(alice, full, "file", 0o666)
	remove := func(who *user, p nfs3.Proc, dir nfs3.Handle, name string) *nfs3.WccRes {
		return do[nfs3.WccRes](b, who, p, new(at(dir, name)))
	}
	for _, tc := range []struct {
		name          string
		who           *user
		dir           nfs3.Handle
		what          string
		remove, rmdir nfs3.Status
	}{
		{"no such name", alice, dir, "x", nfs3.ErrNoEnt, nfs3.ErrNoEnt},
		{"in somebody's directory", bob, dir, "file", nfs3.ErrAcces, nfs3.ErrAcces},
		{"in a file", alice, file, "x", nfs3.ErrNotDir, nfs3.ErrNotDir},
		{".", alice, dir, ".", nfs3.ErrInval, nfs3.ErrInval},
		{"..", alice, dir, "..", nfs3.ErrExist, nfs3.ErrExist}, // §3.3.13
		{"an empty name", alice, dir, "", nfs3.ErrAcces, nfs3.ErrAcces},
		{"a path", alice, dir, "full/file", nfs3.ErrAcces, nfs3.ErrAcces},
		{"a long name", alice, dir, strings.Repeat("x", 256), nfs3.ErrNameTooLong, nfs3.ErrNameTooLong},
		{"a directory that is full", alice, dir, "full", nfs3.ErrIsDir, nfs3.ErrNotEmpty},
		{"a directory", alice, dir, "sub", nfs3.ErrIsDir, nfs3.OK},
		{"a file", alice, dir, "file", nfs3.OK, nfs3.ErrNoEnt},
	} {
		if tc.what == "file" && tc.who == alice {
			b.want("RMDIR of a file", remove(alice, nfs3.ProcRmdir, dir, "file"), nfs3.ErrNotDir)
		}
		b.want("REMOVE of "+tc.name, remove(tc.who, nfs3.ProcRemove, tc.dir, tc.what), tc.remove)
		r := remove(tc.who, nfs3.ProcRmdir, tc.dir, tc.what)
		b.want("RMDIR of "+tc.name, r, tc.rmdir)
		if !r.Wcc.Before.Present || !r.Wcc.After.Present || (r.Status == nfs3.OK) == (r.Wcc.Before.Mtime == r.Wcc.After.Attr.Mtime) {
			t.Errorf("RMDIR of %s: %+v", tc.name, r.Wcc)
		}
	}
	b.want("the file that was removed", do[nfs3.GetAttrRes](b, alice, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: file}), nfs3.ErrStale)
	ro := on(t, nfsd.Config{}, nfsd.Export{FS: b.fs, ReadOnly: true, Squash: nfsd.SquashNone})
	b.want("REMOVE read-only", do[nfs3.WccRes](ro, root, nfs3.ProcRemove, new(at(ro.root, "dir"))), nfs3.ErrROFS)
	b.want("RENAME read-only", do[nfs3.RenameRes](ro, root, nfs3.ProcRename, &nfs3.RenameArgs{From: at(ro.root, "dir"), To: at(ro.root, "x")}), nfs3.ErrROFS)
	b.want("SETATTR read-only", ro.setAttr(root, ro.root, nfs3.SetAttr{Mode: new(uint32(0))}), nfs3.ErrROFS)
}

// In a sticky directory, as /tmp is one, files are their owners'.
func TestStickyDirectories(t *testing.T) {
	b := tree(t)
	tmp := b.mkdir(alice, b.root, "tmp", 0o1777)
	carol := &user{uid: 1002, gid: 100}
	plain := b.mkdir(bob, b.root, "plain", 0o777)
	for _, tc := range []struct {
		who  *user
		want nfs3.Status
	}{{carol, nfs3.ErrPerm}, {bob, nfs3.OK}, {alice, nfs3.OK}, {root, nfs3.OK}} {
		h := b.create(bob, tmp, "bob's", 0o666)
		b.create(tc.who, plain, "other", 0o666)
		rename := func(from, to nfs3.NameArgs) *nfs3.RenameRes {
			return do[nfs3.RenameRes](b, tc.who, nfs3.ProcRename, &nfs3.RenameArgs{From: from, To: to})
		}
		b.want("REMOVE", do[nfs3.WccRes](b, tc.who, nfs3.ProcRemove, new(at(tmp, "bob's"))), tc.want)
		if tc.want == nfs3.OK {
			h = b.create(bob, tmp, "bob's", 0o666)
		}
		b.want("RENAME of it", rename(at(tmp, "bob's"), at(tmp, "moved")), tc.want)
		if tc.want == nfs3.OK {
			ok(b, rename(at(tmp, "moved"), at(tmp, "bob's")))
		}
		b.want("RENAME over it", rename(at(plain, "other"), at(tmp, "bob's")), tc.want)
		b.want("RENAME to a new name", rename(at(plain, map[bool]string{true: "other", false: "x"}[tc.want != nfs3.OK]), at(tmp, "new")), map[bool]nfs3.Status{true: nfs3.OK, false: nfs3.ErrNoEnt}[tc.want != nfs3.OK])
		b.want("REMOVE of what is not there", do[nfs3.WccRes](b, tc.who, nfs3.ProcRemove, new(at(tmp, "x"))), nfs3.ErrNoEnt)
		for _, name := range []string{"bob's", "new"} {
			_ = do[nfs3.WccRes](b, root, nfs3.ProcRemove, new(at(tmp, name)))
		}
		_ = h
	}
}

func TestRename(t *testing.T) {
	b := tree(t)
	one, two := b.mkdir(alice, b.root, "one", 0o755), b.mkdir(alice, b.root, "two", 0o755)
	bobs := b.mkdir(bob, b.root, "bob's", 0o777)
	file := b.create(alice, one, "file", 0o600)
	b.create(bob, bobs, "his", 0o600)
	rename := func(who *user, from, to nfs3.NameArgs) *nfs3.RenameRes {
		return do[nfs3.RenameRes](b, who, nfs3.ProcRename, &nfs3.RenameArgs{From: from, To: to})
	}
	for _, tc := range []struct {
		name     string
		who      *user
		from, to nfs3.NameArgs
		want     nfs3.Status
	}{
		{"what is not there", alice, at(one, "x"), at(two, "y"), nfs3.ErrNoEnt},
		{"from somebody's directory", bob, at(one, "file"), at(bobs, "y"), nfs3.ErrAcces},
		{"to somebody's directory", bob, at(bobs, "his"), at(one, "y"), nfs3.ErrAcces},
		{"from a file", alice, at(file, "x"), at(two, "y"), nfs3.ErrNotDir},
		{"to a file", alice, at(one, "file"), at(file, "y"), nfs3.ErrNotDir},
		{"from .", alice, at(one, "."), at(two, "y"), nfs3.ErrInval},
		{"to ..", alice, at(one, "file"), at(two, ".."), nfs3.ErrInval},
		{"from nothing", alice, at(one, ""), at(two, "y"), nfs3.ErrAcces},
		{"to a path", alice, at(one, "file"), at(two, "a/b"), nfs3.ErrAcces},
		{"a directory into itself", alice, at(b.root, "one"), at(one, "in"), nfs3.ErrInval},
		{"a file over a directory", alice, at(one, "file"), at(b.root, "two"), nfs3.ErrExist},
		{"a directory over a file", alice, at(b.root, "two"), at(one, "file"), nfs3.ErrExist},
		{"over a directory that is full", alice, at(b.root, "two"), at(b.root, "one"), nfs3.ErrExist},
		{"somebody's directory that can't be written elsewhere", bob, at(b.root, "two"), at(bobs, "two"), nfs3.ErrAcces},
		{"the same under another name", bob, at(b.root, "two"), at(b.root, "three"), nfs3.OK},
		{"and back", alice, at(b.root, "three"), at(b.root, "two"), nfs3.OK},
		{"a file", alice, at(one, "file"), at(two, "file2"), nfs3.OK},
		{"a file to itself", alice, at(two, "file2"), at(two, "file2"), nfs3.OK},
	} {
		r := rename(tc.who, tc.from, tc.to)
		b.want(tc.name, r, tc.want)
		if !r.From.Before.Present || !r.From.After.Present || !r.To.Before.Present || !r.To.After.Present {
			t.Errorf("%s: cache consistency %+v, %+v", tc.name, r.From, r.To)
		}
	}
	if r := ok(b, b.lookup(alice, two, "file2")); r.Object != file {
		t.Errorf("the file is another one under its new name")
	}
	b.want("the old name", b.lookup(alice, one, "file"), nfs3.ErrNoEnt)

	// Two exports are two filesystems.
	other := memfs.New(memfs.Options{Mode: 0o777})
	if err := b.server.AddExport(nfsd.Export{Path: "/other", FS: other, Squash: nfsd.SquashNone}); err != nil {
		t.Fatal(err)
	}
	far := b.mount("/other")
	b.want("to another export", rename(root, at(two, "file2"), at(far, "file")), nfs3.ErrXDev)
	b.want("LINK to another export", do[nfs3.LinkRes](b, root, nfs3.ProcLink, &nfs3.LinkArgs{File: file, Link: at(far, "file")}), nfs3.ErrXDev)
	b.want("to no directory", rename(root, at(two, "file2"), nfs3.NameArgs{}), nfs3.ErrBadHandle)
	if b.getAttr(far).FSID == b.getAttr(b.root).FSID {
		t.Error("two exports are the same filesystem")
	}
}

// Directories are locked in one order.
func TestRenamesDoNotWaitForEachOther(t *testing.T) {
	b := tree(t)
	// Of many, some have locks in one order, and some in the other.
	for i := range 4 {
		dirs := [2]nfs3.Handle{b.mkdir(alice, b.root, fmt.Sprint(i, "a"), 0o755), b.mkdir(alice, b.root, fmt.Sprint(i, "b"), 0o755)}
		for _, dir := range dirs {
			b.create(alice, dir, "file", 0o600)
		}
		var wg sync.WaitGroup
		for way := range 2 {
			wg.Go(func() {
				from, to := at(dirs[way], "file"), at(dirs[1-way], "file")
				for range 1000 {
					r := do[nfs3.RenameRes](b, alice, nfs3.ProcRename, &nfs3.RenameArgs{From: from, To: to})
					if r.Status != nfs3.OK && r.Status != nfs3.ErrNoEnt {
						t.Errorf("%v", r.Status.String())
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestLink(t *testing.T) {
	b := tree(t)
	dir := b.mkdir(alice, b.root, "dir", 0o755)
	file := b.create(alice, b.root, "file", 0o600)
	r := ok(b, do[nfs3.LinkRes](b, alice, nfs3.ProcLink, &nfs3.LinkArgs{File: file, Link: at(dir, "again")}))
	if r.Attr.Attr.Links != 2 || !r.Dir.Before.Present || r.Dir.Before.Mtime == r.Dir.After.Attr.Mtime {
		t.Errorf("%+v", r)
	}
	if l := ok(b, b.lookup(alice, dir, "again")); l.Object != file {
		t.Errorf("the new name is another file's")
	}
	b.want("of a directory", do[nfs3.LinkRes](b, root, nfs3.ProcLink, &nfs3.LinkArgs{File: dir, Link: at(dir, "dir")}), nfs3.ErrInval)
	ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(b.root, "file"))))
	ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(dir, "again"))))
	b.want("of what is gone", do[nfs3.LinkRes](b, alice, nfs3.ProcLink, &nfs3.LinkArgs{File: file, Link: at(dir, "x")}), nfs3.ErrStale)
}
