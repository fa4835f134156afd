package memfs

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/nfs/vfs"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// touch is Create without what the tests don't want to know.
func touch(t testing.TB, fs *FS, name string) vfs.Handle {
	t.Helper()
	h, _, err := fs.Create(t.Context(), fs.Root(), name, vfs.SetAttr{})
	return must(h, err)(t)
}

func TestHolesCostNothing(t *testing.T) {
	fs := New(Options{MaxBytes: 1 << 20})
	defer fs.Close()
	h := touch(t, fs, "f")
	empty := fs.bytes.Load()
	const far = 1 << 62
	if err := fs.Write(t.Context(), h, []byte("x"), far, false); err != nil {
		t.Fatal(err)
	}
	a := must(fs.GetAttr(t.Context(), h))(t)
	if a.Size != far+1 || a.Used > pageSize {
		t.Errorf("%d bytes, of which %d used", a.Size, a.Used)
	}
	p := []byte("yy")
	if n, end, err := fs.Read(t.Context(), h, p, far-1); n != 2 || !end || err != nil || p[0] != 0 || p[1] != 'x' {
		t.Errorf("Read: %d, %v, %v, %q", n, end, err, p)
	}
	size := uint64(0)
	must(fs.SetAttr(t.Context(), h, vfs.SetAttr{Size: &size}))(t)
	if n := fs.bytes.Load(); n != empty {
		t.Errorf("%d bytes are still counted", n-empty)
	}
}

func TestMaxBytes(t *testing.T) {
	const most = 1<<20 + 16*pageCost + nodeCost + fileCost + entryMin + 1 // one file of 1 MiB
	fs := New(Options{MaxBytes: most})
	defer fs.Close()
	h := touch(t, fs, "f")
	p := make([]byte, 1<<20)
	for i := range p {
		p[i] = byte(i)
	}
	if err := fs.Write(t.Context(), h, p, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := fs.Write(t.Context(), h, p, 0, false); err != nil {
		t.Errorf("writing again what is there: %v", err)
	}
	if err := fs.Write(t.Context(), h, p, 1<<20-1, false); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("one byte too many: %v", err)
	}
	// What could be written is there, and nothing else.
	a := must(fs.GetAttr(t.Context(), h))(t)
	if a.Size != 1<<20 || a.Used != 1<<20 {
		t.Errorf("%d bytes, %d used", a.Size, a.Used)
	}
	_, _, err := fs.Symlink(t.Context(), fs.Root(), "l", "target", vfs.SetAttr{})
	if !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Symlink: %v", err)
	}
	if st := must(fs.Stat(t.Context(), h))(t); st.FreeBytes != 0 || st.TotalBytes != most || st.FreeFiles != DefaultMaxFiles-1 {
		t.Errorf("Stat says %+v", st)
	}
	if err := fs.Remove(t.Context(), fs.Root(), "f"); err != nil {
		t.Fatal(err)
	}
	if n := fs.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
	g := touch(t, fs, "g")
	if err := fs.Write(t.Context(), g, p, 0, false); err != nil {
		t.Errorf("after the room is free again: %v", err)
	}
	if _, _, err := fs.Create(t.Context(), fs.Root(), "h", vfs.SetAttr{}); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("one more file: %v", err)
	}
	if err := fs.Rename(t.Context(), fs.Root(), "g", fs.Root(), "longer"); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("a longer name: %v", err)
	}
	if err := fs.Rename(t.Context(), fs.Root(), "g", fs.Root(), "k"); err != nil {
		t.Errorf("another name: %v", err)
	}
	must(fs.SetAttr(t.Context(), g, vfs.SetAttr{Size: new(uint64(1 << 19))}))(t)
	touch(t, fs, "h")
	one := int64(nodeCost + fileCost + nameCost("h"))
	if err := fs.Rename(t.Context(), fs.Root(), "h", fs.Root(), "k"); err != nil {
		t.Fatal(err)
	}
	if n := fs.bytes.Load() - one; n != 0 {
		t.Errorf("%d bytes of a replaced file are still counted", n)
	}
}

// Who was about to write when the last name went does not write any more.
func TestRemovedMeanwhile(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	n := must(fs.node(t.Context(), h))(t)
	if err := fs.Remove(t.Context(), fs.Root(), "f"); err != nil {
		t.Fatal(err)
	}
	fs.enter(n) // as if it had been looked up before
	if err := fs.Write(t.Context(), h, []byte("x"), 0, false); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("Write: %v, want %v", err, vfs.ErrStale)
	}
	if _, _, err := fs.Read(t.Context(), h, make([]byte, 1), 0); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("Read: %v, want %v", err, vfs.ErrStale)
	}
	if n := fs.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are counted", n)
	}
}

func TestMaxFiles(t *testing.T) {
	fs := New(Options{MaxFiles: 3})
	defer fs.Close()
	h := touch(t, fs, "a")
	touch(t, fs, "b")
	must(fs.Link(t.Context(), h, fs.Root(), "c"))(t)
	if _, err := fs.Link(t.Context(), h, fs.Root(), "d"); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Link: %v", err)
	}
	if a := must(fs.GetAttr(t.Context(), h))(t); a.Links != 2 {
		t.Errorf("%d links after one that failed, want 2", a.Links)
	}
	if _, _, err := fs.Mkdir(t.Context(), fs.Root(), "d", vfs.SetAttr{}); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Mkdir: %v", err)
	}
	if a := must(fs.GetAttr(t.Context(), fs.Root()))(t); a.Links != 2 {
		t.Errorf("the root has %d links after a Mkdir that failed, want 2", a.Links)
	}
	if err := fs.Rename(t.Context(), fs.Root(), "b", fs.Root(), "c"); err != nil {
		t.Fatal(err)
	}
	touch(t, fs, "d")
}

