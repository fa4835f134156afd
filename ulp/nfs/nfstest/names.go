package nfstest

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfs3"
)

// names returns the names in a directory, sorted.
func (w *world) names(c *nfs.Client, dir string) []string {
	w.Helper()
	entries, err := c.ReadDir(w.ctx, dir)
	w.must(err)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func (w *world) lists(dir string, want ...string) {
	w.Helper()
	if got := w.names(w.c, dir); !slices.Equal(got, want) {
		w.Errorf("%s has %q, not %q", dir, got, want)
	}
}

// tree makes a tree of files, walks it, reads all of it, and removes it.
func tree(w *world) {
	files := map[string][]byte{}
	r := rand.New(rand.NewPCG(5, 6))
	dirs := []string{w.path("tree")}
	for i := range 12 {
		dirs = append(dirs, path.Join(dirs[r.IntN(len(dirs))], fmt.Sprint("d", i)))
	}
	for _, d := range dirs {
		w.must(w.c.MkdirAll(w.ctx, d, 0o755))
		for i := range r.IntN(8) {
			data := pattern(len(files)).data(r.IntN(1<<uint(r.IntN(17))), 0)
			name := path.Join(d, fmt.Sprint("file ", i, ".ä"))
			files[name] = data
			w.write(name, data)
		}
	}
	other := w.dial()
	found := 0
	w.must(fs.WalkDir(other.FS().WithContext(w.ctx), dirs[0], func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, known := files[name]
		if !known || info.Size() != int64(len(data)) {
			w.Errorf("%s of %d bytes: want %d bytes, %v", name, info.Size(), len(data), known)
			return nil
		}
		w.holds(other, name, data)
		return nil
	}))
	if found != len(files) {
		w.Errorf("%d files were found of %d", found, len(files))
	}
	if w.Lacks&Statuses == 0 {
		w.fails(w.c.Remove(w.ctx, dirs[0]), nfs3.ErrNotEmpty)
	}
	w.must(w.c.RemoveAll(w.ctx, dirs[0]))
	_, err := other.Stat(w.ctx, dirs[0])
	w.fails(err, fs.ErrNotExist)
}

func smallDirectory(w *world) {
	w.lists(w.dir)
	w.write(w.path("b"), nil)
	w.write(w.path("a"), []byte("1"))
	w.must(w.c.Mkdir(w.ctx, w.path("c"), 0o700))
	w.lists(w.dir, "a", "b", "c")
	entries, err := w.c.ReadDir(w.ctx, w.dir)
	w.must(err)
	for i, e := range entries {
		info, err := e.Info()
		w.must(err)
		if e.IsDir() != (i == 2) || info.IsDir() != e.IsDir() || i == 0 && info.Size() != 1 {
			w.Errorf("%v, %v", e, info)
		}
	}
	w.must(w.c.Remove(w.ctx, w.path("b")))
	w.must(w.c.Remove(w.ctx, w.path("c")))
	w.lists(w.dir, "a")
	w.fails(w.c.Remove(w.ctx, w.path("b")), fs.ErrNotExist)
}

// largeDirectory lists a directory that needs many calls.
func largeDirectory(w *world) {
	want := make([]string, w.Names)
	for i := range want {
		want[i] = fmt.Sprintf("a name that is long enough to fill a page soon, number %06d", i)
		f, err := w.c.OpenFile(w.ctx, w.path(want[i]), os.O_WRONLY|os.O_CREATE, 0o644)
		w.must(err)
		w.must(f.Close())
	}
	w.lists(w.dir, want...)
	f, err := w.dial().Open(w.ctx, w.dir)
	w.must(err)
	seen := map[string]bool{}
	for {
		entries, err := f.ReadDir(100)
		for _, e := range entries {
			if seen[e.Name()] {
				w.Errorf("%s is listed twice", e.Name())
			}
			seen[e.Name()] = true
		}
		if err != nil || len(entries) == 0 {
			break
		}
	}
	w.must(f.Close())
	if len(seen) != w.Names {
		w.Errorf("%d names are listed, of %d", len(seen), w.Names)
	}
}

