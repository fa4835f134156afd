package dirfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/selfcopy"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

// serve serves a directory until the test is over. A file that is open stays open for all of it
// unless another one needs its place.
func serve(t testing.TB, dir string, o Options) *linuxFS {
	t.Helper()
	fs, err := New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	fs.(*linuxFS).idleFor = time.Hour
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return fs.(*linuxFS)
}

func TestFS(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS { return serve(t, t.TempDir(), Options{Async: true}) })
}

// The same with next to no memory: each file is searched for again and again.
func TestForgetful(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS {
		fs := serve(t, t.TempDir(), Options{Async: true, MaxOpen: 4, MaxKnown: 8})
		fs.recheck, fs.pause = 0, 0
		return fs
	})
}

// The same without the rights that root has.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // all the other tests are that
	}
	const nobody = 65534
	dir, bin := selfcopy.Dir(t)
	if err := errors.Join(os.Mkdir(dir+"/tmp", 0o700), os.Chown(dir+"/tmp", nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.count=1", "-test.skip=LargeDirectory")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+dir+"/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as a user: %v\n%s", err, out)
	}
}

func TestAgreesWithMemfs(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			a := memfs.New(memfs.Options{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())})
			defer func() { _ = a.Close() }()
			o := Options{Async: true}
			if seed%2 == 1 {
				o.MaxKnown, o.MaxOpen = 16, 8
			}
			b := serve(t, t.TempDir(), o)
			b.pause = 0
			vfstest.Agree(t, a, b, seed, 2000)
		})
	}
}

// tree makes directories and files, and returns handles of the files by path.
func tree(t *testing.T, fs vfs.FS) map[string]vfs.Handle {
	t.Helper()
	m := map[string]vfs.Handle{"": fs.Root()}
	for _, d := range []string{"a", "a/b", "a/b/c", "d"} {
		h, _, err := fs.Mkdir(t.Context(), m[parent(d)], filepath.Base(d), vfs.SetAttr{})
		if err != nil {
			t.Fatal(err)
		}
		m[d] = h
	}
	for _, f := range []string{"f", "a/f", "a/b/f", "a/b/c/f", "d/f", "d/g"} {
		h, _, err := fs.Create(t.Context(), m[parent(f)], filepath.Base(f), vfs.SetAttr{})
		if err == nil {
			err = fs.Write(t.Context(), h, []byte(f), 0, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		m[f] = h
	}
	return m
}

func parent(path string) string {
	if d := filepath.Dir(path); d != "." {
		return d
	}
	return ""
}

// holds checks what a file holds.
func holds(t *testing.T, fs vfs.FS, h vfs.Handle, want string) {
	t.Helper()
	p := make([]byte, 100)
	n, _, err := fs.Read(t.Context(), h, p, 0)
	if err != nil || string(p[:n]) != want {
		t.Errorf("it holds %q, want %q (%v)", p[:n], want, err)
	}
}

func isStale(t *testing.T, fs vfs.FS, what string, h vfs.Handle) {
	t.Helper()
	if _, err := fs.GetAttr(t.Context(), h); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("GetAttr of %s: %v, want %v", what, err, vfs.ErrStale)
	}
	if n, _, err := fs.Read(t.Context(), h, make([]byte, 10), 0); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("Read of %s: %d, %v, want %v", what, n, err, vfs.ErrStale)
	}
}

