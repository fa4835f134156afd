package nfsd_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
)

func TestReadReturnsWhatIsThere(t *testing.T) {
	b := on(t, nfsd.Config{ReadMax: 512}, nfsd.Export{Squash: nfsd.SquashNone})
	h := b.create(alice, b.root, "file", 0o644)
	data := strings.Repeat("0123456789abcdef", 100)
	ok(b, b.write(alice, h, 0, data))
	for _, tc := range []struct {
		name  string
		off   uint64
		count uint32
		want  string
		eof   bool
	}{
		{"the beginning", 0, 16, data[:16], false},
		{"the middle", 500, 3, data[500:503], false},
		{"more than ReadMax", 100, 1000, data[100:612], false},
		{"up to the end", 1590, 10, data[1590:], true},
		{"beyond the end", 1590, 100, data[1590:], true},
		{"at the end", 1600, 10, "", true},
		{"behind the end", 5000, 10, "", true},
		{"far behind the end", math.MaxUint64, 10, "", true},
		{"nothing", 0, 0, "", false},
		{"4 GiB", 1000, math.MaxUint32, data[1000:1512], false},
	} {
		r := ok(b, do[nfs3.ReadRes](b, alice, nfs3.ProcRead, &nfs3.ReadArgs{File: h, Offset: tc.off, Count: tc.count}))
		if string(r.Data) != tc.want || r.EOF != tc.eof || !r.Attr.Present || r.Attr.Attr.Size != 1600 {
			t.Errorf("%s: %d bytes, %t, %+v", tc.name, len(r.Data), r.EOF, r.Attr)
		}
	}
	if r := ok(b, b.read(alice, b.create(alice, b.root, "empty", 0o644), 0, 10)); !r.EOF || len(r.Data) != 0 {
		t.Errorf("of an empty file: %+v", r)
	}
}

// RFC 1813 §4.4: the owner may have opened the file before its mode changed, and who may
// execute it reads it to do so.
func TestDataIsForWhomTheModeSays(t *testing.T) {
	b := tree(t)
	for _, tc := range []struct {
		who         *user
		mode        uint32
		read, write nfs3.Status
	}{
		{alice, 0o000, nfs3.OK, nfs3.OK},
		{bob, 0o660, nfs3.ErrAcces, nfs3.ErrAcces},
		{bob, 0o004, nfs3.OK, nfs3.ErrAcces},
		{bob, 0o001, nfs3.OK, nfs3.ErrAcces},
		{bob, 0o002, nfs3.ErrAcces, nfs3.OK},
		{&user{uid: 1002, gid: 1, groups: []uint32{100}}, 0o040, nfs3.OK, nfs3.ErrAcces},
		{&user{uid: 1002, gid: 1, groups: []uint32{100}}, 0o606, nfs3.ErrAcces, nfs3.ErrAcces},
		{root, 0o000, nfs3.OK, nfs3.OK},
		{nil, 0o066, nfs3.OK, nfs3.OK},
		{nil, 0o660, nfs3.ErrAcces, nfs3.ErrAcces},
	} {
		h := b.create(alice, b.root, "file", 0o600)
		ok(b, b.write(alice, h, 0, "data"))
		ok(b, b.setAttr(alice, h, nfs3.SetAttr{Mode: &tc.mode}))
		r := b.read(tc.who, h, 0, 10)
		w := b.write(tc.who, h, 0, "DATA")
		if r.Status != tc.read || w.Status != tc.write || !r.Attr.Present || !w.Wcc.After.Present {
			t.Errorf("%+v, %o: READ %v, WRITE %v", tc.who, tc.mode, r.Status.String(), w.Status.String())
		}
		if c := do[nfs3.CommitRes](b, tc.who, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}); c.Status != tc.write {
			t.Errorf("%+v, %o: COMMIT %v", tc.who, tc.mode, c.Status.String())
		}
		ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(b.root, "file"))))
	}
	// RFC 1813 §3.3.6: not NFS3ERR_ISDIR.
	for _, h := range []nfs3.Handle{b.root, b.symlink(alice, b.root, "x")} {
		b.want("READ", b.read(root, h, 0, 1), nfs3.ErrInval)
		b.want("WRITE", b.write(root, h, 0, "x"), nfs3.ErrInval)
		b.want("COMMIT", do[nfs3.CommitRes](b, root, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}), nfs3.ErrInval)
	}
}

// recorder says how data was written.
type recorder struct {
	vfs.FS
	calls []string
	fail  error // of Commit
}

func (r *recorder) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	r.calls = append(r.calls, map[bool]string{true: "write, sync", false: "write"}[sync])
	return r.FS.Write(ctx, h, p, off, sync)
}

