package iofs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/nfs/vfs"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// plain hides all that files can do but to be read from their beginning.
type plain struct{ fs.FS }

func (p plain) Open(name string) (fs.File, error) {
	f, err := p.FS.Open(name)
	if _, dir := f.(fs.ReadDirFile); err != nil || dir {
		return f, err
	}
	return struct{ fs.File }{f}, nil
}

func TestFS(t *testing.T) {
	when := time.Unix(1234567890, 0)
	files := fstest.MapFS{
		"f":      {Data: []byte("some data"), Mode: 0o640, ModTime: when},
		"d/e/g":  {Data: []byte("deep")},
		"d/link": {Data: []byte("../f"), Mode: fs.ModeSymlink | 0o777},
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fstest.MapFS{"f": files["f"], "d/e/g": files["d/e/g"]}); err != nil {
		t.Fatal(err)
	}
	for name, fsys := range map[string]fs.FS{"map": files, "plain": plain{files}, "directory": os.DirFS(dir)} {
		t.Run(name, func(t *testing.T) {
			v, err := New(fsys)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = v.Close() }()
			test(t, v)
			if _, links := fsys.(fstest.MapFS); !links {
				return
			}
			d, _ := at(t, v, "d")
			h, a, err := v.Lookup(t.Context(), d, "link")
			if err != nil || a.Type != vfs.Symlink {
				t.Fatalf("Lookup of a link: %+v, %v", a, err)
			}
			if to, err := v.ReadLink(t.Context(), h); to != "../f" || err != nil {
				t.Errorf("ReadLink: %q, %v", to, err)
			}
		})
	}
}

// at looks up a path.
func at(t *testing.T, v vfs.FS, path string) (vfs.Handle, vfs.Attr) {
	t.Helper()
	h, a := v.Root(), vfs.Attr{}
	for name := range strings.SplitSeq(path, "/") {
		var err error
		if h, a, err = v.Lookup(t.Context(), h, name); err != nil {
			t.Fatalf("Lookup of %s: %v", name, err)
		}
	}
	return h, a
}

func test(t *testing.T, v vfs.FS) {
	ctx, root := t.Context(), v.Root()
	h, a := at(t, v, "f")
	if a.Type != vfs.Regular || a.Size != 9 {
		t.Errorf("f has %+v", a)
	}
	for _, c := range []struct {
		off  uint64
		size int
		want string
		end  bool
	}{{0, 9, "some data", true}, {0, 100, "some data", true}, {5, 2, "da", false}, {5, 4, "data", true}, {9, 1, "", true}, {1 << 63, 1, "", true}} {
		p := make([]byte, c.size)
		n, end, err := v.Read(ctx, h, p, c.off)
		if string(p[:n]) != c.want || end != c.end || err != nil {
			t.Errorf("Read of %d at %d: %q, %v, %v", c.size, c.off, p[:n], end, err)
		}
	}
	deep, _ := at(t, v, "d/e/g")
	if again, _ := at(t, v, "d/e/../e/g"); again != deep {
		t.Error("the same file has another handle")
	}
	var names []string
	end, err := v.ReadDir(ctx, root, 0, true, func(e vfs.Entry) bool {
		names = append(names, e.Name)
		if e.Attr == nil || e.Handle == "" || e.Attr.FileID != e.FileID {
			t.Errorf("listed is %+v", e)
		}
		return true
	})
	if slices.Sort(names); !end || err != nil || !slices.Equal(names, []string{"d", "f"}) {
		t.Errorf("listed are %v, %v, %v", names, end, err)
	}

	_, err1 := v.SetAttr(ctx, h, vfs.SetAttr{})
	_, _, err2 := v.Create(ctx, root, "g", vfs.SetAttr{})
	_, _, err3 := v.Mkdir(ctx, root, "g", vfs.SetAttr{})
	_, _, err4 := v.Symlink(ctx, root, "g", "x", vfs.SetAttr{})
	_, _, err5 := v.Mknod(ctx, root, "g", vfs.FIFO, 0, 0, vfs.SetAttr{})
	_, err6 := v.Link(ctx, h, root, "g")
	for i, err := range []error{
		err1, err2, err3, err4, err5, err6, v.Write(ctx, h, []byte("x"), 0, false),
		v.Remove(ctx, root, "f"), v.Rmdir(ctx, root, "d"), v.Rename(ctx, root, "f", root, "g"),
	} {
		if !errors.Is(err, vfs.ErrReadOnly) {
			t.Errorf("change %d: %v, want %v", i, err, vfs.ErrReadOnly)
		}
	}
	if err := v.Commit(ctx, h, 0, 0); err != nil {
		t.Errorf("Commit: %v", err)
	}
	for _, name := range []string{"../f", "d/e", "", ".", "/", "none"} {
		if _, _, err := v.Lookup(ctx, root, name); !errors.Is(err, vfs.ErrInvalid) && !errors.Is(err, vfs.ErrNotExist) {
			t.Errorf("Lookup of %q: %v", name, err)
		}
	}
	if _, err := v.GetAttr(ctx, vfs.Handle(strings.Repeat("x", 16))); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("GetAttr of a handle made up: %v", err)
	}
}

var _ io.ReaderAt = (*file)(nil)
