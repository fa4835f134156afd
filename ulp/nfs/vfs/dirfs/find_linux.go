package dirfs

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

const (
	// believed is how long a walk that has not found a file is taken for proof that
	// there is none. The machine's own users may move files while it walks.
	believed = time.Minute
	// pause is how many times as long as a walk took there is none after it, so that
	// clients with made-up handles can't keep the machine busy.
	pause = 10
	// forever is for files that were seen to have no name left.
	forever = 100 * 365 * 24 * time.Hour
)

// walkState is what is known of walks. linuxFS.mu guards it.
type walkState struct {
	running  chan struct{} // closed when the walk ends; nil: there is none
	wanted   map[uint64]bool
	found    map[uint64]bool // those of the wanted that it has seen, or that were moved meanwhile
	complete bool            // the last one has seen all, and all that is still known
	moved    bool            // a directory was moved while it ran
	since    time.Time       // when it began
	next     time.Time       // when there may be another

	moving     map[uint64]int // files that are being moved now, by inode number
	movingDirs int            // how many of them are directories
}

// move notes that a client begins to move a file: a walk may see neither where it was nor where
// it comes to, and of a directory nothing that is in it. The caller says moved then, once
// it has learned where the file is.
func (fs *linuxFS) move(ino uint64, isDir bool) (moved func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	w := &fs.walk
	if w.moving == nil {
		w.moving = make(map[uint64]int)
	}
	w.moving[ino]++
	if isDir {
		w.movingDirs++
		w.moved = true
	}
	if w.running != nil && w.wanted[ino] {
		w.found[ino] = true
	}
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if w.moving[ino]--; w.moving[ino] == 0 {
			delete(w.moving, ino)
		}
		if isDir {
			w.movingDirs--
		}
	}
}

// find looks for a file that is not where it was, or was never seen by this process.
func (fs *linuxFS) find(ctx context.Context, h vfs.Handle, ino uint64) (*node, error) {
	if h == fs.root.handle {
		return fs.root, nil
	}
	if fs.byFH {
		n, err := fs.findByFH(h)
		if n != nil || err != nil {
			return n, err
		}
	}
	for range 3 {
		if err := fs.walkFor(ctx, h, ino); err != nil {
			return nil, err
		}
		fs.mu.Lock()
		n := fs.known[ino]
		fs.mu.Unlock()
		if n == nil {
			continue // it was forgotten since
		}
		d, err := fs.try(ctx, n, anyDesc, 0)
		if err == nil {
			d.done()
			fs.mu.Lock()
			same := n.handle == h
			fs.mu.Unlock()
			if same {
				return n, nil
			}
			return nil, fs.stale(h, forever) // the inode number is another file's
		}
		if !errors.Is(err, errLost) {
			return nil, err
		}
		fs.mu.Lock()
		fs.forget(n)
		fs.walk.complete = false // what is not known may exist
		fs.unlock()
	}
	return nil, vfs.ErrTryLater
}

// stale remembers that a handle is stale, for some time, and says so.
func (fs *linuxFS) stale(h vfs.Handle, d time.Duration) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.gone.add(h, time.Now().Add(d))
	return vfs.ErrStale
}

// findByFH asks the filesystem where a file is. It returns nil if that can't be said: then
// the file exists, but maybe not in the tree.
func (fs *linuxFS) findByFH(h vfs.Handle) (*node, error) {
	fh, ok := own(h)
	if !ok {
		return nil, nil
	}
	fd, err := again(func() (int, error) {
		return unix.OpenByHandleAt(fs.root.rd.fd, fh, unix.O_PATH|unix.O_CLOEXEC)
	})
	if err != nil {
		return nil, vfs.ErrStale
	}
	defer func() { _ = unix.Close(fd) }()
	f, got, err := fs.identify(fd)
	if err != nil || got != h || f.st.Nlink == 0 {
		return nil, vfs.ErrStale
	}
	// Its path, if the system knows one, is only a hint: it is gone through from the
	// root on, as any other.
	top, err := readlink(procPath(fs.root.rd.fd))
	if err != nil {
		return nil, nil
	}
	path, err := readlink(procPath(fd))
	if err != nil {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(top, "/")+"/")
	if !ok {
		return nil, nil
	}
	return fs.follow(h, rest), nil
}