// removal removes every second name while a directory is being listed: the others are
// listed once.
func removal(w *world) {
	const count = 600
	for i := range count {
		w.write(w.path(fmt.Sprintf("%060d", i)), nil)
	}
	times := map[string]int{}
	for e, err := range w.c.Entries(w.ctx, w.dir) {
		w.must(err)
		times[e.Name()]++
		if n := e.Name(); (n[len(n)-1]-'0')%2 == 1 {
			w.must(w.c.Remove(w.ctx, w.path(n)))
		}
	}
	for i := range count {
		name := fmt.Sprintf("%060d", i)
		if n := times[name]; n != 1 {
			w.Errorf("%d is listed %d times", i, n)
		}
	}
	if left := len(w.names(w.c, w.dir)); left != count/2 {
		w.Errorf("%d names are left of %d", left, count)
	}
}

func rename(w *world) {
	c, ctx := w.c, w.ctx
	w.write(w.path("a"), []byte("a"))
	w.write(w.path("b"), []byte("b"))
	w.must(c.Mkdir(ctx, w.path("d"), 0o755))
	w.must(c.Rename(ctx, w.path("a"), w.path("c")))
	w.lists(w.dir, "b", "c", "d")
	w.must(c.Rename(ctx, w.path("c"), w.path("b"))) // replaces it
	w.lists(w.dir, "b", "d")
	w.holds(c, w.path("b"), []byte("a"))
	w.must(c.Rename(ctx, w.path("b"), w.path("d/b")))
	w.lists(w.path("d"), "b")
	w.must(c.Rename(ctx, w.path("d"), w.path("e"))) // with what is in it
	w.holds(c, w.path("e/b"), []byte("a"))
	w.fails(c.Rename(ctx, w.path("none"), w.path("x")), fs.ErrNotExist)
	w.must(c.Mkdir(ctx, w.path("f"), 0o755))
	w.write(w.path("f/x"), nil)
	if err := c.Rename(ctx, w.path("e"), w.path("f")); err == nil {
		w.Error("a directory replaces one that is not empty")
	}
	if err := c.Rename(ctx, w.path("e"), w.path("e/inside")); err == nil {
		w.Error("a directory moves into itself")
	}
}

// handles checks that a file that is open stays the same under another name.
func handles(w *world) {
	w.write(w.path("a"), []byte("old"))
	f, err := w.c.OpenFile(w.ctx, w.path("a"), os.O_RDWR, 0)
	w.must(err)
	w.must(w.c.Rename(w.ctx, w.path("a"), w.path("b")))
	w.write(w.path("a"), []byte("other"))
	_, err = f.WriteAt([]byte("new"), 0)
	w.must(err)
	h := f.Handle()
	w.must(f.Close())
	w.holds(w.c, w.path("b"), []byte("new"))
	w.holds(w.c, w.path("a"), []byte("other"))
	g, err := w.c.OpenHandle(w.ctx, h, os.O_RDONLY)
	w.must(err)
	w.must(w.c.Remove(w.ctx, w.path("b")))
	if _, err = g.ReadAt(make([]byte, 1), 0); w.Lacks&Forgetting == 0 || err != nil {
		w.fails(err, nfs3.ErrStale)
	}
	w.must(g.Close())
}