func TestMaxFileSize(t *testing.T) {
	fs := New(Options{MaxFileSize: 10})
	defer fs.Close()
	h := touch(t, fs, "f")
	if err := fs.Write(t.Context(), h, make([]byte, 10), 0, false); err != nil {
		t.Error(err)
	}
	if err := fs.Write(t.Context(), h, make([]byte, 2), 9, false); !errors.Is(err, vfs.ErrTooBig) {
		t.Error(err)
	}
}

func TestLinkCounts(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	fs.links = 4
	links := func(h vfs.Handle) uint32 { return must(fs.GetAttr(t.Context(), h))(t).Links }
	mkdir := func(dir vfs.Handle, name string) vfs.Handle {
		t.Helper()
		h, _, err := fs.Mkdir(t.Context(), dir, name, vfs.SetAttr{})
		return must(h, err)(t)
	}
	a, b := mkdir(fs.Root(), "a"), mkdir(fs.Root(), "b")
	sub := mkdir(a, "sub")
	if links(fs.Root()) != 4 || links(a) != 3 || links(b) != 2 || links(sub) != 2 {
		t.Error("Mkdir miscounts")
	}
	if _, _, err := fs.Mkdir(t.Context(), fs.Root(), "c", vfs.SetAttr{}); !errors.Is(err, vfs.ErrTooManyLinks) {
		t.Errorf("Mkdir: %v", err)
	}
	if err := fs.Rename(t.Context(), a, "sub", fs.Root(), "c"); !errors.Is(err, vfs.ErrTooManyLinks) {
		t.Errorf("Rename: %v", err)
	}
	if err := fs.Rename(t.Context(), a, "sub", fs.Root(), "b"); err != nil {
		t.Error(err)
	}
	if links(fs.Root()) != 4 || links(a) != 2 {
		t.Error("Rename over a directory miscounts")
	}
	if err := fs.Rename(t.Context(), fs.Root(), "b", a, "b"); err != nil {
		t.Error(err)
	}
	if links(fs.Root()) != 3 || links(a) != 3 {
		t.Error("Rename miscounts")
	}
	if err := fs.Rmdir(t.Context(), a, "b"); err != nil || links(a) != 2 {
		t.Errorf("Rmdir miscounts: %v", err)
	}
	f := touch(t, fs, "f")
	for i := range 3 {
		must(fs.Link(t.Context(), f, a, fmt.Sprint(i)))(t)
	}
	if _, err := fs.Link(t.Context(), f, a, "x"); !errors.Is(err, vfs.ErrTooManyLinks) {
		t.Errorf("Link: %v", err)
	}
}

// A change has a later time than the one before, however fast they follow each other.
func TestCtimeAdvances(t *testing.T) {
	synctest.Test(t, ctimeAdvances) // where the clock stands still
}

func ctimeAdvances(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	var last time.Time
	for i := range 1000 {
		if err := fs.Write(t.Context(), h, []byte{byte(i)}, 0, false); err != nil {
			t.Fatal(err)
		}
		a := must(fs.GetAttr(t.Context(), h))(t)
		if !a.Ctime.After(last) || !a.Mtime.Equal(a.Ctime) {
			t.Fatalf("Ctime %v, Mtime %v, before %v", a.Ctime, a.Mtime, last)
		}
		last = a.Ctime
	}
}

// Atime follows the first read behind a change, and not each.
func TestAtime(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	p := []byte("x")
	read := func() time.Time {
		t.Helper()
		if _, _, err := fs.Read(t.Context(), h, p, 0); err != nil {
			t.Fatal(err)
		}
		return must(fs.GetAttr(t.Context(), h))(t).Atime
	}
	if err := fs.Write(t.Context(), h, p, 0, false); err != nil {
		t.Fatal(err)
	}
	first := read()
	if a := must(fs.GetAttr(t.Context(), h))(t); !first.After(a.Mtime) {
		t.Errorf("Atime is %v, and Mtime %v", first, a.Mtime)
	}
	if again := read(); !again.Equal(first) {
		t.Error("Atime changes with each read")
	}
}

// Files of a few bytes take few.
func TestSmallFiles(t *testing.T) {
	fs := New(Options{})
	defer fs.Close()
	h := touch(t, fs, "f")
	var want []byte
	for range 300 {
		p := []byte("some bytes more ")
		if err := fs.Write(t.Context(), h, p, uint64(len(want)), false); err != nil {
			t.Fatal(err)
		}
		want = append(want, p...)
		if a := must(fs.GetAttr(t.Context(), h))(t); a.Used > max(smallest, 2*a.Size) {
			t.Fatalf("%d bytes take %d", a.Size, a.Used)
		}
	}
	got := make([]byte, len(want))
	if _, _, err := fs.Read(t.Context(), h, got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it holds %q, %v", got, err)
	}
}

func FuzzHandle(f *testing.F) {
	fs := New(Options{})
	f.Cleanup(func() { _ = fs.Close() })
	h, _, err := fs.Create(f.Context(), fs.Root(), "f", vfs.SetAttr{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(fs.Root()), "..")
	f.Add([]byte(h), "f")
	f.Add([]byte{}, "a/b")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		g, _, err := fs.Lookup(t.Context(), vfs.Handle(b), name)
		switch {
		case err == nil && (vfs.Handle(b) != fs.Root() || g != h && g != fs.Root()):
			t.Errorf("Lookup(%x, %q) = %x", b, name, g)
		case err != nil && vfs.Handle(b) != fs.Root() && vfs.Handle(b) != h && !errors.Is(err, vfs.ErrStale):
			t.Errorf("Lookup(%x, %q): %v", b, name, err)
		}
	})
}
