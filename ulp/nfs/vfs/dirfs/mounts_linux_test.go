package dirfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

// mounted makes this test program mount filesystems and test them: it has its own view of mounts.
const mounted = "URNIC_TEST_DIRFS_MOUNTED"

// What has no handles of its own is served too: the root of a container (overlayfs), ramfs, and
// proc.
func TestFilesystemsWithoutHandles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.SkipNow() // an ordinary user can't mount
	}
	self, err := os.Executable()
	do(t, err)
	// These count the entries of a directory anew when it changes. In ramfs nothing but the
	// inode number tells files apart: there it is the server's key that makes handles secret.
	const skip = "^TestMountedOverlay$/.*/^list_(while_it_changes|from_a_lost_place)$|" +
		"^TestMountedRamfs$/^(list_while_it_changes|list_from_a_lost_place|handles_made_up)$"
	cmd := exec.CommandContext(t.Context(), self, "-test.count=1", "-test.run=^TestMounted", "-test.skip="+skip)
	cmd.Env = append(os.Environ(), mounted+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") == "" {
		t.Skip("this root lacks CAP_SYS_ADMIN, and may not mount")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// mounts mounts something in the view of this process, which ends with it.
func mounts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(mounted)
	if dir == "" {
		t.SkipNow() // TestFilesystemsWithoutHandles runs it
	}
	do(t, unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	dir, err := os.MkdirTemp(dir, "") //nolint:usetesting // which this process could not remove while it is mounted
	do(t, err, unix.Mount("none", dir, "tmpfs", 0, ""))
	return dir
}

// overlay mounts layers that are in one filesystem or in two.
func overlay(t *testing.T, two bool) (dir, lower string) {
	t.Helper()
	dir = mounts(t)
	lower = dir + "/lower"
	do(t, os.Mkdir(lower, 0o755), os.Mkdir(dir+"/m", 0o755))
	if two {
		do(t, unix.Mount("none", lower, "tmpfs", 0, ""))
	}
	do(t, os.Mkdir(dir+"/upper", 0o755), os.Mkdir(dir+"/work", 0o755), os.WriteFile(lower+"/below", []byte("below"), 0o644))
	do(t, unix.Mount("none", dir+"/m", "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%[2]s/work", lower, dir)))
	return dir + "/m", lower
}

func TestMountedOverlay(t *testing.T) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprintf("of two filesystems %v", two), func(t *testing.T) {
			dir, _ := overlay(t, two)
			fs := serve(t, dir, Options{})
			h, _, err := fs.Lookup(t.Context(), fs.Root(), "below")
			do(t, err)
			holds(t, fs, h, "below")
			m := tree(t, fs)
			for _, forget := range []bool{false, true} {
				if forget { // as the next server
					fs = serve(t, dir, Options{})
					fs.pause = 0
				}
				for name, g := range m {
					if a, err := fs.GetAttr(t.Context(), g); err != nil {
						t.Errorf("%q, forgotten %v: %+v, %v", name, forget, a, err)
					}
				}
				holds(t, fs, m["a/b/c/f"], "a/b/c/f")
			}
			seen := make(map[uint64]string)
			_, err = fs.ReadDir(t.Context(), fs.Root(), 0, true, func(e vfs.Entry) bool {
				if e.Attr == nil || seen[e.FileID] != "" || e.FileID != e.Attr.FileID {
					t.Errorf("%s is listed as %+v, as is %q", e.Name, e, seen[e.FileID])
				}
				seen[e.FileID] = e.Name
				return true
			})
			do(t, err)
			vfstest.Test(t, func(t *testing.T) vfs.FS {
				dir, lower := overlay(t, two)
				do(t, os.Remove(lower+"/below"))
				return serve(t, dir, Options{Async: true})
			})
		})
	}
}

func TestMountedRamfs(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS {
		dir := mounts(t)
		do(t, os.Mkdir(dir+"/m", 0o755), unix.Mount("none", dir+"/m", "ramfs", 0, ""))
		return serve(t, dir+"/m", Options{Async: true})
	})
}

func TestMountedProc(t *testing.T) {
	dir := mounts(t)
	do(t, os.Mkdir(dir+"/m", 0o755), unix.Mount("none", dir+"/m", "proc", 0, ""))
	fs := serve(t, dir+"/m", Options{ReadOnly: true})
	h, _, err := fs.Lookup(t.Context(), fs.Root(), "version")
	do(t, err)
	if n, _, err := fs.Read(t.Context(), h, make([]byte, 100), 0); n == 0 || err != nil {
		t.Errorf("Read: %d, %v", n, err)
	}
}
