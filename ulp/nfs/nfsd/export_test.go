package nfsd_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
)

func TestCallersAreSquashed(t *testing.T) {
	for _, tc := range []struct {
		name     string
		export   nfsd.Export
		who      *user
		uid, gid uint32
	}{
		{"the superuser", nfsd.Export{}, root, nfsd.Nobody, nfsd.Nobody},
		{"a user of the group 0", nfsd.Export{}, &user{uid: 5}, 5, nfsd.Nobody},
		{"a user", nfsd.Export{}, alice, 1000, 100},
		{"an anonymous caller", nfsd.Export{}, nil, nfsd.Nobody, nfsd.Nobody},
		{"the superuser, as somebody", nfsd.Export{AnonUID: 7, AnonGID: 8}, root, 7, 8},
		{"the superuser, not", nfsd.Export{Squash: nfsd.SquashNone}, root, 0, 0},
		{"an anonymous caller, not", nfsd.Export{Squash: nfsd.SquashNone}, nil, nfsd.Nobody, nfsd.Nobody},
		{"a user, like all", nfsd.Export{Squash: nfsd.SquashAll, AnonUID: 7, AnonGID: 8}, alice, 7, 8},
	} {
		b := on(t, nfsd.Config{}, tc.export)
		if a := b.getAttr(b.create(tc.who, b.root, "file", 0o600)); a.UID != tc.uid || a.GID != tc.gid {
			t.Errorf("%s is %d, %d; want %d, %d", tc.name, a.UID, a.GID, tc.uid, tc.gid)
		}
	}
	// The group 0 among others is squashed too, and the other groups stay.
	b := on(t, nfsd.Config{}, nfsd.Export{FS: memfs.New(memfs.Options{Mode: 0o770, GID: 0}), Squash: nfsd.SquashRoot})
	b.want("by the group 0", b.lookup(&user{uid: 5, gid: 6, groups: []uint32{7, 0}}, b.root, "x"), nfs3.ErrAcces)
	b = on(t, nfsd.Config{}, nfsd.Export{FS: memfs.New(memfs.Options{Mode: 0o770, GID: 7}), Squash: nfsd.SquashRoot})
	b.want("by another group", b.lookup(&user{uid: 5, gid: 6, groups: []uint32{0, 7}}, b.root, "x"), nfs3.ErrNoEnt)
	b.want("by no group", b.lookup(&user{uid: 5, gid: 6, groups: []uint32{0}}, b.root, "x"), nfs3.ErrAcces)
	if s := []string{nfsd.SquashRoot.String(), nfsd.SquashNone.String(), nfsd.SquashAll.String()}; !slices.Equal(s, []string{"root", "none", "all"}) {
		t.Errorf("%q", s)
	}
}

func TestOnlyAllowedAddressesGetIn(t *testing.T) {
	b := on(t, nfsd.Config{}, nfsd.Export{Allowed: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("2001:db8::/32")}})
	for addr, want := range map[string]nfs3.Status{
		"192.0.2.127:1": nfs3.OK, "[::ffff:192.0.2.1]:1": nfs3.OK, "[2001:db8::1]:1": nfs3.OK, "192.0.2.128:1": nfs3.ErrAcces, "[2001:db9::1]:1": nfs3.ErrAcces, "127.0.0.1:1": nfs3.ErrAcces,
	} {
		b.send = b.from(addr)
		var m nfs3.MountRes
		if err := b.callMount(root, nfs3.MountProcMnt, &nfs3.MountArgs{Path: "/tree"}, &m); err != nil || m.Status != nfs3.MountStatus(want) {
			t.Errorf("%s: MNT %v, %v", addr, m.Status, err)
		}
		// Who has got the handle from somebody else has not got the file.
		b.want(addr, do[nfs3.GetAttrRes](b, root, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: b.root}), want)
		b.want(addr, do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, addr)}), want)
		b.want(addr, b.write(alice, b.root, 0, "x"), map[bool]nfs3.Status{true: nfs3.ErrInval, false: nfs3.ErrAcces}[want == nfs3.OK])
		b.want(addr, do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: b.root}), map[bool]nfs3.Status{true: nfs3.ErrInval, false: nfs3.ErrAcces}[want == nfs3.OK])
	}
}