// ways runs a test with and without open_by_handle_at, if it is permitted.
func ways(t *testing.T, test func(t *testing.T, open func(dir string) *linuxFS)) {
	for _, byFH := range []bool{false, true} {
		t.Run(fmt.Sprintf("by handle %v", byFH), func(t *testing.T) {
			test(t, func(dir string) *linuxFS {
				fs := serve(t, dir, Options{Async: true})
				if byFH && !fs.byFH && os.Geteuid() == 0 && os.Getenv("CI") != "" {
					t.Log("open_by_handle_at is not permitted, or not on this filesystem")
				}
				fs.byFH = fs.byFH && byFH
				fs.recheck = 0
				return fs
			})
		})
	}
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestHandlesSurviveRestart(t *testing.T) {
	ways(t, func(t *testing.T, open func(string) *linuxFS) {
		dir, outside := t.TempDir(), t.TempDir()
		fs := open(dir)
		m := tree(t, fs)
		do(t, fs.Close(),
			os.Rename(dir+"/a/b/f", dir+"/d/moved"),
			os.Rename(dir+"/a/b/c", dir+"/d/c"),
			os.Rename(dir+"/d/f", outside+"/f"),
			os.Remove(dir+"/d/g"),
			os.WriteFile(dir+"/d/g", []byte("another"), 0o600))
		fs = open(dir)
		if fs.Root() != m[""] {
			t.Error("the root has another handle")
		}
		isStale(t, fs, "a file that was moved out", m["d/f"])
		isStale(t, fs, "a removed file", m["d/g"])
		holds(t, fs, m["a/b/f"], "a/b/f")
		holds(t, fs, m["a/b/c/f"], "a/b/c/f")
		holds(t, fs, m["f"], "f")
		for _, d := range []string{"", "a", "a/b", "a/b/c", "d"} {
			if a, err := fs.GetAttr(t.Context(), m[d]); err != nil || a.Type != vfs.Directory {
				t.Errorf("GetAttr of %s: %+v, %v", d, a, err)
			}
		}
		if h, _, err := fs.Lookup(t.Context(), m["a/b/c"], ".."); err != nil || h != m["d"] {
			t.Errorf("Lookup of ..: %v", err)
		}
		// Another tree does not know them.
		other := open(outside)
		for _, name := range []string{"", "f", "d/f"} {
			isStale(t, other, "a file of another tree", m[name])
		}
	})
}

// What the machine's users do to the tree meanwhile is followed.
func TestMovedBehindTheBack(t *testing.T) {
	ways(t, func(t *testing.T, open func(string) *linuxFS) {
		dir, outside := t.TempDir(), t.TempDir()
		fs := open(dir)
		m := tree(t, fs)
		do(t, os.Rename(dir+"/a/b/f", dir+"/d/moved"), os.Rename(dir+"/a/b", dir+"/b"), os.Rename(dir+"/a", dir+"/b/a"))
		holds(t, fs, m["a/b/f"], "a/b/f")
		holds(t, fs, m["a/f"], "a/f")
		holds(t, fs, m["a/b/c/f"], "a/b/c/f")
		if h, _, err := fs.Lookup(t.Context(), m["a"], ".."); err != nil || h != m["a/b"] {
			t.Errorf("Lookup of ..: %v", err)
		}
		// Out of the tree, with something else that looks the same in its place.
		do(t, os.Rename(dir+"/b", outside+"/b"), os.Symlink(outside+"/b", dir+"/b"),
			os.Rename(dir+"/f", outside+"/f"), os.Symlink(outside+"/f", dir+"/f"))
		for _, name := range []string{"a", "a/f", "a/b", "a/b/c", "a/b/c/f", "f"} {
			isStale(t, fs, name+", which was moved out of the tree", m[name])
			if err := fs.Write(t.Context(), m[name], []byte("x"), 0, false); !errors.Is(err, vfs.ErrStale) {
				t.Errorf("Write to %s: %v", name, err)
			}
		}
		if _, _, err := fs.Create(t.Context(), m["a/b"], "new", vfs.SetAttr{}); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("Create in a directory that was moved out of the tree: %v", err)
		}
		h, a, err := fs.Lookup(t.Context(), fs.Root(), "b")
		if err != nil || a.Type != vfs.Symlink {
			t.Fatalf("Lookup of a link: %+v, %v", a, err)
		}
		if _, _, err := fs.Lookup(t.Context(), h, "c"); !errors.Is(err, vfs.ErrNotDirectory) {
			t.Errorf("Lookup through a link: %v", err)
		}
		// And back.
		do(t, os.Remove(dir+"/b"), os.Rename(outside+"/b", dir+"/b"))
		fs.mu.Lock()
		fs.gone, fs.walk.complete = expired{}, false // as it is after a minute
		fs.mu.Unlock()
		holds(t, fs, m["a/f"], "a/f")
	})
}

// A file whose last name is gone can't be reached, whoever has removed it.
func TestRemovedBehindTheBack(t *testing.T) {
	ways(t, func(t *testing.T, open func(string) *linuxFS) {
		dir := t.TempDir()
		fs := open(dir)
		m := tree(t, fs)
		holds(t, fs, m["f"], "f")
		do(t, os.Link(dir+"/a/f", dir+"/d/other"), os.Remove(dir+"/a/f"), os.Remove(dir+"/f"), os.RemoveAll(dir+"/a/b"))
		isStale(t, fs, "a removed file", m["f"])
		isStale(t, fs, "a file of a removed directory", m["a/b/c/f"])
		holds(t, fs, m["a/f"], "a/f")
		// The descriptor of what is removed is not kept, so that its room is free.
		holds(t, fs, m["d/f"], "d/f")
		before := openFDs(t)
		if err := fs.Remove(t.Context(), m["d"], "f"); err != nil {
			t.Error(err)
		}
		if after := openFDs(t); after >= before {
			t.Errorf("%d descriptors are open, were %d", after, before)
		}
		isStale(t, fs, "a removed file", m["d/f"])
	})
}

