package nfsd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
)

func TestLookupFindsNamesAndNothingElse(t *testing.T) {
	b := tree(t)
	dir := b.mkdir(alice, b.root, "dir", 0o755)
	shut := b.mkdir(alice, b.root, "shut", 0o700)
	file := b.create(alice, dir, "file", 0o644)
	b.create(alice, shut, "file", 0o644)
	link := b.symlink(alice, dir, "/etc")
	for _, tc := range []struct {
		name string
		who  *user
		dir  nfs3.Handle
		what string
		want nfs3.Status
	}{
		{"a name", bob, dir, "file", nfs3.OK},
		{"no such name", bob, dir, "files", nfs3.ErrNoEnt},
		{"an empty name", bob, dir, "", nfs3.ErrAcces},
		{"a path", bob, b.root, "dir/file", nfs3.ErrAcces},
		{"a way out", bob, dir, "../..", nfs3.ErrAcces},
		{"NUL", bob, dir, "file\x00", nfs3.ErrAcces},
		{"a long name", bob, dir, strings.Repeat("x", 256), nfs3.ErrNameTooLong},
		{"the longest name", bob, dir, strings.Repeat("x", 255), nfs3.ErrNoEnt},
		{"a name in a file", bob, file, "file", nfs3.ErrNotDir},
		{"a name behind a symbolic link", bob, link, "passwd", nfs3.ErrNotDir},
		{"a name in a directory that is shut", bob, shut, "file", nfs3.ErrAcces},
		{"the same for its owner", alice, shut, "file", nfs3.OK},
		{"the same for the superuser", root, shut, "file", nfs3.OK},
		{". of a directory that is shut", bob, shut, ".", nfs3.ErrAcces},
	} {
		r := b.lookup(tc.who, tc.dir, tc.what)
		b.want(tc.name, r, tc.want)
		if !r.Dir.Present || r.Status == nfs3.OK && r.Attr.Attr != b.getAttr(r.Object) {
			t.Errorf("%s: attributes of the directory %t, of the file %+v", tc.name, r.Dir.Present, r.Attr)
		}
	}
	for what, want := range map[string]struct{ dir, is nfs3.Handle }{
		".": {dir, dir}, "..": {dir, b.root}, "file": {dir, file}, "link": {dir, link},
	} {
		if r := ok(b, b.lookup(bob, want.dir, what)); r.Object != want.is {
			t.Errorf("%s is %v; want %v", what, r.Object, want.is)
		}
	}
	if r := ok(b, b.lookup(bob, b.root, "..")); r.Object != b.root {
		t.Errorf("there is something above the export: %v", r.Object)
	}
	if r := ok(b, do[nfs3.ReadLinkRes](b, bob, nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: link})); string(r.Path) != "/etc" || !r.Attr.Present {
		t.Errorf("the link says %q", r.Path)
	}
	b.want("READLINK of a file", do[nfs3.ReadLinkRes](b, bob, nfs3.ProcReadLink, &nfs3.HandleArgs{Handle: file}), nfs3.ErrInval)
}

func TestAccessIsWhatTheModeSays(t *testing.T) {
	const r, l, m, e, d, x = nfs3.AccessRead, nfs3.AccessLookup, nfs3.AccessModify, nfs3.AccessExtend, nfs3.AccessDelete, nfs3.AccessExecute
	b := tree(t)
	ro := on(t, nfsd.Config{}, nfsd.Export{FS: b.fs, ReadOnly: true, Squash: nfsd.SquashNone})
	group := &user{uid: 1002, gid: 300, groups: []uint32{1, 100}}
	for _, tc := range []struct {
		who      *user
		mode     uint32
		file     uint32
		dir      uint32
		readOnly uint32
	}{
		{alice, 0o700, r | m | e | x, r | l | m | e | d, r | x},
		{alice, 0o077, 0, 0, 0}, // ACCESS knows no special right of owners (RFC 1813 §4.4)
		{alice, 0o400, r, r, r},
		{group, 0o070, r | m | e | x, r | l | m | e | d, r | x},
		{group, 0o707, 0, 0, 0},
		{bob, 0o007, r | m | e | x, r | l | m | e | d, r | x},
		{bob, 0o770, 0, 0, 0},
		{bob, 0o005, r | x, r | l, r | x},
		{bob, 0o002, m | e, m | e | d, 0},
		{nil, 0o004, r, r, r},
		{root, 0o000, r | m | e, r | l | m | e | d, r},
		{root, 0o001, r | m | e | x, r | l | m | e | d, r | x},
	} {
		name := fmt.Sprintf("%+v, %o", tc.who, tc.mode)
		file := b.create(alice, b.root, name, tc.mode)
		dir := b.mkdir(alice, b.root, "dir of "+name, tc.mode)
		access := func(b *bed, h nfs3.Handle, ask uint32) uint32 {
			return ok(b, do[nfs3.AccessRes](b, tc.who, nfs3.ProcAccess, &nfs3.AccessArgs{Object: h, Access: ask})).Access
		}
		if got := access(b, file, 0xff); got != tc.file {
			t.Errorf("%s: file %#x; want %#x", name, got, tc.file)
		}
		if got := access(b, dir, 0xff); got != tc.dir {
			t.Errorf("%s: directory %#x; want %#x", name, got, tc.dir)
		}
		if got := access(ro, file, 0xff); got != tc.readOnly {
			t.Errorf("%s: read-only %#x; want %#x", name, got, tc.readOnly)
		}
		if got := access(b, file, r); got != tc.file&r {
			t.Errorf("%s: asked for one it says %#x", name, got)
		}
	}
}