func symlinks(w *world) {
	c, ctx := w.c, w.ctx
	w.must(c.MkdirAll(ctx, w.path("d/e"), 0o755))
	w.write(w.path("d/file"), []byte("here"))
	long := strings.Repeat("long/", 200) + "target"
	for name, target := range map[string]string{
		"file": "d/file", "dir": "d/e", "up": "d/e/../file", "abs": "/" + w.dir + "/d/file", "out": "../../../../../" + w.dir + "/d/file",
		"broken": "nothing", "loop": "loop", "long": long, "d/e/back": "../../file",
	} {
		w.must(c.Symlink(ctx, target, w.path(name)))
		got, err := c.Readlink(ctx, w.path(name))
		w.must(err)
		if got != target {
			w.Errorf("%s says %q, not %q", name, got, target)
		}
	}
	for _, name := range []string{"file", "up", "abs", "out", "dir/back", "dir/../file"} {
		w.holds(c, w.path(name), []byte("here"))
	}
	info, err := c.Lstat(ctx, w.path("file"))
	w.must(err)
	if info.Mode().Type() != fs.ModeSymlink {
		w.Errorf("a symbolic link is %v", info.Mode())
	}
	_, err = c.Stat(ctx, w.path("broken"))
	w.fails(err, fs.ErrNotExist)
	_, err = c.Stat(ctx, w.path("loop"))
	w.fails(err, nfs.ErrLoop)
	_, err = c.Readlink(ctx, w.path("d/file"))
	w.fails(err, fs.ErrInvalid)
	w.fails(c.Symlink(ctx, "x", w.path("file")), fs.ErrExist)
	f, err := c.OpenFile(ctx, w.path("broken"), os.O_WRONLY|os.O_CREATE, 0o644) // makes what it leads to
	w.must(err)
	w.must(f.Close())
	w.holds(c, w.path("nothing"), nil)
	w.must(c.Remove(ctx, w.path("file"))) // the link
	w.holds(c, w.path("d/file"), []byte("here"))
}

func hardLinks(w *world) {
	c, ctx := w.c, w.ctx
	w.write(w.path("a"), []byte("one"))
	w.must(c.Link(ctx, w.path("a"), w.path("b")))
	a, err := c.Stat(ctx, w.path("a"))
	w.must(err)
	b, err := c.Stat(ctx, w.path("b"))
	w.must(err)
	if a.Attr().FileID != b.Attr().FileID || b.Attr().Links != 2 {
		w.Errorf("files %d and %d, with %d links", a.Attr().FileID, b.Attr().FileID, b.Attr().Links)
	}
	w.write(w.path("b"), []byte("two"))
	w.holds(c, w.path("a"), []byte("two"))
	w.must(c.Remove(ctx, w.path("a")))
	w.holds(c, w.path("b"), []byte("two"))
	b, err = c.Stat(ctx, w.path("b"))
	w.must(err)
	if b.Attr().Links != 1 {
		w.Errorf("%d links are left", b.Attr().Links)
	}
	w.fails(c.Link(ctx, w.path("a"), w.path("c")), fs.ErrNotExist)
	w.write(w.path("c"), nil)
	w.fails(c.Link(ctx, w.path("b"), w.path("c")), fs.ErrExist)
}

func attributes(w *world) {
	c, ctx := w.c, w.ctx
	w.write(w.path("f"), []byte("x"))
	for _, mode := range []fs.FileMode{0o600, 0o751, 0o444, 0o644} {
		w.must(c.Chmod(ctx, w.path("f"), mode))
		info, err := c.Stat(ctx, w.path("f"))
		w.must(err)
		if info.Mode() != mode {
			w.Errorf("the mode is %v, not %v", info.Mode(), mode)
		}
	}
	info, err := c.Stat(ctx, w.path("f"))
	w.must(err)
	a := info.Attr()
	w.must(c.Chown(ctx, w.path("f"), int(a.UID), -1))
	if info.Size() != 1 || a.Links != 1 || a.Type != nfs3.Regular {
		w.Errorf("attributes %+v", a)
	}
	allowed, err := c.Access(ctx, w.path("f"), nfs3.AccessRead|nfs3.AccessModify)
	w.must(err)
	if allowed != nfs3.AccessRead|nfs3.AccessModify {
		w.Errorf("the owner may %#x", allowed)
	}
	before := info.ModTime()
	w.write(w.path("f"), []byte("more"))
	info, err = c.Stat(ctx, w.path("f"))
	w.must(err)
	if info.ModTime().Before(before) {
		w.Errorf("a write brings the file from %v back to %v", before, info.ModTime())
	}
}