func (r *recorder) Commit(ctx context.Context, h vfs.Handle, off, n uint64) error {
	r.calls = append(r.calls, "commit")
	return errors.Join(r.fail, r.FS.Commit(ctx, h, off, n))
}

func TestWritesAreAsStableAsIsAsked(t *testing.T) {
	fs := &recorder{FS: memfs.New(memfs.Options{Mode: 0o777})}
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	h := b.create(alice, b.root, "file", 0o644)
	var verifier nfs3.Verifier
	for stable, want := range map[nfs3.Stable]string{nfs3.Unstable: "write", nfs3.DataSync: "write, sync", nfs3.FileSync: "write, sync"} {
		fs.calls = nil
		r := ok(b, do[nfs3.WriteRes](b, alice, nfs3.ProcWrite, &nfs3.WriteArgs{File: h, Stable: stable, Data: []byte("data")}))
		if strings.Join(fs.calls, "; ") != want || r.Committed < stable || r.Count != 4 {
			t.Errorf("stable_how %d: %q, committed %d, %d bytes", stable, fs.calls, r.Committed, r.Count)
		}
		if stable == nfs3.Unstable && r.Committed != nfs3.Unstable {
			t.Errorf("nobody has committed it: %d", r.Committed)
		}
		verifier = r.Verifier
	}
	fs.calls = nil
	c := ok(b, do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h, Offset: 1, Count: 2}))
	if c.Verifier != verifier || strings.Join(fs.calls, "; ") != "commit" || !c.Wcc.After.Present {
		t.Errorf("COMMIT: %+v, %q, the verifier was %x", c, fs.calls, verifier)
	}

	// What could not be committed may be lost: all have to know.
	fs.fail = vfs.ErrIO
	b.want("COMMIT to a bad disk", do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}), nfs3.ErrIO)
	fs.fail = nil
	again := ok(b, b.write(alice, h, 0, "x")).Verifier
	if again == verifier {
		t.Error("the verifier stays when data was lost")
	}
	if c := ok(b, do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h})); c.Verifier != again {
		t.Errorf("the verifier changes from %x to %x for no reason", again, c.Verifier)
	}
	// Another instance of the server may have lost what this one had not committed.
	other := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	if v := ok(other, other.write(alice, h, 0, "x")).Verifier; v == again {
		t.Error("the verifier outlives the server")
	}
}

func TestWriteWritesWhatItMay(t *testing.T) {
	b := on(t, nfsd.Config{WriteMax: 512}, nfsd.Export{FS: memfs.New(memfs.Options{Mode: 0o777, MaxFileSize: 1 << 20}), Squash: nfsd.SquashNone})
	h := b.create(alice, b.root, "file", 0o644)
	if r := ok(b, b.write(alice, h, 0, strings.Repeat("x", 1000))); r.Count != 512 || r.Wcc.After.Attr.Size != 512 {
		t.Errorf("more than WriteMax: %+v", r)
	}
	ctime := b.getAttr(h).Ctime
	if r := ok(b, b.write(alice, h, 100, "")); r.Count != 0 || b.getAttr(h).Ctime != ctime {
		t.Errorf("nothing: %+v", r)
	}
	if r := ok(b, b.write(alice, h, math.MaxUint64, "")); r.Count != 0 {
		t.Errorf("nothing, far off: %+v", r)
	}
	for off, want := range map[uint64]nfs3.Status{1<<20 - 1: nfs3.OK, 1 << 20: nfs3.ErrFBig, 1 << 63: nfs3.ErrFBig, math.MaxUint64: nfs3.ErrFBig} {
		b.want("far off", b.write(alice, h, off, "x"), want)
	}
	if r := ok(b, b.read(alice, h, 510, 4)); !bytes.Equal(r.Data, []byte("xx\x00\x00")) {
		t.Errorf("a hole has %q", r.Data)
	}
}

func TestNewContentTakesPrivilegesAway(t *testing.T) {
	b := tree(t)
	for _, tc := range []struct {
		who        *user
		mode, then uint32
	}{{alice, 0o6755, 0o755}, {bob, 0o4777, 0o777}, {alice, 0o2745, 0o2745}, {root, 0o6755, 0o6755}, {alice, 0o755, 0o755}} {
		h := b.create(alice, b.root, "file", 0o600)
		ok(b, b.setAttr(alice, h, nfs3.SetAttr{Mode: &tc.mode}))
		ok(b, b.write(tc.who, h, 0, "x"))
		if m := b.getAttr(h).Mode; m != tc.then {
			t.Errorf("%o becomes %o when %+v writes; want %o", tc.mode, m, tc.who, tc.then)
		}
		ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(b.root, "file"))))
	}
}
