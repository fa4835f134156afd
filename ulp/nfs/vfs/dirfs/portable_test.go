package dirfs

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

func portably(t *testing.T, dir string) vfs.FS {
	t.Helper()
	fs, err := newPortable(dir, Options{Async: true})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// What serves other systems passes the suite here too.
func TestPortable(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS { return portably(t, t.TempDir()) })
}

func TestPortableAndNothing(t *testing.T) {
	if _, err := newPortable(t.TempDir()+"/none", Options{}); err == nil {
		t.Error("a directory that does not exist is served")
	}
}

// Links that the machine's users put into the tree are not followed.
func TestPortableStaysInside(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no links there
	}
	dir, outside := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/d", 0o700), os.WriteFile(dir+"/d/f", nil, 0o600), os.WriteFile(outside+"/f", []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	fs := portably(t, dir)
	defer func() { _ = fs.Close() }()
	d, _, err := fs.Lookup(t.Context(), fs.Root(), "d")
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := fs.Lookup(t.Context(), d, "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir+"/d", dir+"/e"), os.Symlink(outside, dir+"/d")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fs.Read(t.Context(), f, make([]byte, 9), 0); !errors.Is(err, vfs.ErrStale) && !errors.Is(err, vfs.ErrIO) {
		t.Errorf("Read: %v", err)
	}
	if _, _, err := fs.Lookup(t.Context(), d, "f"); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("Lookup: %v", err)
	}
}
