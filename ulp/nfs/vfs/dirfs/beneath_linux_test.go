package dirfs

import (
	"context"
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/vfstest"
)

// withoutOpenat2 makes a tree do as it would on a system without openat2.
func withoutOpenat2(t testing.TB, fs *linuxFS) {
	var err error
	if fs.openAt, err = newChecked(fs.root.rd.fd); err != nil {
		t.Error(err)
	}
}

func TestWithoutOpenat2(t *testing.T) {
	vfstest.Test(t, func(t *testing.T) vfs.FS {
		fs := serve(t, t.TempDir(), Options{Async: true})
		withoutOpenat2(t, fs)
		return fs
	})
}

// Both ways to open lead nowhere but to what is in the directory.
func TestOpenersStayBeneath(t *testing.T) {
	outer := t.TempDir()
	dir := outer + "/dir"
	do(t, os.MkdirAll(dir+"/d", 0o755), os.WriteFile(outer+"/secret", nil, 0o644), os.WriteFile(dir+"/f", nil, 0o644), os.WriteFile(dir+"/d/g", nil, 0o644),
		os.Symlink("..", dir+"/up"), os.Symlink("../secret", dir+"/s"), os.Symlink("d", dir+"/l"))
	fs := serve(t, dir, Options{})
	root := fs.root.rd.fd
	checked, err := newChecked(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]opener{"openat2": openBeneath, "openat": checked} {
		for path, want := range map[string]error{
			".": nil, "d": nil, "f": nil, "none": unix.ENOENT,
			"s": unix.ELOOP, "up": unix.ELOOP, "l": unix.ELOOP, "..": unix.EXDEV, "up/secret": nil, "l/g": nil, "/etc/passwd": unix.EXDEV, "../secret": unix.EXDEV, "": nil,
		} {
			fd, err := open(root, path, unix.O_RDONLY, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			switch {
			case strings.Contains(path, "/") || path == "":
				if err == nil {
					t.Errorf("%s opens %q", name, path)
				}
			case !errors.Is(err, want):
				t.Errorf("%s of %q: %v, want %v", name, path, err, want)
			}
		}
		fd, err := open(root, "s", unix.O_PATH, 0) // the link itself
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var f found
		if err := f.statAt(fd, ""); err != nil || f.st.Mode&unix.S_IFMT != unix.S_IFLNK {
			t.Errorf("%s follows a link: mode %o, %v", name, f.st.Mode, err)
		}
		_ = unix.Close(fd)
	}
}

// /proc says of mounts what statx says.
func TestMountsAreTold(t *testing.T) {
	seen := map[uint64]string{}
	for _, dir := range []string{"/", "/proc"} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		a, err := mountByProc(fd)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := mountByStatx(fd); !errors.Is(err, unix.ENOSYS) && (err != nil || a != b) {
			t.Errorf("%s: mount %d by /proc, %d by statx, %v", dir, a, b, err)
		}
		if seen[a] != "" {
			t.Errorf("%s and %s are the same mount", dir, seen[a])
		}
		seen[a] = dir
	}
}

// refuse makes openat2 fail on this thread, for good.
func refuse(errno unix.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0))
}

// Where openat2 is missing or forbidden, a tree does without it. Other errors are told.
func TestOpenat2IsRefused(t *testing.T) {
	dir := t.TempDir()
	do(t, os.WriteFile(dir+"/f", []byte("x"), 0o644), os.Symlink("/etc/passwd", dir+"/l"))
	for errno, want := range map[unix.Errno]error{unix.ENOSYS: nil, unix.EPERM: nil, unix.EMFILE: unix.EMFILE} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // for good: the thread ends with its filter
			done <- func() error {
				if err := refuse(errno); err != nil {
					return err
				}
				fs, err := New(dir, Options{})
				if err != nil {
					return err
				}
				defer fs.Close()
				if reflect.ValueOf(fs.(*linuxFS).openAt).Pointer() == reflect.ValueOf(openBeneath).Pointer() {
					return errors.New("it goes on with openat2")
				}
				return readOne(t.Context(), fs)
			}()
		}()
		if err := <-done; !errors.Is(err, want) {
			t.Errorf("openat2 says %v: %v, want %v", errno, err, want)
		}
	}
}

// readOne reads the file f, and finds that the link l can't be read.
func readOne(ctx context.Context, fs vfs.FS) error {
	h, _, err := fs.Lookup(ctx, fs.Root(), "f")
	if err != nil {
		return err
	}
	if n, _, err := fs.Read(ctx, h, make([]byte, 9), 0); n != 1 || err != nil {
		return errors.Join(errors.New("the file is not read"), err)
	}
	l, _, err := fs.Lookup(ctx, fs.Root(), "l")
	if err != nil {
		return err
	}
	if _, _, err := fs.Read(ctx, l, make([]byte, 9), 0); err == nil {
		return errors.New("a link is followed")
	}
	return nil
}

// A name that is moved to and fro meanwhile is there, or it is not: it never seems to be outside.
func TestOpeningWhatIsMovedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	do(t, os.Mkdir(dir+"/a", 0o700), os.Mkdir(dir+"/b", 0o700), os.WriteFile(dir+"/a/f", nil, 0o600))
	root, err := unix.Open(dir+"/a", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	do(t, err)
	defer func() { do(t, unix.Close(root)) }()
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	defer close(stop)
	wg.Go(func() {
		for at, to := "/a/f", "/b/f"; ; at, to = to, at {
			select {
			case <-stop:
				return
			default:
			}
			if err := os.Rename(dir+at, dir+to); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50_000 {
		fd, err := openBeneath(root, "f", unix.O_PATH, 0)
		switch {
		case err == nil:
			do(t, unix.Close(fd))
		case !errors.Is(err, unix.ENOENT):
			t.Fatalf("opening it: %v, want %v", err, unix.ENOENT)
		}
	}
}
