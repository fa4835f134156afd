package nfsd_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
)

// faulty is a filesystem whose changes fail. What it embeds must not be memfs itself, which
// says that it loses nothing.
type faulty struct {
	vfs.FS
	fail   error
	write  func(sync bool) // before each Write
	commit func()          // after each Commit
}

func (f *faulty) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	if f.write != nil {
		f.write(sync)
	}
	if f.fail != nil {
		return f.fail
	}
	return f.FS.Write(ctx, h, p, off, sync)
}

func (f *faulty) Commit(ctx context.Context, h vfs.Handle, off, n uint64) error {
	if f.commit != nil {
		defer f.commit()
	}
	return errors.Join(f.fail, f.FS.Commit(ctx, h, off, n))
}

func (f *faulty) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	a, err := f.FS.SetAttr(ctx, h, s)
	return a, errors.Join(f.fail, err)
}

func (f *faulty) Create(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	if f.fail != nil {
		return "", vfs.Attr{}, f.fail
	}
	return f.FS.Create(ctx, dir, name, s)
}

func (f *faulty) Mkdir(ctx context.Context, dir vfs.Handle, name string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	if f.fail != nil {
		return "", vfs.Attr{}, f.fail
	}
	return f.FS.Mkdir(ctx, dir, name, s)
}

func (f *faulty) Symlink(ctx context.Context, dir vfs.Handle, name, target string, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	if f.fail != nil {
		return "", vfs.Attr{}, f.fail
	}
	return f.FS.Symlink(ctx, dir, name, target, s)
}

func (f *faulty) Mknod(ctx context.Context, dir vfs.Handle, name string, t vfs.Type, major, minor uint32, s vfs.SetAttr) (vfs.Handle, vfs.Attr, error) {
	if f.fail != nil {
		return "", vfs.Attr{}, f.fail
	}
	return f.FS.Mknod(ctx, dir, name, t, major, minor, s)
}

func (f *faulty) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, error) {
	if f.fail != nil {
		return vfs.Attr{}, f.fail
	}
	return f.FS.Link(ctx, h, dir, name)
}

func (f *faulty) Rename(ctx context.Context, from vfs.Handle, name string, to vfs.Handle, newName string) error {
	if f.fail != nil {
		return f.fail
	}
	return f.FS.Rename(ctx, from, name, to, newName)
}

func (f *faulty) Remove(ctx context.Context, dir vfs.Handle, name string) error {
	if f.fail != nil {
		return f.fail
	}
	return f.FS.Remove(ctx, dir, name)
}

func (f *faulty) Rmdir(ctx context.Context, dir vfs.Handle, name string) error {
	if f.fail != nil {
		return f.fail
	}
	return f.FS.Rmdir(ctx, dir, name)
}

func newFaulty(t *testing.T) (*faulty, *bed, nfs3.Handle) {
	t.Helper()
	fs := &faulty{FS: memfs.New(memfs.Options{Mode: 0o777})}
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	return fs, b, b.create(alice, b.root, "file", 0o644)
}

// verifier returns what a COMMIT returns.
func (b *bed) verifier(h nfs3.Handle) nfs3.Verifier {
	b.Helper()
	return ok(b, do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h})).Verifier
}

func (b *bed) writeStable(h nfs3.Handle, how nfs3.Stable) *nfs3.WriteRes {
	b.Helper()
	return do[nfs3.WriteRes](b, alice, nfs3.ProcWrite, &nfs3.WriteArgs{File: h, Stable: how, Data: []byte("data")})
}

