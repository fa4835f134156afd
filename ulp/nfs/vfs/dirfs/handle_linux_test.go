package dirfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// Two files that had the same inode number within a tick of the clock differ by what the
// filesystem says, and, where it says nothing, by their time of birth.
func TestGeneration(t *testing.T) {
	fs := serve(t, t.TempDir(), Options{})
	path := filepath.Join(t.TempDir(), "f")
	do(t, os.WriteFile(path, nil, 0o600))
	fd, err := unix.Open(path, unix.O_PATH, 0)
	do(t, err)
	defer func() { _ = unix.Close(fd) }()
	var f found
	do(t, f.statAt(fd, ""))
	_, _, err = unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	if f.nameFH(fd); err == nil && f.hash == 0 {
		t.Error("the filesystem's own handle is left out")
	}
	other, later := f, f
	other.hash++
	later.st.Mask |= unix.STATX_BTIME
	later.st.Btime.Nsec++
	if h := fs.handle(&f); h == fs.handle(&other) || h == fs.handle(&later) {
		t.Error("different files have the same handle")
	}
	if n := len(fs.handle(&f)); n > vfs.MaxHandle {
		t.Errorf("a handle has %d bytes", n)
	}
	other.st.Ino++
	other.hash--
	if fs.handle(&f) == fs.handle(&other) {
		t.Error("different inodes have the same handle")
	}
}
