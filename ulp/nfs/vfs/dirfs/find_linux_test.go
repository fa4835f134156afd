package dirfs

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// onWalk serves a tree (see tree) as an ordinary user would. In each walk it calls at twice: when
// the first of the directories a and d is about to be read, and when the second is.
func onWalk(t *testing.T, dir string, at func(fs *linuxFS, nth int, this, other string)) *linuxFS {
	t.Helper()
	fs := serve(t, dir, Options{Async: true})
	fs.byFH, fs.recheck, fs.pause = false, 0, 0
	open := fs.openAt
	other := map[string]string{"a": "d", "d": "a"}
	var walk chan struct{}
	first, both := "", false // in this walk; nobody else calls
	fs.openAt = func(in int, name string, flags, mode uint64) (int, error) {
		fs.mu.Lock()
		running := fs.walk.running
		fs.mu.Unlock()
		if running != walk {
			walk, first, both = running, "", false
		}
		switch {
		case walk == nil || both || other[name] == "" || name == first:
		case first == "":
			first = name
			at(fs, 1, name, other[name])
		default:
			both = true
			at(fs, 2, name, other[name])
		}
		return open(in, name, flags, mode)
	}
	return fs
}

// planted makes a tree that nobody serves any more, and returns the handles of its files.
func planted(t *testing.T) (string, map[string]vfs.Handle) {
	t.Helper()
	dir := t.TempDir()
	fs := serve(t, dir, Options{Async: true})
	m := tree(t, fs)
	do(t, fs.Close())
	return dir, m
}

// A file that a client moves out of a walk's sight is no stale one, even if it is forgotten again
// before the walk ends.
func TestFileMovedWhileAWalkRuns(t *testing.T) {
	dir, m := planted(t)
	moved := ""
	fs := onWalk(t, dir, func(fs *linuxFS, nth int, unread, read string) {
		if nth == 1 || moved != "" {
			return
		}
		moved = unread + "/f"
		do(t, fs.Rename(t.Context(), m[unread], "f", m[read], "moved"))
		ino, _ := fs.inode(m[moved])
		fs.mu.Lock()
		fs.forget(fs.known[ino])
		fs.walk.complete = false
		fs.mu.Unlock()
	})
	for _, name := range []string{"a", "d"} {
		if _, _, err := fs.Lookup(t.Context(), fs.Root(), name); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, fs, m["a/f"], "a/f")
	holds(t, fs, m["d/f"], "d/f")
	if moved == "" {
		t.Error("no file was moved")
	}
}

// So it is with files in a directory that a client moves, also if it began before the walk.
func TestDirectoryMovedWhileAWalkRuns(t *testing.T) {
	for _, began := range []string{"in the walk", "before it"} {
		t.Run(began, func(t *testing.T) {
			dir, m := planted(t)
			do(t, os.Rename(dir+"/a/b/c", dir+"/d/c"), os.Rename(dir+"/a/b", dir+"/a/c"))
			moved := ""
			fs := onWalk(t, dir, func(fs *linuxFS, nth int, unread, read string) {
				if nth == 1 || moved != "" {
					return
				}
				moved = map[string]string{"a": "a/b/f", "d": "a/b/c/f"}[unread]
				if began == "before it" { // and has not ended
					do(t, os.Rename(dir+"/"+unread+"/c", dir+"/"+read+"/moved"))
				} else {
					do(t, fs.Rename(t.Context(), m[unread], "c", m[read], "moved"))
				}
			})
			if began == "before it" {
				fs.move(1, true)
			}
			holds(t, fs, m["a/b/f"], "a/b/f")
			holds(t, fs, m["a/b/c/f"], "a/b/c/f")
			if moved == "" {
				t.Error("no directory was moved")
			}
		})
	}
}