// everyProcedure calls all that take a handle, with one that is no file's.
func everyProcedure(b *bed, h nfs3.Handle) map[nfs3.Proc]nfs3.Status {
	at := at(h, "name")
	good := nfs3.NameArgs{Dir: b.root, Name: "name"}
	st := map[nfs3.Proc]nfs3.Status{
		nfs3.ProcGetAttr:     do[nfs3.GetAttrRes](b, root, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h}).Status,
		nfs3.ProcSetAttr:     b.setAttr(root, h, nfs3.SetAttr{Mode: new(uint32(0))}).Status,
		nfs3.ProcLookup:      b.lookup(root, h, ".").Status,
		nfs3.ProcAccess:      do[nfs3.AccessRes](b, root, nfs3.ProcAccess, &nfs3.AccessArgs{Object: h}).Status,
		nfs3.ProcReadLink:    do[nfs3.ReadLinkRes](b, root, nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: h}).Status,
		nfs3.ProcRead:        b.read(root, h, 0, 1).Status,
		nfs3.ProcWrite:       b.write(root, h, 0, "x").Status,
		nfs3.ProcCreate:      do[nfs3.NewRes](b, root, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at}).Status,
		nfs3.ProcMkdir:       do[nfs3.NewRes](b, root, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at}).Status,
		nfs3.ProcSymlink:     do[nfs3.NewRes](b, root, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at, Path: "x"}).Status,
		nfs3.ProcMknod:       do[nfs3.NewRes](b, root, nfs3.ProcMknod, &nfs3.MknodArgs{Where: at, Type: nfs3.FIFO}).Status,
		nfs3.ProcRemove:      do[nfs3.WccRes](b, root, nfs3.ProcRemove, &at).Status,
		nfs3.ProcRmdir:       do[nfs3.WccRes](b, root, nfs3.ProcRmdir, &at).Status,
		nfs3.ProcRename:      do[nfs3.RenameRes](b, root, nfs3.ProcRename, &nfs3.RenameArgs{From: at, To: good}).Status,
		nfs3.ProcLink:        do[nfs3.LinkRes](b, root, nfs3.ProcLink, &nfs3.LinkArgs{File: h, Link: good}).Status,
		nfs3.ProcReadDir:     do[nfs3.ReadDirRes](b, root, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: h, Count: 1024}).Status,
		nfs3.ProcReadDirPlus: do[nfs3.ReadDirPlusRes](b, root, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: h, MaxCount: 1024}).Status,
		nfs3.ProcFSStat:      do[nfs3.FSStatRes](b, root, nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: h}).Status,
		nfs3.ProcFSInfo:      do[nfs3.FSInfoRes](b, root, nfs3.ProcFSInfo, &nfs3.HandleArgs{Handle: h}).Status,
		nfs3.ProcPathConf:    do[nfs3.PathConfRes](b, root, nfs3.ProcPathConf, &nfs3.HandleArgs{Handle: h}).Status,
		nfs3.ProcCommit:      do[nfs3.CommitRes](b, root, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}).Status,
	}
	// Where there are two handles, the second one may be bad as well.
	if s := do[nfs3.RenameRes](b, root, nfs3.ProcRename, &nfs3.RenameArgs{From: good, To: at}).Status; s != st[nfs3.ProcRename] {
		b.Errorf("RENAME to it: %v", s.String())
	}
	if s := do[nfs3.LinkRes](b, root, nfs3.ProcLink, &nfs3.LinkArgs{File: b.root, Link: at}).Status; s != st[nfs3.ProcLink] {
		b.Errorf("LINK in it: %v", s.String())
	}
	return st
}