func TestSetAttrLetsEachChangeWhatIsTheirs(t *testing.T) {
	b := tree(t)
	u32 := func(v uint32) *uint32 { return &v }
	now := nfs3.SetTime{How: nfs3.SetToServerTime}
	then := nfs3.SetTime{How: nfs3.SetToClientTime, Time: nfs3.Time{Seconds: 12345, Nanoseconds: 678}}
	for _, tc := range []struct {
		name string
		who  *user
		mode uint32 // of the file, alice's and of the group 100
		set  nfs3.SetAttr
		want nfs3.Status
		then uint32 // the mode after it
	}{
		{"the owner sets the mode", alice, 0o644, nfs3.SetAttr{Mode: u32(0o4755)}, nfs3.OK, 0o4755},
		{"more bits than there are", alice, 0o644, nfs3.SetAttr{Mode: u32(0o100755)}, nfs3.OK, 0o755},
		{"somebody sets the mode", bob, 0o666, nfs3.SetAttr{Mode: u32(0o777)}, nfs3.ErrPerm, 0o666},
		{"the superuser sets the mode", root, 0o644, nfs3.SetAttr{Mode: u32(0o2777)}, nfs3.OK, 0o2777},
		{"the owner gives it away", alice, 0o644, nfs3.SetAttr{UID: u32(1001)}, nfs3.ErrPerm, 0o644},
		{"somebody takes it", bob, 0o666, nfs3.SetAttr{UID: u32(1001)}, nfs3.ErrPerm, 0o666},
		{"the owner keeps it", alice, 0o644, nfs3.SetAttr{UID: u32(1000)}, nfs3.OK, 0o644},
		{"the superuser gives it away", root, 0o6755, nfs3.SetAttr{UID: u32(1001)}, nfs3.OK, 0o755},
		{"without losing a mandatory lock", root, 0o6745, nfs3.SetAttr{UID: u32(1001)}, nfs3.OK, 0o2745},
		{"the owner gives it to an own group", alice, 0o6755, nfs3.SetAttr{GID: u32(102)}, nfs3.OK, 0o755},
		{"the owner gives it to another group", alice, 0o644, nfs3.SetAttr{GID: u32(200)}, nfs3.ErrPerm, 0o644},
		{"somebody gives it to an own group", bob, 0o666, nfs3.SetAttr{GID: u32(200)}, nfs3.ErrPerm, 0o666},
		{"somebody gives it to its group", bob, 0o666, nfs3.SetAttr{GID: u32(100)}, nfs3.ErrPerm, 0o666},
		{"set-group-ID of an own group", alice, 0o644, nfs3.SetAttr{Mode: u32(0o2755), GID: u32(101)}, nfs3.OK, 0o755}, // as a new group takes it
		{"the owner cuts it", alice, 0o444, nfs3.SetAttr{Size: new(uint64(1))}, nfs3.OK, 0o444},
		{"who may write cuts it", bob, 0o6777, nfs3.SetAttr{Size: new(uint64(1))}, nfs3.OK, 0o777},
		{"who may not write cuts it", bob, 0o644, nfs3.SetAttr{Size: new(uint64(1))}, nfs3.ErrAcces, 0o644},
		{"it becomes too large", alice, 0o644, nfs3.SetAttr{Size: new(uint64(1 << 63))}, nfs3.ErrFBig, 0o644},
		{"the owner touches it", alice, 0o444, nfs3.SetAttr{Atime: now, Mtime: now}, nfs3.OK, 0o444},
		{"who may write touches it", bob, 0o666, nfs3.SetAttr{Atime: now, Mtime: now}, nfs3.OK, 0o666},
		{"who may not write touches it", bob, 0o644, nfs3.SetAttr{Mtime: now}, nfs3.ErrAcces, 0o644},
		{"the owner sets a time", alice, 0o444, nfs3.SetAttr{Atime: then, Mtime: then}, nfs3.OK, 0o444},
		{"who may write sets a time", bob, 0o666, nfs3.SetAttr{Mtime: then}, nfs3.ErrPerm, 0o666},
		{"who may write sets the other time", bob, 0o666, nfs3.SetAttr{Atime: then}, nfs3.ErrPerm, 0o666},
		{"a time that is none", alice, 0o644, nfs3.SetAttr{Mtime: nfs3.SetTime{How: nfs3.SetToClientTime, Time: nfs3.Time{Nanoseconds: 1e9}}}, nfs3.ErrInval, 0o644},
		{"nothing", bob, 0o600, nfs3.SetAttr{}, nfs3.OK, 0o600},
		{"an anonymous caller sets the mode", nil, 0o666, nfs3.SetAttr{Mode: u32(0o777)}, nfs3.ErrPerm, 0o666},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := b.create(alice, b.root, tc.name, 0o600)
			ok(b, b.write(alice, h, 0, "data"))
			ok(b, b.setAttr(root, h, nfs3.SetAttr{Mode: &tc.mode, Mtime: then}))
			before := b.getAttr(h)
			r := b.setAttr(tc.who, h, tc.set)
			if r.Status != tc.want {
				t.Errorf("%v; want %v", r.Status.String(), tc.want.String())
			}
			after := b.getAttr(h)
			if after.Mode != tc.then {
				t.Errorf("mode %o; want %o", after.Mode, tc.then)
			}
			if r.Wcc.Before.Ctime != before.Ctime || r.Wcc.After.Attr != after {
				t.Errorf("cache consistency %+v, from %+v to %+v", r.Wcc, before, after)
			}
			if tc.want != nfs3.OK && after != before {
				t.Errorf("it fails, and makes %+v of %+v", after, before)
			}
			if tc.want != nfs3.OK {
				return
			}
			if tc.set.Size != nil && (after.Size != *tc.set.Size || after.Mtime == before.Mtime) ||
				tc.set.UID != nil && after.UID != *tc.set.UID || tc.set.GID != nil && after.GID != *tc.set.GID ||
				tc.set.Mtime == now && time.Since(after.Mtime.Time()).Abs() > time.Hour || tc.set.Mtime == then && after.Mtime != then.Time ||
				tc.set.Atime == then && after.Atime != then.Time {
				t.Errorf("%+v becomes %+v", tc.set, after)
			}
		})
	}
}