// follow goes a path down from the root, and returns the file there if it has the handle.
func (fs *linuxFS) follow(h vfs.Handle, path string) *node {
	n, d := fs.root, fs.root.rd.hold()
	defer func() { d.done() }()
	for name := range strings.SplitSeq(path, "/") {
		fd, err := fs.openFD(d.fd, name, unix.O_PATH, 0)
		if err != nil {
			return nil
		}
		d.done()
		d = newDesc(fd)
		f, got, err := fs.identify(fd)
		if err != nil {
			return nil
		}
		n = fs.learn(n, name, f, got)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n.handle != h {
		return nil
	}
	return n
}

func readlink(path string) (string, error) {
	b := make([]byte, 4096)
	n, err := unix.Readlink(path, b)
	if err != nil || n == len(b) {
		return "", errors.Join(err, unix.ENAMETOOLONG)
	}
	return string(b[:n]), nil
}

// walkFor returns when the tree has been walked through since, and an inode number, if it
// is in it, was seen; or at once, if that was done a moment ago. It returns ErrTryLater if so
// much is moved that it can't be said.
func (fs *linuxFS) walkFor(ctx context.Context, h vfs.Handle, ino uint64) error {
	tries := 4
	for first := true; ; first = false {
		fs.mu.Lock()
		w := &fs.walk
		switch now := time.Now(); {
		case fs.closed:
			fs.mu.Unlock()
			return vfs.ErrClosed
		case fs.known[ino] != nil && !first:
			fs.mu.Unlock()
			return nil
		case w.running != nil:
			running := w.running
			fs.mu.Unlock()
			select {
			case <-running:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		case fs.known[ino] == nil && w.moving[ino] == 0 && w.complete && now.Sub(w.since) < believed || fs.gone.has(h):
			fs.mu.Unlock()
			return vfs.ErrStale
		case now.Before(w.next):
			if w.wanted == nil {
				w.wanted = make(map[uint64]bool)
			}
			w.wanted[ino] = true
			wait := time.NewTimer(w.next.Sub(now))
			fs.mu.Unlock()
			select {
			case <-wait.C:
			case <-ctx.Done():
				wait.Stop()
				return ctx.Err()
			}
			continue
		default:
			if w.wanted == nil {
				w.wanted = make(map[uint64]bool)
			}
			w.wanted[ino] = true
			w.running, w.moved, w.complete, w.since = make(chan struct{}), w.movingDirs > 0, true, now
			w.found = make(map[uint64]bool)
			for ino := range w.moving {
				if w.wanted[ino] {
					w.found[ino] = true
				}
			}
			fs.mu.Unlock()
		}
		err := fs.walkAll(ctx)
		fs.mu.Lock()
		now := time.Now()
		w.complete = w.complete && !w.moved && err == nil
		w.next = now.Add(fs.pause * now.Sub(w.since))
		switch {
		case err != nil || fs.known[ino] != nil:
		case w.found[ino] || w.moved: // it is there, or may be
			err = vfs.ErrTryLater
		default:
			err = vfs.ErrStale
			fs.gone.add(h, now.Add(believed))
		}
		w.wanted = nil
		close(w.running)
		w.running = nil
		fs.mu.Unlock()
		if tries--; tries == 0 || !errors.Is(err, vfs.ErrTryLater) {
			return err
		}
	}
}

// A step is a directory that a walk has still to read, and where it was seen; the root was seen nowhere.
type step struct {
	dir *node
	at  place
}

// walkAll notes where all files are, as far as there is room, and all that are wanted.
func (fs *linuxFS) walkAll(ctx context.Context) error {
	buf := make([]byte, direntBuf)
	left := []step{{dir: fs.root}}
	defer func() {
		for _, s := range left {
			fs.leave(s.at.dir)
		}
	}()
	for len(left) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := left[len(left)-1]
		left = left[:len(left)-1]
		dir, d, err := fs.enterStep(ctx, s)
		fs.leave(s.at.dir)
		if errors.Is(err, vfs.ErrClosed) {
			return err
		}
		if err != nil {
			continue // gone, or closed to us: then its files are none of ours
		}
		fd, err := fs.openFD(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		d.done()
		if err != nil {
			fs.leave(dir)
			continue
		}
		_ = eachDirent(fd, buf, func(e *dirent) bool {
			at := place{dir, string(e.name)}
			isDir := e.isDir(fd)
			var f found
			if fs.layered && fs.statAt(&f, fd, at.name) == nil {
				e.ino = f.st.Ino
			}
			if n := fs.seen(at, e.ino, isDir); isDir {
				fs.stay(dir)
				left = append(left, step{n, at})
			}
			return true
		})
		_ = unix.Close(fd)
		fs.leave(dir)
	}
	return nil
}

// enterStep opens a directory that a walk has seen; leave is called after it. Its node may
// be that of a file that had the inode number before, or may have been forgotten since.
func (fs *linuxFS) enterStep(ctx context.Context, s step) (*node, *desc, error) {
	d, err := fs.try(ctx, s.dir, anyDesc, 0)
	if errors.Is(err, errLost) && s.dir != fs.root {
		fs.mu.Lock()
		fs.forget(s.dir)
		fs.unlock()
		s.dir = fs.seen(s.at, s.dir.ino, true)
		d, err = fs.try(ctx, s.dir, anyDesc, 0)
	}
	if errors.Is(err, errLost) && s.dir != fs.root && !fs.reachable(ctx, s.at.dir) {
		fs.mu.Lock()
		fs.walk.moved = true // it may be there; it is the way to it that is lost
		fs.mu.Unlock()
	}
	if err != nil {
		return nil, nil, err
	}
	fs.stay(s.dir)
	return s.dir, d, nil
}

func (fs *linuxFS) reachable(ctx context.Context, dir *node) bool {
	d, err := fs.try(ctx, dir, anyDesc, 0)
	if err == nil {
		d.done()
	}
	return !errors.Is(err, errLost)
}

// stay has a directory not be forgotten while a walk reads it, or has still to enter what it has seen there.
func (fs *linuxFS) stay(dir *node) {
	fs.mu.Lock()
	dir.children++
	fs.mu.Unlock()
}

// leave is the end of a stay. The root's step has no directory.
func (fs *linuxFS) leave(dir *node) {
	if dir == nil {
		return
	}
	fs.mu.Lock()
	fs.orphan(dir)
	fs.mu.Unlock()
}

// seen notes that a walk has seen a name. It returns nil for what is no directory and not
// remembered.
func (fs *linuxFS) seen(at place, ino uint64, isDir bool) *node {
	fs.mu.Lock()
	defer fs.unlock()
	if fs.walk.wanted[ino] {
		fs.walk.found[ino] = true
	}
	n := fs.known[ino]
	if n == nil {
		if len(fs.known) < fs.opt.MaxKnown || fs.walk.wanted[ino] {
			n = fs.enter(ino)
		} else {
			fs.walk.complete = false
			if !isDir {
				return nil
			}
			n = newNode(ino) // for as long as the walk needs it, and what it finds there
		}
	}
	if isDir && n.handle == "" {
		n.typ = vfs.Directory
	}
	fs.addPlace(n, at)
	return n
}