// Whichever call gets the error of a disk, clients learn that what they have not committed
// may be lost. What was refused loses nothing.
func TestFailuresChangeTheVerifier(t *testing.T) {
	fs, b, h := newFaulty(t)
	b.mkdir(alice, b.root, "dir", 0o755)
	calls := []struct {
		name string
		do   func() nfs3.Result
	}{
		{"WRITE, FILE_SYNC", func() nfs3.Result { return b.writeStable(h, nfs3.FileSync) }},
		{"WRITE, DATA_SYNC", func() nfs3.Result { return b.writeStable(h, nfs3.DataSync) }},
		{"WRITE, UNSTABLE", func() nfs3.Result { return b.writeStable(h, nfs3.Unstable) }},
		{"COMMIT", func() nfs3.Result { return do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}) }},
		{"SETATTR of the size", func() nfs3.Result { return b.setAttr(alice, h, nfs3.SetAttr{Size: new(uint64)}) }},
		{"SETATTR of the mode", func() nfs3.Result { return b.setAttr(alice, h, nfs3.SetAttr{Mode: new(uint32(0o600))}) }},
		{"CREATE", func() nfs3.Result {
			return do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "new"), Mode: nfs3.Guarded})
		}},
		{"CREATE, EXCLUSIVE", func() nfs3.Result {
			return do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "new"), Mode: nfs3.Exclusive})
		}},
		{"MKDIR", func() nfs3.Result {
			return do[nfs3.NewRes](b, alice, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: at(b.root, "new")})
		}},
		{"SYMLINK", func() nfs3.Result {
			return do[nfs3.NewRes](b, alice, nfs3.ProcSymlink, &nfs3.SymlinkArgs{Where: at(b.root, "new"), Path: "x"})
		}},
		{"MKNOD", func() nfs3.Result {
			return do[nfs3.NewRes](b, alice, nfs3.ProcMknod, &nfs3.MknodArgs{Where: at(b.root, "new"), Type: nfs3.FIFO})
		}},
		{"LINK", func() nfs3.Result {
			return do[nfs3.LinkRes](b, alice, nfs3.ProcLink, &nfs3.LinkArgs{File: h, Link: at(b.root, "new")})
		}},
		{"RENAME", func() nfs3.Result {
			return do[nfs3.RenameRes](b, alice, nfs3.ProcRename, &nfs3.RenameArgs{From: at(b.root, "file"), To: at(b.root, "new")})
		}},
		{"REMOVE", func() nfs3.Result { return do[nfs3.WccRes](b, alice, nfs3.ProcRemove, new(at(b.root, "file"))) }},
		{"RMDIR", func() nfs3.Result { return do[nfs3.WccRes](b, alice, nfs3.ProcRmdir, new(at(b.root, "dir"))) }},
	}
	for _, c := range calls {
		for _, tc := range []struct {
			err  error
			lost bool
		}{
			{vfs.ErrIO, true},
			{vfs.ErrNoSpace, true},
			{vfs.ErrQuota, true},
			{errors.New("none of vfs"), true},
			{errors.Join(vfs.ErrIO, vfs.ErrAccess), true},
			{vfs.ErrAccess, false},
			{vfs.ErrNotOwner, false},
			{vfs.ErrStale, false},
			{vfs.ErrTooBig, false},
			{vfs.ErrTryLater, false},
		} {
			if c.name == "COMMIT" && !tc.lost { // says nothing of what is there
				continue
			}
			before := b.verifier(h)
			fs.fail = tc.err
			if st := *c.do().Stat(); st == nfs3.OK {
				t.Errorf("%s: %v", c.name, st)
			}
			fs.fail = nil
			if after := b.verifier(h); (after != before) != tc.lost {
				t.Errorf("%s fails with %q: the verifier changes: %t, want %t", c.name, tc.err, after != before, tc.lost)
			}
		}
	}
	// The server's own refusals are no failures of the filesystem.
	before := b.verifier(h)
	b.want("WRITE of another", do[nfs3.WriteRes](b, bob, nfs3.ProcWrite, &nfs3.WriteArgs{File: h, Stable: nfs3.FileSync, Data: []byte("x")}), nfs3.ErrAcces)
	b.want("CREATE of a directory", do[nfs3.NewRes](b, alice, nfs3.ProcCreate, &nfs3.CreateArgs{Where: at(b.root, "dir")}), nfs3.ErrExist)
	if b.verifier(h) != before {
		t.Error("a refusal changes the verifier")
	}
}

// A WRITE returns the verifier from before it wrote: a loss that comes between it and the
// reply may be one of its data.
func TestWriteReturnsTheVerifierFromBefore(t *testing.T) {
	fs, b, h := newFaulty(t)
	fs.write = func(sync bool) {
		if !sync { // somebody else's call gets the error meanwhile
			fs.fail = vfs.ErrIO
			b.want("COMMIT", do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}), nfs3.ErrIO)
			fs.fail = nil
		}
	}
	if w := ok(b, b.writeStable(h, nfs3.Unstable)); w.Verifier == b.verifier(h) {
		t.Error("what is lost during a WRITE seems to be committed by the next COMMIT")
	}
}

// A COMMIT that finds nothing wrong, because another call has got the error and is about to
// say so, returns the new verifier.
func TestCommitWaitsForTheErrorsOfOthers(t *testing.T) {
	fs, b, h := newFaulty(t)
	before := ok(b, b.writeStable(h, nfs3.Unstable)).Verifier
	writing, committed, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	fs.write = func(bool) {
		close(writing)
		<-release
		fs.fail = vfs.ErrIO
	}
	fs.commit = func() { close(committed) }
	written := make(chan nfs3.Status)
	go func() { written <- *b.writeStable(h, nfs3.FileSync).Stat() }()
	<-writing
	done := make(chan nfs3.Verifier, 1)
	go func() { done <- do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: h}).Verifier }()
	<-committed
	for range 1000 { // time for a reply that does not wait
		runtime.Gosched()
	}
	close(release)
	if st := <-written; st != nfs3.ErrIO {
		t.Errorf("WRITE: %v", st)
	}
	if v := <-done; v == before {
		t.Error("the COMMIT has the old verifier")
	}
}

// counting is a filesystem that counts losses.
type counting struct {
	*faulty
	losses uint64
}

func (c *counting) Losses() uint64 { return c.losses }

func TestLossesThatAreCountedChangeTheVerifier(t *testing.T) {
	fs := &counting{faulty: &faulty{FS: memfs.New(memfs.Options{Mode: 0o777})}}
	b := on(t, nfsd.Config{}, nfsd.Export{FS: fs, Squash: nfsd.SquashNone})
	h := b.create(alice, b.root, "file", 0o644)
	seen := map[nfs3.Verifier]bool{b.verifier(h): true}
	for range 10 {
		fs.losses++
		v := b.verifier(h)
		if seen[v] || v != ok(b, b.writeStable(h, nfs3.Unstable)).Verifier {
			t.Errorf("%x is not new, or not the same for all", v)
		}
		seen[v] = true
	}
	// A full disk has refused data, and lost none.
	before := b.verifier(h)
	fs.fail = vfs.ErrNoSpace
	b.want("WRITE to a full disk", b.writeStable(h, nfs3.FileSync), nfs3.ErrNoSpc)
	fs.fail = nil
	if b.verifier(h) != before {
		t.Error("a full disk changes the verifier")
	}
}

// What has the path of an export next may not have what the old one had.
func TestRemovedExportChangesTheVerifier(t *testing.T) {
	fs, b, h := newFaulty(t)
	before := b.verifier(h)
	b.server.RemoveExport("/tree")
	if err := b.server.AddExport(nfsd.Export{Path: "/tree", FS: fs, Squash: nfsd.SquashNone}); err != nil {
		t.Fatal(err)
	}
	if b.verifier(h) == before {
		t.Error("the verifier stays")
	}
}