func TestHandlesThatAreMadeUpAreRefused(t *testing.T) {
	for name, key := range map[string][]byte{"without a key": {}, "with a key": []byte("secret")} {
		t.Run(name, func(t *testing.T) {
			b := on(t, nfsd.Config{Key: key}, nfsd.Export{Squash: nfsd.SquashNone})
			file := b.create(alice, b.root, "file", 0o644)
			good := file.Octets()
			bad := map[string][]byte{"nothing": {}, "one byte": {1}, "no handle in it": good[:13], "all bytes": []byte(strings.Repeat("\xff", 64)), "more bytes": append(slices.Clone(good), 0), "fewer bytes": good[:len(good)-1]}
			for i := range good {
				changed := slices.Clone(good)
				changed[i] ^= 0x10
				bad["byte changed: "+string(rune('a'+i))] = changed
			}
			for name, p := range bad {
				h, err := nfs3.MakeHandle(p)
				if err != nil {
					t.Fatal(err)
				}
				for p, st := range everyProcedure(b, h) {
					if st != nfs3.ErrBadHandle {
						t.Errorf("%v, %s: %v", p, name, st.String())
					}
				}
			}
			gone := b.create(alice, b.root, "gone", 0o644)
			ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(b.root, "gone"))))
			for p, st := range everyProcedure(b, gone) {
				if st != nfs3.ErrStale {
					t.Errorf("%v of a file that is gone: %v", p, st.String())
				}
			}
			if !b.server.RemoveExport("/tree") || b.server.RemoveExport("/tree") {
				t.Error("the export is not removed once")
			}
			for p, st := range everyProcedure(b, file) {
				if st != nfs3.ErrStale {
					t.Errorf("%v of an export that is gone: %v", p, st.String())
				}
			}
		})
	}
}

func TestHandlesOutliveTheServer(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	b := on(t, nfsd.Config{Key: []byte("one")}, nfsd.Export{FS: fs})
	h := b.create(alice, b.root, "file", 0o644)
	// It starts again with more exports, in another order.
	again := bare(t, nfsd.Config{Key: []byte("one")})
	for _, p := range []string{"/other", "/tree"} {
		if err := again.server.AddExport(nfsd.Export{Path: p, FS: map[string]vfs.FS{"/tree": fs, "/other": memfs.New(memfs.Options{})}[p]}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := again.getAttr(h), b.getAttr(h); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	other := on(t, nfsd.Config{Key: []byte("two")}, nfsd.Export{FS: fs})
	// A server without a key has one of its own, which nobody can know.
	one, two := on(t, nfsd.Config{Key: []byte{}}, nfsd.Export{FS: fs}), on(t, nfsd.Config{Key: []byte{}}, nfsd.Export{FS: fs})
	b.want("without a key", do[nfs3.GetAttrRes](two, alice, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: one.root}), nfs3.ErrBadHandle)
	b.want("with another key", do[nfs3.GetAttrRes](other, alice, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h}), nfs3.ErrBadHandle)
}