func openFDs(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// Filesystems that are mounted in the tree are not entered.
func TestMounts(t *testing.T) {
	fs := serve(t, "/", Options{ReadOnly: true})
	testMounts(t, fs)
	withoutOpenat2(t, fs)
	testMounts(t, fs)
}

func testMounts(t *testing.T, fs *linuxFS) {
	if _, _, err := fs.Lookup(t.Context(), fs.Root(), "proc"); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("Lookup of /proc: %v, want %v", err, vfs.ErrAccess)
	}
	listed := false
	_, err := fs.ReadDir(t.Context(), fs.Root(), 0, true, func(e vfs.Entry) bool {
		if e.Name == "proc" {
			listed = true
			if e.Handle != "" || e.Attr != nil {
				t.Errorf("/proc is listed as %+v", e)
			}
		}
		return true
	})
	if err != nil || !listed {
		t.Errorf("ReadDir: %v; /proc is listed: %v", err, listed)
	}
	if h, _, err := fs.Lookup(t.Context(), fs.Root(), ".."); err != nil || h != fs.Root() {
		t.Errorf("Lookup of ..: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	do(t, os.WriteFile(dir+"/f", []byte("data"), 0o644))
	fs := serve(t, dir, Options{ReadOnly: true})
	h, _, err := fs.Lookup(t.Context(), fs.Root(), "f")
	do(t, err)
	holds(t, fs, h, "data")
	ctx, root := t.Context(), fs.Root()
	_, err1 := fs.SetAttr(ctx, h, vfs.SetAttr{})
	_, _, err2 := fs.Create(ctx, root, "g", vfs.SetAttr{})
	_, _, err3 := fs.Mkdir(ctx, root, "g", vfs.SetAttr{})
	_, _, err4 := fs.Symlink(ctx, root, "g", "x", vfs.SetAttr{})
	_, _, err5 := fs.Mknod(ctx, root, "g", vfs.FIFO, 0, 0, vfs.SetAttr{})
	_, err6 := fs.Link(ctx, h, root, "g")
	for i, err := range []error{
		err1, err2, err3, err4, err5, err6, fs.Write(ctx, h, []byte("x"), 0, false),
		fs.Remove(ctx, root, "f"), fs.Rmdir(ctx, root, "f"), fs.Rename(ctx, root, "f", root, "g"),
	} {
		if !errors.Is(err, vfs.ErrReadOnly) {
			t.Errorf("%d: %v, want %v", i, err, vfs.ErrReadOnly)
		}
	}
	if !fs.Features().ReadOnly {
		t.Error("Features does not say so")
	}
}

// Descriptors are bounded, and all are closed in the end.
func TestDescriptors(t *testing.T) {
	before := openFDs(t)
	fs := serve(t, t.TempDir(), Options{Async: true, MaxOpen: 20})
	var all []vfs.Handle
	for i := range 200 {
		h, _, err := fs.Create(t.Context(), fs.Root(), fmt.Sprint(i), vfs.SetAttr{})
		do(t, err, fs.Write(t.Context(), h, []byte("x"), 0, false))
		all = append(all, h)
		if n := openFDs(t); n > before+20+2 {
			t.Fatalf("%d descriptors are open, were %d", n, before)
		}
	}
	for _, h := range all {
		holds(t, fs, h, "x")
	}
	do(t, fs.Close())
	if n := openFDs(t); n != before {
		t.Errorf("%d descriptors are open, were %d", n, before)
	}
}

// A file that is read again is not opened again.
func TestReadKeepsDescriptor(t *testing.T) {
	fs := serve(t, t.TempDir(), Options{Async: true})
	m := tree(t, fs)
	holds(t, fs, m["f"], "f")
	n, err := fs.resolve(t.Context(), m["f"])
	do(t, err)
	d := n.pick(readDesc)
	if d == nil {
		t.Fatal("no descriptor is kept")
	}
	holds(t, fs, m["f"], "f")
	if n.pick(readDesc) != d {
		t.Error("it was opened again")
	}
}

// What must be on stable storage is brought there.
func TestStable(t *testing.T) {
	fs := serve(t, t.TempDir(), Options{})
	ctx, root := t.Context(), fs.Root()
	d, _, err := fs.Mkdir(ctx, root, "d", vfs.SetAttr{})
	do(t, err)
	h, _, err := fs.Create(ctx, root, "f", vfs.SetAttr{})
	do(t, err)
	var synced []string
	fs.sync = func(fd int, data bool) error {
		path, err := readlink(procPath(fd))
		synced = append(synced, fmt.Sprintf("%s %v", filepath.Base(path), data))
		return errors.Join(err, syncFD(fd, data))
	}
	top, err := readlink(procPath(fs.root.rd.fd))
	do(t, err)
	dir := filepath.Base(top) + " false"
	size := uint64(5)
	for _, c := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"Write", func() error { return fs.Write(ctx, h, []byte("x"), 0, false) }, nil},
		{"Commit", func() error { return fs.Commit(ctx, h, 0, 0) }, []string{"f true"}},
		{"Write with sync", func() error { return fs.Write(ctx, h, []byte("x"), 0, true) }, []string{"f false"}},
		{"SetAttr of the size", func() error { _, err := fs.SetAttr(ctx, h, vfs.SetAttr{Size: &size}); return err }, []string{"f true"}},
		{"Create", func() error { _, _, err := fs.Create(ctx, root, "g", vfs.SetAttr{}); return err }, []string{"g false", dir}},
		{"Mkdir", func() error { _, _, err := fs.Mkdir(ctx, root, "e", vfs.SetAttr{}); return err }, []string{dir}},
		{"Symlink", func() error { _, _, err := fs.Symlink(ctx, root, "l", "x", vfs.SetAttr{}); return err }, []string{dir}},
		{"Mknod", func() error { _, _, err := fs.Mknod(ctx, root, "p", vfs.FIFO, 0, 0, vfs.SetAttr{}); return err }, []string{dir}},
		{"Link", func() error { _, err := fs.Link(ctx, h, root, "h"); return err }, []string{dir}},
		{"Rename", func() error { return fs.Rename(ctx, root, "g", root, "k") }, []string{dir}},
		{"Rename to another directory", func() error { return fs.Rename(ctx, root, "k", d, "k") }, []string{"d false", dir}},
		{"Remove", func() error { return fs.Remove(ctx, d, "k") }, []string{"d false"}},
		{"Rmdir", func() error { return fs.Rmdir(ctx, root, "d") }, []string{dir}},
	} {
		synced = nil
		do(t, c.do())
		if fmt.Sprint(synced) != fmt.Sprint(c.want) {
			t.Errorf("%s has synchronised %v, want %v", c.name, synced, c.want)
		}
	}
	// An error of the disk is not swallowed.
	fs.sync = func(int, bool) error { return syscall.EIO }
	_, _, err1 := fs.Create(ctx, root, "bad", vfs.SetAttr{})
	for i, err := range []error{fs.Commit(ctx, h, 0, 0), fs.Write(ctx, h, []byte("x"), 0, true), fs.Remove(ctx, root, "l"), err1} {
		if !errors.Is(err, vfs.ErrIO) {
			t.Errorf("%d: %v, want %v", i, err, vfs.ErrIO)
		}
	}
}

