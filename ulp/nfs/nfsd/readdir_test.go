package nfsd_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
)

// list lists a directory by READDIR, so many bytes at a time.
func (b *bed) list(who *user, dir nfs3.Handle, count uint32) (all []nfs3.Entry) {
	b.Helper()
	a := nfs3.ReadDirArgs{Dir: dir, Count: count}
	for {
		r := ok(b, do[nfs3.ReadDirRes](b, who, nfs3.ProcReadDir, &a))
		if n := r.Size(); n > int(count) {
			b.Fatalf("%d bytes; there were to be %d", n, count)
		}
		all = append(all, r.Entries...)
		if r.EOF {
			return all
		}
		if len(r.Entries) == 0 {
			b.Fatal("nothing, and no end")
		}
		a.Cookie, a.Verifier = r.Entries[len(r.Entries)-1].Cookie, r.Verifier
	}
}

func (b *bed) listPlus(who *user, dir nfs3.Handle, dirCount, maxCount uint32) (all []nfs3.EntryPlus) {
	b.Helper()
	a := nfs3.ReadDirPlusArgs{Dir: dir, DirCount: dirCount, MaxCount: maxCount}
	for {
		r := ok(b, do[nfs3.ReadDirPlusRes](b, who, nfs3.ProcReadDirPlus, &a))
		if n := r.Size(); n > int(maxCount) {
			b.Fatalf("%d bytes; there were to be %d", n, maxCount)
		}
		names := 0
		for i := range r.Entries {
			names += r.Entries[i].Entry.Size()
		}
		if names > int(dirCount) && len(r.Entries) > 1 {
			b.Fatalf("%d bytes of names; there were to be %d", names, dirCount)
		}
		all = append(all, r.Entries...)
		if r.EOF {
			return all
		}
		if len(r.Entries) == 0 {
			b.Fatal("nothing, and no end")
		}
		a.Cookie, a.Verifier = r.Entries[len(r.Entries)-1].Cookie, r.Verifier
	}
}

func TestDirectoriesAreListedWhole(t *testing.T) {
	b := tree(t)
	dir := b.mkdir(alice, b.root, "dir", 0o755)
	want := map[string]nfs3.Handle{".": dir, "..": b.root}
	for i := range 100 {
		name := fmt.Sprintf("%d%s", i, strings.Repeat("x", i))
		want[name] = b.create(alice, dir, name, 0o600)
	}
	names := slices.Sorted(maps.Keys(want))
	for _, count := range []uint32{300, 512, 1 << 12, 1 << 16, 1<<32 - 1} {
		got := b.list(bob, dir, count)
		var is []string
		for _, e := range got {
			is = append(is, e.Name)
			if h := want[e.Name]; e.FileID != b.getAttr(h).FileID {
				t.Errorf("%q is file %d", e.Name, e.FileID)
			}
		}
		if is[0] != "." || is[1] != ".." {
			t.Errorf("it begins with %q", is[:2])
		}
		if slices.Sort(is); !slices.Equal(is, names) {
			t.Errorf("%d bytes at a time: %d names of %d", count, len(is), len(names))
		}
	}
	for _, count := range [][2]uint32{{0, 1024}, {100, 1 << 16}, {1 << 12, 1 << 10}, {1 << 16, 1 << 20}, {1<<32 - 1, 1<<32 - 1}} {
		got := b.listPlus(bob, dir, count[0], count[1])
		var is []string
		for _, e := range got {
			is = append(is, e.Name)
			if !e.Handle.Present || e.Handle.Handle != want[e.Name] || !e.Attr.Present || e.Attr.Attr != b.getAttr(e.Handle.Handle) || e.FileID != e.Attr.Attr.FileID {
				t.Errorf("%q is %+v", e.Name, e)
			}
		}
		if slices.Sort(is); !slices.Equal(is, names) {
			t.Errorf("%d bytes at a time: %d names of %d", count, len(is), len(names))
		}
	}
	if got := b.list(bob, b.root, 1024); got[0].FileID != got[1].FileID {
		t.Errorf(".. of the export is %d, . is %d", got[1].FileID, got[0].FileID)
	}
}