func times(w *world) {
	w.write(w.path("f"), nil)
	atime, mtime := time.Unix(1_000_000_000, 0).UTC(), time.Unix(1_234_567_890, 0).UTC()
	check := func(a, m time.Time) {
		w.Helper()
		info, err := w.c.Stat(w.ctx, w.path("f"))
		w.must(err)
		if got := info.Attr().Atime.Time(); !got.Equal(a) && w.Lacks&AccessTimes == 0 {
			w.Errorf("the time of access is %v, not %v", got, a)
		}
		if got := info.ModTime(); !got.Equal(m) {
			w.Errorf("the time of content is %v, not %v", got, m)
		}
	}
	w.must(w.c.Chtimes(w.ctx, w.path("f"), atime, mtime))
	check(atime, mtime)
	w.must(w.c.Chtimes(w.ctx, w.path("f"), time.Time{}, atime))
	check(atime, atime)
	w.must(w.c.Chtimes(w.ctx, w.path("f"), mtime, time.Time{}))
	check(mtime, atime)
}

func fifo(w *world) {
	w.must(w.c.Mknod(w.ctx, w.path("fifo"), fs.ModeNamedPipe|0o600, 0, 0))
	info, err := w.c.Lstat(w.ctx, w.path("fifo"))
	w.must(err)
	if info.Mode() != fs.ModeNamedPipe|0o600 {
		w.Errorf("it is %v", info.Mode())
	}
	_, err = w.c.OpenFile(w.ctx, w.path("fifo"), os.O_WRONLY, 0)
	w.fails(err, fs.ErrInvalid)
}

func exclusive(w *world) {
	f, err := w.c.OpenFile(w.ctx, w.path("f"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	w.must(err)
	w.must(f.Close())
	info, err := w.c.Stat(w.ctx, w.path("f"))
	w.must(err)
	if info.Mode() != 0o640 {
		w.Errorf("the mode is %v", info.Mode())
	}
	_, err = w.dial().OpenFile(w.ctx, w.path("f"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	w.fails(err, fs.ErrExist)
}

func mistakes(w *world) {
	c, ctx := w.c, w.ctx
	w.write(w.path("f"), nil)
	_, err := c.Open(ctx, w.path("none"))
	w.fails(err, fs.ErrNotExist)
	if _, is := errors.AsType[*fs.PathError](err); !is {
		w.Errorf("%v is no *fs.PathError", err)
	}
	_, err = c.Open(ctx, w.path("f/below"))
	w.fails(err, nfs3.ErrNotDir)
	_, err = c.Open(ctx, w.path("f/"))
	w.fails(err, nfs3.ErrNotDir)
	_, err = c.OpenFile(ctx, w.dir, os.O_WRONLY, 0)
	w.fails(err, nfs3.ErrIsDir)
	w.fails(c.Mkdir(ctx, w.path("f"), 0o755), fs.ErrExist)
	w.fails(c.Mkdir(ctx, w.path("x/y"), 0o755), fs.ErrNotExist)
	w.fails(c.MkdirAll(ctx, w.path("f/y"), 0o755), nfs3.ErrNotDir)
	_, err = c.ReadDir(ctx, w.path("f"))
	w.fails(err, nfs3.ErrNotDir)
	w.fails(c.Remove(ctx, "/"), nfs3.ErrInval)
	w.fails(c.Mkdir(ctx, w.path("nul\x00"), 0o755), nfs3.ErrInval)
	w.must(c.RemoveAll(ctx, w.path("none")))
	if err := c.Mkdir(ctx, w.path(strings.Repeat("n", 300)), 0o755); err == nil {
		w.Error("a name of 300 bytes is taken")
	}
}

func statfs(w *world) {
	s, err := w.c.Statfs(w.ctx)
	w.must(err)
	if s.TotalBytes == 0 || s.AvailBytes > s.TotalBytes {
		w.Errorf("%+v", s)
	}
	_, err = w.c.PathConf(w.ctx)
	w.must(err)
	w.must(w.c.Null(w.ctx))
}

func ioFS(w *world) {
	w.must(w.c.MkdirAll(w.ctx, w.path("d/e"), 0o755))
	w.write(w.path("one"), []byte("1"))
	w.write(w.path("d/two"), []byte("22"))
	w.write(w.path("d/e/three"), pattern(8).data(500, 0))
	sub, err := fs.Sub(w.c.FS().WithContext(w.ctx), w.dir)
	w.must(err)
	if err := fstest.TestFS(sub, "one", "d/two", "d/e/three"); err != nil {
		w.Error(err)
	}
}