// Owners can't be changed without the right to.
func TestNotOwner(t *testing.T) {
	if os.Geteuid() == 0 {
		return // TestAsUser comes here
	}
	fs := serve(t, t.TempDir(), Options{Async: true})
	if fs.Features().SetOwner {
		t.Error("Features says that files can be given away")
	}
	uid := uint32(1)
	_, _, err := fs.Create(t.Context(), fs.Root(), "f", vfs.SetAttr{UID: &uid})
	if !errors.Is(err, vfs.ErrNotOwner) {
		t.Errorf("Create: %v, want %v", err, vfs.ErrNotOwner)
	}
	if _, _, err = fs.Lookup(t.Context(), fs.Root(), "f"); !errors.Is(err, vfs.ErrNotExist) {
		t.Errorf("Lookup of what was not made: %v", err)
	}
	h, _, err := fs.Create(t.Context(), fs.Root(), "f", vfs.SetAttr{})
	do(t, err)
	mode := uint32(0o600)
	if _, err = fs.SetAttr(t.Context(), h, vfs.SetAttr{UID: &uid, Mode: &mode}); !errors.Is(err, vfs.ErrNotOwner) {
		t.Errorf("SetAttr: %v, want %v", err, vfs.ErrNotOwner)
	}
	if a, err := fs.GetAttr(t.Context(), h); err != nil || a.Mode != 0o644 {
		t.Errorf("after a SetAttr that failed: %+v, %v", a, err)
	}
	me := uint32(os.Geteuid())
	if _, err = fs.SetAttr(t.Context(), h, vfs.SetAttr{UID: &me}); err != nil {
		t.Errorf("SetAttr of the owner that it has: %v", err)
	}
}

