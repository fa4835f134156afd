package dirfs

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// Not even if they are another part of the same filesystem.
func TestBindMount(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestMounts shows as much as a user can
	}
	dir, outside := t.TempDir(), t.TempDir()
	do(t, os.Mkdir(dir+"/m", 0o755), os.WriteFile(outside+"/secret", nil, 0o644))
	fs := serve(t, dir, Options{})
	errs := make(chan error, 2)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its own view of mounts
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
		}
		if err == nil {
			err = unix.Mount(outside, dir+"/m", "", unix.MS_BIND, "")
		}
		if err != nil {
			errs <- err
			errs <- err
			return
		}
		inside, err := New(dir, Options{})
		if err != nil {
			errs <- err
			errs <- err
			return
		}
		_, _, err = inside.Lookup(t.Context(), inside.Root(), "m")
		errs <- err
		withoutOpenat2(t, inside.(*linuxFS))
		_, _, err = inside.Lookup(t.Context(), inside.Root(), "m")
		_ = inside.Close()
		errs <- err
	}()
	err := <-errs
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") == "" {
		t.Skip("this root lacks CAP_SYS_ADMIN, and may not mount")
	}
	for _, err := range []error{err, <-errs} {
		if !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("Lookup of a mount: %v, want %v", err, vfs.ErrAccess)
		}
	}
	if _, _, err := fs.Lookup(t.Context(), fs.Root(), "m"); err != nil {
		t.Errorf("Lookup where nothing is mounted: %v", err)
	}
}