func TestSetAttrIsGuarded(t *testing.T) {
	b := tree(t)
	h := b.create(alice, b.root, "file", 0o644)
	ctime := b.getAttr(h).Ctime
	set := func(guard nfs3.Time, mode uint32) *nfs3.WccRes {
		return do[nfs3.WccRes](b, alice, nfs3.ProcSetAttr, &nfs3.SetAttrArgs{Object: h, Attr: nfs3.SetAttr{Mode: &mode}, Guard: &guard})
	}
	b.want("with another ctime", set(nfs3.Time{Seconds: ctime.Seconds, Nanoseconds: ctime.Nanoseconds + 1}, 0o600), nfs3.ErrNotSync)
	if m := b.getAttr(h).Mode; m != 0o644 {
		t.Errorf("mode %o all the same", m)
	}
	r := set(ctime, 0o600)
	b.want("with the ctime", r, nfs3.OK)
	b.want("with the ctime of before", set(ctime, 0o666), nfs3.ErrNotSync)
	b.want("with the ctime of the reply", set(r.Wcc.After.Attr.Ctime, 0o666), nfs3.OK)
}

func TestOnlyRegularFilesHaveASizeToSet(t *testing.T) {
	b := tree(t)
	cut := nfs3.SetAttr{Size: new(uint64(0))}
	b.want("of a directory", b.setAttr(alice, b.mkdir(alice, b.root, "dir", 0o755), cut), nfs3.ErrIsDir)
	b.want("of a symbolic link", b.setAttr(alice, b.symlink(alice, b.root, "x"), cut), nfs3.ErrInval)
	dir := b.mkdir(alice, b.root, "set-group-ID", 0o2755)
	ok(b, b.setAttr(root, dir, nfs3.SetAttr{UID: new(uint32(1001))}))
	if a := b.getAttr(dir); a.UID != 1001 || a.Mode != 0o2755 {
		t.Errorf("a directory that is given away becomes %+v", a)
	}
}