func TestMountFindsExportsAndWhatIsInThem(t *testing.T) {
	b := tree(t)
	dir := b.mkdir(alice, b.root, "dir", 0o755)
	sub := b.mkdir(alice, dir, "sub", 0o700)
	in := b.mkdir(alice, sub, "in", 0o755)
	b.create(alice, b.root, "file", 0o644)
	b.symlink(alice, b.root, "/tree/dir")
	inner := memfs.New(memfs.Options{Mode: 0o777})
	if err := b.server.AddExport(nfsd.Export{Path: "/tree/dir/inner", FS: inner}); err != nil {
		t.Fatal(err)
	}
	innerRoot := b.mount("/tree/dir/inner")
	for _, tc := range []struct {
		path string
		who  *user
		want nfs3.MountStatus
		is   nfs3.Handle
	}{
		{"/tree", alice, nfs3.MountOK, b.root},
		{"/tree/", alice, nfs3.MountOK, b.root},
		{"//tree//dir/", alice, nfs3.MountOK, dir},
		{"/tree/dir/sub", bob, nfs3.MountOK, sub},
		{"/tree/dir/sub/in", alice, nfs3.MountOK, in},
		{"/tree/dir/sub/in", bob, nfs3.MountErrAcces, in},
		{"/tree/dir/inner/", bob, nfs3.MountOK, innerRoot},
		{"/tree/dir/inners", bob, nfs3.MountErrNoEnt, dir},
		{"/tree/file", alice, nfs3.MountErrNotDir, dir},
		{"/tree/file/x", alice, nfs3.MountErrNotDir, dir},
		{"/tree/link", alice, nfs3.MountErrNotDir, dir},
		{"/tree/link/sub", alice, nfs3.MountErrNotDir, dir},
		{"/tree/../etc", alice, nfs3.MountErrInval, dir},
		{"/tree/dir/..", alice, nfs3.MountErrInval, dir},
		{"/tree/" + strings.Repeat("x", 256), alice, nfs3.MountErrNameTooLong, dir},
		{"/trees", alice, nfs3.MountErrNoEnt, dir},
		{"/", alice, nfs3.MountErrNoEnt, dir},
		{"tree", alice, nfs3.MountErrNoEnt, dir},
		{"", alice, nfs3.MountErrNoEnt, dir},
	} {
		var r nfs3.MountRes
		if err := b.callMount(tc.who, nfs3.MountProcMnt, &nfs3.MountArgs{Path: tc.path}, &r); err != nil || r.Status != tc.want {
			t.Errorf("%q: %v, %v; want %v", tc.path, r.Status, err, tc.want)
		}
		if r.Status == nfs3.MountOK && (r.Handle != tc.is || !slices.Equal(r.Flavors, []uint32{1, 0})) {
			t.Errorf("%q is %v, flavors %v", tc.path, r.Handle, r.Flavors)
		}
	}
	if err := b.server.AddExport(nfsd.Export{Path: "/", FS: memfs.New(memfs.Options{})}); err != nil {
		t.Fatal(err)
	}
	if b.mount("/") == b.root || b.mount("/tree/dir") != dir {
		t.Error("/ is not exported beside what is below")
	}
}