func TestLargeDirectory(t *testing.T) {
	const count = 12000
	dir := t.TempDir()
	for i := range count {
		do(t, os.WriteFile(fmt.Sprintf("%s/file %d", dir, i), nil, 0o600))
	}
	fs := serve(t, dir, Options{})
	for _, plus := range []bool{false, true} {
		seen := make(map[string]bool)
		for cookie, end := uint64(0), false; !end; {
			var err error
			n := 0
			end, err = fs.ReadDir(t.Context(), fs.Root(), cookie, plus, func(e vfs.Entry) bool {
				if n++; n > 400 {
					return false
				}
				if seen[e.Name] || plus != (e.Attr != nil) {
					t.Fatalf("%s is listed again, or with attributes %v", e.Name, e.Attr)
				}
				seen[e.Name] = true
				cookie = e.Cookie
				return true
			})
			do(t, err)
		}
		if len(seen) != count {
			t.Errorf("%d names are listed, want %d", len(seen), count)
		}
	}
}

func TestSparse(t *testing.T) {
	fs := serve(t, t.TempDir(), Options{Async: true})
	h, _, err := fs.Create(t.Context(), fs.Root(), "f", vfs.SetAttr{})
	do(t, err, fs.Write(t.Context(), h, []byte("end"), 1<<32, false))
	a, err := fs.GetAttr(t.Context(), h)
	if err != nil || a.Size != 1<<32+3 || a.Used > 1<<20 {
		t.Errorf("%+v, %v", a, err)
	}
	p := bytes.Repeat([]byte("x"), 100)
	if n, end, err := fs.Read(t.Context(), h, p, 1<<31); n != 100 || end || err != nil || !bytes.Equal(p, make([]byte, 100)) {
		t.Errorf("Read of a hole: %d, %v, %v, %q", n, end, err, p)
	}
}

func TestCookies(t *testing.T) {
	for _, pos := range []uint64{0, 1, 2, 3, 1 << 40, 1<<62 - 1, 1<<63 - 1} {
		c := toCookie(pos)
		if c < 3 || toPosition(c) != pos {
			t.Errorf("position %#x is cookie %#x, which is position %#x", pos, c, toPosition(c))
		}
	}
}

func TestNotADirectory(t *testing.T) {
	for _, dir := range []string{"", "/none", "/proc/self/exe"} {
		if fs, err := New(dir, Options{}); err == nil {
			_ = fs.Close()
			t.Errorf("%q is served", dir)
		}
	}
}

// Whatever a client sends as a handle or a name, it reaches nothing but what is there.
func FuzzHandle(f *testing.F) {
	outer := f.TempDir()
	dir := outer + "/dir"
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(outer+"/secret", nil, 0o600), os.WriteFile(dir+"/f", nil, 0o600), os.Symlink("..", dir+"/l")); err != nil {
		f.Fatal(err)
	}
	fs := serve(f, dir, Options{Async: true})
	mine := make(map[vfs.Handle]bool)
	mine[fs.Root()] = true
	for _, name := range []string{"f", "l"} {
		h, _, err := fs.Lookup(f.Context(), fs.Root(), name)
		if err != nil {
			f.Fatal(err)
		}
		mine[h] = true
	}
	for h := range mine {
		f.Add([]byte(h), "f")
		f.Add([]byte(h), "..")
		f.Add([]byte(h), "l/secret")
	}
	f.Add([]byte{}, "../secret")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		h := vfs.Handle(b)
		g, _, err := fs.Lookup(t.Context(), h, name)
		if err == nil && (h != fs.Root() || !mine[g]) {
			t.Errorf("Lookup(%x, %q) = %x", b, name, g)
		}
		if _, err := fs.GetAttr(t.Context(), h); (err == nil) != mine[h] {
			t.Errorf("GetAttr(%x): %v", b, err)
		}
	})
}
