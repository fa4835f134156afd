package dirfs

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ulp/nfs/vfs"
)

// openFiles returns what descriptors of this process are open at below a directory.
func openFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	do(t, err)
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			names = append(names, strings.TrimPrefix(to, dir+"/"))
		}
	}
	return names
}

// A program that was uploaded can be run after some seconds, and a file that somebody
// removes gives its space back.
func TestIdleDescriptorsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fs, err := New(dir, Options{Async: true})
		do(t, err)
		defer func() { do(t, fs.Close()) }()
		ctx, root := t.Context(), fs.Root()
		program, _, err := fs.Create(ctx, root, "program", vfs.SetAttr{Mode: new(uint32(0o755))})
		do(t, err, fs.Write(ctx, program, []byte("#!/bin/sh\nexit 7\n"), 0, false))
		dirty, _, err := fs.Create(ctx, root, "removed", vfs.SetAttr{})
		do(t, err, fs.Write(ctx, dirty, []byte("x"), 0, false), os.Remove(dir+"/removed"))
		read, _, err := fs.Create(ctx, root, "read", vfs.SetAttr{})
		do(t, err)
		const whileUsed = 3 * idleFor / 4
		run := func() error { return exec.CommandContext(ctx, dir+"/program").Run() }
		if err := run(); !errors.Is(err, syscall.ETXTBSY) {
			t.Errorf("a program that is being written: %v, want %v", err, syscall.ETXTBSY)
		}
		time.Sleep(whileUsed)
		_, _, err = fs.Read(ctx, read, make([]byte, 1), 0)
		do(t, err)
		if got := openFiles(t, dir); len(got) < 3 {
			t.Errorf("%q are open before they are idle", got)
		}
		time.Sleep(whileUsed)
		synctest.Wait()
		if got := openFiles(t, dir); len(got) != 1 || got[0] != "read" {
			t.Errorf("%q are open, not what was read alone", got)
		}
		if err := run(); err == nil || err.Error() != "exit status 7" {
			t.Errorf("a program that nobody writes any more: %v", err)
		}
		time.Sleep(2 * idleFor)
		synctest.Wait()
		if got := openFiles(t, dir); len(got) != 0 {
			t.Errorf("%q are open", got)
		}
		do(t, fs.Write(ctx, program, []byte("#"), 0, false)) // and open again
	})
}

// Files that are removed by a client are closed at once.
func TestRemovedFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	fs := serve(t, dir, Options{Async: true})
	ctx, root := t.Context(), fs.Root()
	k := &disk{}
	fs.sync = k.sync
	make1 := func(name string) {
		h, _, err := fs.Create(ctx, root, name, vfs.SetAttr{})
		do(t, err, fs.Write(ctx, h, []byte("x"), 0, false))
	}
	make1("a")
	make1("b")
	make1("c")
	do(t, fs.Rename(ctx, root, "a", root, "b"), fs.Remove(ctx, root, "c"))
	if got := openFiles(t, dir); len(got) != 1 || got[0] != "b" {
		t.Errorf("%q are open, not b alone", got)
	}
	do(t, fs.Remove(ctx, root, "b"))
	if got := openFiles(t, dir); len(got) != 0 || k.synced.Load() != 0 {
		t.Errorf("%q are open, and %d were synchronised", got, k.synced.Load())
	}
}

// What could not be opened again is kept for longer.
func TestUnwritableFilesAreKeptLonger(t *testing.T) {
	if os.Geteuid() == 0 {
		return // TestAsUser comes here
	}
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		fs, err := New(dir, Options{Async: true})
		do(t, err)
		defer func() { do(t, fs.Close()) }()
		h, _, err := fs.Create(t.Context(), fs.Root(), "f", vfs.SetAttr{Mode: new(uint32(0o444))})
		do(t, err)
		for range 3 {
			time.Sleep(3 * idleForGood / 4)
			synctest.Wait()
			do(t, fs.Write(t.Context(), h, []byte("x"), 0, false))
		}
		time.Sleep(idleForGood + idleFor)
		synctest.Wait()
		if got := openFiles(t, dir); len(got) != 0 {
			t.Errorf("%q are open", got)
		}
	})
}