func TestMountsAreListedUntilThereAreTooMany(t *testing.T) {
	b := on(t, nfsd.Config{Mounts: 3}, nfsd.Export{})
	list := func() (s []string) {
		var r nfs3.DumpRes
		if err := b.callMount(nil, nfs3.MountProcDump, &nfs3.Void{}, &r); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Mounts {
			s = append(s, m.Host+":"+m.Dir)
		}
		return s
	}
	want := func(s ...string) {
		t.Helper()
		if got := list(); !slices.Equal(got, s) {
			t.Errorf("%q; want %q", got, s)
		}
	}
	want("192.0.2.1:/tree")
	b.mount("/tree/")
	want("192.0.2.1:/tree")
	for _, p := range []string{"/a", "/b", "/c"} {
		b.mkdir(nil, b.root, p[1:], 0o755)
	}
	b.mount("/tree/a")
	b.send = b.from("192.0.2.2:9")
	b.mount("/tree/a")
	want("192.0.2.1:/tree", "192.0.2.1:/tree/a", "192.0.2.2:/tree/a")
	b.mount("/tree/b")
	want("192.0.2.1:/tree/a", "192.0.2.2:/tree/a", "192.0.2.2:/tree/b")
	unmount := func(version uint32, p nfs3.MountProc, args nfs3.Codec) {
		t.Helper()
		if err := b.call(root, nfs3.MountProgram, version, uint32(p), args, &nfs3.Void{}, 0); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
	unmount(3, nfs3.MountProcUmnt, &nfs3.MountArgs{Path: "/tree/a/"})
	want("192.0.2.1:/tree/a", "192.0.2.2:/tree/b")
	unmount(1, nfs3.MountProcUmnt, &nfs3.MountArgs{Path: "/nothing"})
	unmount(3, nfs3.MountProcUmntAll, &nfs3.Void{})
	want("192.0.2.1:/tree/a")
	b.send = b.from("192.0.2.1:9")
	unmount(1, nfs3.MountProcUmnt, &nfs3.MountArgs{Path: "/tree/a"})
	want()
}

func TestExportsAreListed(t *testing.T) {
	b := on(t, nfsd.Config{}, nfsd.Export{Allowed: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::1/128")}})
	if err := b.server.AddExport(nfsd.Export{Path: "/all", FS: b.fs}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint32{1, 3} {
		var r nfs3.ExportRes
		if err := b.call(nil, nfs3.MountProgram, version, uint32(nfs3.MountProcExport), &nfs3.Void{}, &r, 1000); err != nil {
			t.Fatal(err)
		}
		if len(r.Exports) != 2 || r.Exports[0].Dir != "/all" || len(r.Exports[0].Groups) != 0 || r.Exports[1].Dir != "/tree" || !slices.Equal(r.Exports[1].Groups, []string{"192.0.2.0/24", "2001:db8::1/128"}) {
			t.Errorf("%+v", r)
		}
	}
	// MOUNT 1 mounts for NFS 2, whose handles are none of ours.
	err := b.call(root, nfs3.MountProgram, 1, uint32(nfs3.MountProcMnt), &nfs3.MountArgs{Path: "/tree"}, &nfs3.MountRes{}, 100)
	if e, is := errors.AsType[*oncrpc.AcceptedError](err); !is || e.Stat != oncrpc.ProcedureUnavailable {
		t.Errorf("MNT of version 1: %v", err)
	}
}

func TestExportsThatCannotBeAreRefused(t *testing.T) {
	b := tree(t)
	for _, p := range []string{"", "tree", "/tree/", "/a/../b", "/a//b", "/.", "/x\x00", "/" + strings.Repeat("x", 1024), "/tree"} {
		if err := b.server.AddExport(nfsd.Export{Path: p, FS: b.fs}); !errors.Is(err, nfsd.ErrExport) {
			t.Errorf("%.20q: %v", p, err)
		}
	}
	if err := b.server.AddExport(nfsd.Export{Path: "/x"}); !errors.Is(err, nfsd.ErrExport) {
		t.Errorf("without a filesystem: %v", err)
	}
	for _, cfg := range []nfsd.Config{{ReadMax: 100}, {WriteMax: nfs3.MaxData + 1}, {ReadMax: -1}, {Mounts: -1}} {
		if _, err := nfsd.New(cfg); !errors.Is(err, nfsd.ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestFilesystemsAreDescribed(t *testing.T) {
	b := on(t, nfsd.Config{ReadMax: 4096, WriteMax: 8192}, nfsd.Export{FS: memfs.New(memfs.Options{MaxBytes: 1 << 20, MaxFiles: 100, MaxFileSize: 1 << 30, Mode: 0o777})})
	i := ok(b, do[nfs3.FSInfoRes](b, alice, nfs3.ProcFSInfo, &nfs3.HandleArgs{Handle: b.root}))
	if i.ReadMax != 4096 || i.ReadPref != 4096 || i.WriteMax != 8192 || i.WritePref != 8192 || i.DirPref == 0 || i.MaxFileSize != 1<<30 || i.TimeDelta != (nfs3.Time{Nanoseconds: 1}) ||
		i.Properties != nfs3.FSFLink|nfs3.FSFSymlink|nfs3.FSFHomogeneous|nfs3.FSFCanSetTime || !i.Attr.Present {
		t.Errorf("FSINFO %+v", i)
	}
	s := ok(b, do[nfs3.FSStatRes](b, alice, nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: b.root}))
	if s.TotalBytes != 1<<20 || s.FreeBytes > s.TotalBytes || s.AvailBytes > s.FreeBytes || s.TotalFiles == 0 || s.FreeFiles > s.TotalFiles || !s.Attr.Present {
		t.Errorf("FSSTAT %+v", s)
	}
	h := b.create(alice, b.root, "file", 0o600)
	ok(b, b.write(alice, h, 0, strings.Repeat("x", 8192)))
	if now := ok(b, do[nfs3.FSStatRes](b, alice, nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: h})); now.FreeBytes >= s.FreeBytes || now.FreeFiles >= s.FreeFiles {
		t.Errorf("FSSTAT %+v after %+v", now, s)
	}
	c := ok(b, do[nfs3.PathConfRes](b, alice, nfs3.ProcPathConf, &nfs3.HandleArgs{Handle: b.root}))
	if c.MaxName != 255 || c.MaxLinks != memfs.MaxLinks || !c.NoTruncate || !c.ChownRestricted || c.CaseInsensitive || !c.CasePreserving || !c.Attr.Present {
		t.Errorf("PATHCONF %+v", c)
	}
}
