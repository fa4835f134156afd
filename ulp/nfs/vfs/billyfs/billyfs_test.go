package billyfs

import (
	"errors"
	"os"
	"testing"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-billy/v5/util"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// memory is go-billy's memfs with a Rename that leaves other files alone.
type memory struct{ billy.Filesystem }

func (m memory) Rename(from, to string) error {
	i, err := m.Lstat(from)
	switch {
	case err != nil:
		return err
	case i.IsDir():
		if err := m.MkdirAll(to, i.Mode().Perm()); err != nil {
			return err
		}
		list, err := m.ReadDir(from)
		if err != nil {
			return err
		}
		for _, i := range list {
			if err := m.Rename(m.Join(from, i.Name()), m.Join(to, i.Name())); err != nil {
				return err
			}
		}
		return m.Remove(from)
	case i.Mode()&os.ModeSymlink != 0:
		target, err := m.Readlink(from)
		if err != nil {
			return err
		}
		_ = m.Remove(to)
		return errors.Join(m.Symlink(target, to), m.Remove(from))
	}
	data, err := util.ReadFile(m, from)
	if err != nil {
		return err
	}
	_ = m.Remove(to)
	return errors.Join(util.WriteFile(m, to, data, i.Mode()), m.Remove(from))
}

func serve(t *testing.T, b billy.Filesystem, o Options) vfs.FS {
	t.Helper()
	fs, err := New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestMemory(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS { return serve(t, memory{memfs.New()}, Options{}) })
}

func TestOS(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS {
		return serve(t, osfs.New(t.TempDir()), Options{Concurrent: true})
	})
}

func TestReadOnly(t *testing.T) {
	m := memfs.New()
	if err := util.WriteFile(m, "f", []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	fs := serve(t, m, Options{ReadOnly: true, UID: 7, GID: 8})
	defer func() { _ = fs.Close() }()
	h, a, err := fs.Lookup(t.Context(), fs.Root(), "f")
	if err != nil || a.UID != 7 || a.GID != 8 || a.Size != 4 {
		t.Errorf("Lookup: %+v, %v", a, err)
	}
	if err := fs.Write(t.Context(), h, []byte("x"), 0, false); !errors.Is(err, vfs.ErrReadOnly) || !fs.Features().ReadOnly {
		t.Errorf("Write: %v", err)
	}
}

// broken panics in some calls.
type broken struct{ billy.Filesystem }

func (broken) Rename(string, string) error { panic("broken") }

func TestPanicIsAnError(t *testing.T) {
	fs := serve(t, broken{memfs.New()}, Options{})
	defer func() { _ = fs.Close() }()
	if _, _, err := fs.Create(t.Context(), fs.Root(), "f", vfs.SetAttr{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and no lock is left behind
		if err := fs.Rename(t.Context(), fs.Root(), "f", fs.Root(), "g"); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Rename: %v, want %v", err, vfs.ErrIO)
		}
	}
}
