package dirfs

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// onBrokenDisk serves an ext4 of 64 MiB whose disk has no place for more than a few. It is
// mounted where only one thread sees it.
func onBrokenDisk(t *testing.T, o Options) *linuxFS {
	t.Helper()
	needRoot(t) // only root may mount a filesystem
	dir := t.TempDir()
	type result struct {
		fs  vfs.FS
		err error
	}
	made, end, ended := make(chan result), make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the mounts end with the thread
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")
		}
		if err == nil {
			err = unix.Mount("none", dir, "tmpfs", 0, "size=8m")
		}
		if err == nil {
			script := "cd '" + dir + "' && mkdir m && truncate -s 64m disk && mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=1,nodiscard disk && mount -o loop disk m"
			var out []byte
			out, err = exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
			if err != nil {
				err = errors.Join(err, errors.New(string(out)))
			}
		}
		var fs vfs.FS
		if err == nil {
			fs, err = New(dir+"/m", o)
		}
		made <- result{fs, err}
		<-end
		// Not left to the end of the thread: that is not waited for, and a disk may stay
		// behind that is still written.
		ended <- errors.Join(unix.Unmount(dir+"/m", 0), unix.Unmount(dir, 0))
	}()
	r := <-made
	t.Cleanup(func() {
		if r.fs != nil {
			do(t, r.fs.Close())
		}
		close(end)
		if err := <-ended; err != nil && r.err == nil {
			t.Errorf("the disk stays mounted: %v", err)
		}
	})
	if r.err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no disk to break: %v", r.err)
		}
		t.Skipf("no disk to break: %v", r.err)
	}
	fs, _ := r.fs.(*linuxFS)
	fs.idleFor = time.Hour // an idle file is synchronised, which takes the error that a test waits for
	return fs
}

// A disk that has no place for what was written is told of by one call; the next Commit
// succeeds. So losses are counted, whichever call it is.
func TestBrokenDisk(t *testing.T) {
	data := make([]byte, 1<<20)
	for _, c := range []struct {
		name string
		do   func(fs *linuxFS, h vfs.Handle) error
		err  error // what the call returns
	}{
		{"Write with sync", func(fs *linuxFS, h vfs.Handle) error { return fs.Write(t.Context(), h, data[:1], 0, true) }, vfs.ErrNoSpace},
		{"Commit", func(fs *linuxFS, h vfs.Handle) error { return fs.Commit(t.Context(), h, 0, 0) }, vfs.ErrNoSpace},
		{"SetAttr of the size", func(fs *linuxFS, h vfs.Handle) error {
			_, err := fs.SetAttr(t.Context(), h, vfs.SetAttr{Size: new(uint64(32 << 20))})
			return err
		}, vfs.ErrNoSpace},
		{"eviction, and another program that gets the error", func(fs *linuxFS, h vfs.Handle) error {
			_, _, err := fs.Create(t.Context(), fs.Root(), "other", vfs.SetAttr{})
			if !errors.Is(err, vfs.ErrNoSpace) && !errors.Is(err, vfs.ErrIO) {
				do(t, err)
			}
			fs.mu.Lock()
			for n := fs.open.oldest(); n != nil; n = fs.open.oldest() {
				fs.closeDescs(n)
			}
			fs.unlock()
			f, err := os.OpenFile(procPath(fs.root.rd.fd)+"/file", os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_ = f.Sync()
			return f.Close()
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := onBrokenDisk(t, Options{Async: true})
			h, _, err := fs.Create(t.Context(), fs.Root(), "file", vfs.SetAttr{})
			do(t, err)
			for off := range uint64(16) {
				do(t, fs.Write(t.Context(), h, data, off<<20, false))
			}
			if n := fs.Losses(); n != 0 {
				t.Fatalf("%d losses before any", n)
			}
			if err := c.do(fs, h); !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			after := fs.Losses()
			if after == 0 {
				t.Error("no loss is counted")
			}
			if err := fs.Commit(t.Context(), h, 0, 0); err != nil {
				t.Logf("the next Commit: %v", err) // some kernels tell of it again
			}
		})
	}
}

// A disk that can fail.
type disk struct {
	synced atomic.Int64
	fails  atomic.Bool
}

func (k *disk) sync(int, bool) error {
	k.synced.Add(1)
	if k.fails.Load() {
		return syscall.EIO
	}
	return nil
}

// onDisk serves a directory with a file, which was written.
func onDisk(t *testing.T, o Options) (*linuxFS, *disk, vfs.Handle) {
	t.Helper()
	o.Async = true
	fs, k := serve(t, t.TempDir(), o), &disk{}
	fs.sync = k.sync
	h, _, err := fs.Create(t.Context(), fs.Root(), "file", vfs.SetAttr{Mode: new(uint32(0o755))})
	do(t, err, fs.Write(t.Context(), h, []byte("#!/bin/sh\nexit 7\n"), 0, false))
	return fs, k, h
}

// What was written is synchronised before its descriptor is closed, and only then.
func TestWrittenDescriptorsAreSynchronised(t *testing.T) {
	for _, fails := range []bool{false, true} {
		fs, k, h := onDisk(t, Options{MaxOpen: 4})
		k.fails.Store(fails)
		for _, name := range []string{"a", "b", "c"} { // which are opened in its place
			g, _, err := fs.Create(t.Context(), fs.Root(), name, vfs.SetAttr{})
			do(t, err)
			_, _, err = fs.Read(t.Context(), g, make([]byte, 1), 0)
			do(t, err)
		}
		if n := k.synced.Load(); n != 1 {
			t.Errorf("%d descriptors were synchronised, not 1", n)
		}
		if n := fs.Losses(); (n == 1) != fails {
			t.Errorf("fails %t: %d losses", fails, n)
		}
		k.fails.Store(false)
		losses := fs.Losses()
		do(t, fs.Write(t.Context(), h, []byte("x"), 0, false), fs.Commit(t.Context(), h, 0, 0))
		k.fails.Store(true) // committed: it matters no more
		synced := k.synced.Load()
		fs.mu.Lock()
		fs.closeDescs(fs.known[fs.mustInode(t, h)])
		fs.unlock()
		if k.synced.Load() != synced || fs.Losses() != losses {
			t.Error("what was committed is synchronised again")
		}
	}
}

func (fs *linuxFS) mustInode(t *testing.T, h vfs.Handle) uint64 {
	t.Helper()
	ino, ok := fs.inode(h)
	if !ok {
		t.Fatal("no inode number in the handle")
	}
	return ino
}

// A Commit that opens a file whose descriptor is being closed does not return before the
// error of that is counted.
func TestCommitWaitsForFlushes(t *testing.T) {
	fs, k, h := onDisk(t, Options{})
	flushing, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	fs.sync = func(fd int, data bool) error {
		if first.CompareAndSwap(false, true) {
			close(flushing)
			<-release
			return syscall.EIO
		}
		return k.sync(fd, data)
	}
	evicted := make(chan struct{})
	go func() {
		defer close(evicted)
		fs.mu.Lock()
		fs.closeDescs(fs.known[fs.mustInode(t, h)])
		fs.unlock()
	}()
	<-flushing
	committed := make(chan uint64, 1)
	go func() {
		if err := fs.Commit(t.Context(), h, 0, 0); err != nil {
			t.Error(err)
		}
		committed <- fs.Losses()
	}()
	for k.synced.Load() == 0 { // until the Commit's own is over
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched()
	}
	close(release)
	if n := <-committed; n != 1 {
		t.Errorf("%d losses when the Commit returns, not 1", n)
	}
	<-evicted
}