// Where each walk is disturbed, nobody says that a file is gone: the client is to try again.
func TestEachWalkIsDisturbed(t *testing.T) {
	dir, m := planted(t)
	calm := false
	fs := onWalk(t, dir, func(fs *linuxFS, nth int, this, other string) {
		if calm {
			return
		}
		// Now to where the walk is still to come, then to where it was.
		err := os.Rename(dir+"/"+this+"/b", dir+"/"+other+"/b")
		if err != nil && (nth == 2 || !errors.Is(err, os.ErrNotExist)) {
			t.Error(err)
		}
		fs.move(1, true)()
	})
	if _, err := fs.GetAttr(t.Context(), m["a/b/c/f"]); !errors.Is(err, vfs.ErrTryLater) {
		t.Errorf("GetAttr while it is moved again and again: %v, want %v", err, vfs.ErrTryLater)
	}
	calm = true
	holds(t, fs, m["a/b/c/f"], "a/b/c/f")
}

// A directory may have the inode number of a file that was removed, and that a call which
// was under way has noted since.
func TestWalkThroughAnInodeNumberUsedAgain(t *testing.T) {
	for _, known := range []int{100, 4} {
		t.Run(fmt.Sprintf("of %d files known", known), func(t *testing.T) {
			dir, m := planted(t)
			fs := serve(t, dir, Options{Async: true, MaxKnown: known})
			fs.byFH, fs.recheck, fs.pause = false, 0, 0
			for _, name := range []string{"a/b", "a"} {
				ino, _ := fs.inode(m[name])
				f := &found{}
				f.st.Ino = ino
				fs.learn(fs.root, "removed", f, m[name]+"before")
			}
			holds(t, fs, m["a/b/c/f"], "a/b/c/f")
		})
	}
}

// What a walk has no room for does not stay: a directory counts the children that there are.
func TestChildrenAreCounted(t *testing.T) {
	dir := t.TempDir()
	full := serve(t, dir, Options{Async: true})
	var files, dirs []vfs.Handle
	for i := range 20 {
		d, _, err := full.Mkdir(t.Context(), full.Root(), fmt.Sprint("d", i), vfs.SetAttr{})
		do(t, err)
		e, _, err := full.Mkdir(t.Context(), d, "e", vfs.SetAttr{})
		do(t, err)
		f, _, err := full.Create(t.Context(), e, "f", vfs.SetAttr{})
		do(t, err)
		dirs, files = append(dirs, d), append(files, f)
	}
	fs := serve(t, dir, Options{Async: true, MaxKnown: 8})
	fs.byFH, fs.recheck, fs.pause = false, 0, 0
	for i := range files {
		a, err := fs.GetAttr(t.Context(), files[i])
		do(t, err)
		if i%2 == 0 {
			do(t, fs.Rename(t.Context(), fs.Root(), fmt.Sprint("d", i), dirs[i+1], "g"))
		}
		if b, err := fs.GetAttr(t.Context(), files[i]); err != nil || a.FileID != b.FileID {
			t.Errorf("file %d is another one now: %v", i, err)
		}
	}
	want := make(map[*node]int)
	var count func(n *node)
	count = func(n *node) {
		if _, ok := want[n]; ok {
			return
		}
		want[n] = 0
		for _, p := range n.places {
			count(p.dir)
			want[p.dir]++
		}
	}
	for _, n := range fs.known {
		count(n)
	}
	for n, children := range want {
		if n.children != children {
			t.Errorf("a directory (known: %v) counts %d children, and has %d", n.known, n.children, children)
		}
	}
	if len(fs.known) > 12 {
		t.Errorf("%d files are known, more than there is room for", len(fs.known))
	}
}

// A directory that other calls have had forgotten, to have room for others, while a walk reads it, does not make what
// is below it stale: the walk has only lost its way there.
func TestDirectoryForgottenWhileAWalkReadsIt(t *testing.T) {
	dir, m := planted(t)
	fs := serve(t, dir, Options{Async: true})
	fs.byFH, fs.recheck, fs.pause = false, 0, 0
	a, _ := fs.inode(m["a"])
	forgotten := false
	open := fs.openAt
	fs.openAt = func(in int, name string, flags, mode uint64) (int, error) {
		var st unix.Stat_t
		if name == "." && !forgotten && unix.Fstat(in, &st) == nil && st.Ino == a {
			fs.mu.Lock()
			if fs.walk.running != nil {
				forgotten = true
				fs.forget(fs.known[a])
			}
			fs.unlock()
		}
		return open(in, name, flags, mode)
	}
	holds(t, fs, m["a/b/c/f"], "a/b/c/f")
	if !forgotten {
		t.Error("nothing was forgotten")
	}
}