func TestListingsAreForThoseWhoMayRead(t *testing.T) {
	b := tree(t)
	file := b.create(alice, b.root, "file", 0o644)
	for _, tc := range []struct {
		mode uint32
		who  *user
		want nfs3.Status
		plus bool // what the names name is told
	}{
		{0o755, bob, nfs3.OK, true}, {0o751, bob, nfs3.ErrAcces, false}, {0o754, bob, nfs3.OK, false}, {0o000, alice, nfs3.ErrAcces, false}, {0o000, root, nfs3.OK, true},
	} {
		dir := b.mkdir(alice, b.root, fmt.Sprintf("%o%v", tc.mode, tc.who), 0o755)
		b.create(alice, dir, "secret", 0o600)
		ok(b, b.setAttr(alice, dir, nfs3.SetAttr{Mode: &tc.mode}))
		r := do[nfs3.ReadDirRes](b, tc.who, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: dir, Count: 4096})
		p := do[nfs3.ReadDirPlusRes](b, tc.who, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: dir, DirCount: 4096, MaxCount: 4096})
		b.want("READDIR", r, tc.want)
		b.want("READDIRPLUS", p, tc.want)
		if !r.Dir.Present || !p.Dir.Present {
			t.Error("no attributes of the directory")
		}
		for _, e := range p.Entries {
			if e.Attr.Present != tc.plus || e.Handle.Present != tc.plus {
				t.Errorf("mode %o tells %+v of %+v", tc.mode, tc.who, e)
			}
		}
	}
	b.want("READDIR of a file", do[nfs3.ReadDirRes](b, root, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: file, Count: 4096}), nfs3.ErrNotDir)
	b.want("READDIRPLUS of a file", do[nfs3.ReadDirPlusRes](b, root, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: file, MaxCount: 4096}), nfs3.ErrNotDir)
}

func TestListingsNeedRoomAndTheirCookies(t *testing.T) {
	b := tree(t)
	b.create(alice, b.root, "file", 0o644)
	for count, want := range map[uint32]nfs3.Status{0: nfs3.ErrTooSmall, 104: nfs3.ErrTooSmall, 131: nfs3.ErrTooSmall, 132: nfs3.OK} {
		// 88 bytes of attributes, 8 of the verifier, 8 of the ends, and 28 of ".".
		r := do[nfs3.ReadDirRes](b, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: b.root, Count: count})
		b.want(fmt.Sprintf("READDIR of %d bytes", count), r, want)
		if want == nfs3.OK && (len(r.Entries) != 1 || r.EOF) {
			t.Errorf("%+v", r)
		}
		b.want("READDIRPLUS", do[nfs3.ReadDirPlusRes](b, alice, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: b.root, DirCount: 4096, MaxCount: count}), nfs3.ErrTooSmall)
	}
	r := ok(b, do[nfs3.ReadDirRes](b, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: b.root, Count: 4096}))
	if r.Verifier == (nfs3.Verifier{}) || len(r.Entries) != 3 || !r.EOF {
		t.Fatalf("%+v", r)
	}
	for i, e := range r.Entries {
		rest := ok(b, do[nfs3.ReadDirRes](b, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: b.root, Count: 4096, Cookie: e.Cookie, Verifier: r.Verifier}))
		if len(rest.Entries) != 2-i || !rest.EOF {
			t.Errorf("behind %q: %+v", e.Name, rest)
		}
		b.want("a cookie with another verifier", do[nfs3.ReadDirRes](b, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: b.root, Count: 4096, Cookie: e.Cookie, Verifier: nfs3.Verifier{1}}), nfs3.ErrBadCookie)
		b.want("a cookie without a verifier", do[nfs3.ReadDirPlusRes](b, alice, nfs3.ProcReadDirPlus, &nfs3.ReadDirPlusArgs{Dir: b.root, MaxCount: 4096, Cookie: e.Cookie}), nfs3.ErrBadCookie)
	}
	// Cookies outlive the server, as the filesystem does.
	other := on(t, nfsd.Config{}, nfsd.Export{FS: b.fs, Squash: nfsd.SquashNone})
	rest := ok(b, do[nfs3.ReadDirRes](other, alice, nfs3.ProcReadDir, &nfs3.ReadDirArgs{Dir: other.root, Count: 4096, Cookie: r.Entries[1].Cookie, Verifier: r.Verifier}))
	if len(rest.Entries) != 1 || rest.Entries[0].Name != "file" {
		t.Errorf("after the server has started again: %+v", rest)
	}
}
