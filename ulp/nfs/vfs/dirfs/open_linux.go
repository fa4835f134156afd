package dirfs

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// A kind is what a descriptor is wanted for.
type kind int

const (
	anyDesc kind = iota // to look at it, or to look up names in it
	readDesc
	writeDesc
)

const (
	// recheck is how long a descriptor is used before its file is looked for again
	// where it was, in case somebody has moved it out of the tree.
	recheck = time.Second
	// maxDepth ends a search in places that hold each other, because directories were
	// moved and only half of it is known.
	maxDepth = 4096
)

// errLost says that a file is not where it was seen.
var errLost = errors.New("dirfs: the file is not where it was")

// resolve returns the node that a handle names, once it has been found in the tree.
func (fs *linuxFS) resolve(ctx context.Context, h vfs.Handle) (*node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ino, ok := fs.inode(h)
	fs.mu.Lock()
	if fs.closed {
		fs.mu.Unlock()
		return nil, vfs.ErrClosed
	}
	if !ok || fs.gone.has(h) {
		fs.mu.Unlock()
		return nil, vfs.ErrStale
	}
	n := fs.known[ino]
	same := n != nil && n.handle == h
	if same && n != fs.root {
		fs.used.toFront(n)
	}
	fs.mu.Unlock()
	if same {
		return n, nil
	}
	if n != nil {
		// What has this inode number now, if it is there still, is another file, or
		// one that nobody has looked at so far.
		d, err := fs.try(ctx, n, anyDesc, 0)
		if err == nil {
			d.done()
			fs.mu.Lock()
			same := n.handle == h
			fs.mu.Unlock()
			if same {
				return n, nil
			}
			return nil, vfs.ErrStale
		}
		if !errors.Is(err, errLost) {
			return nil, err
		}
	}
	return fs.find(ctx, h, ino)
}

// directory returns the directory that a handle names, and a descriptor of it.
func (fs *linuxFS) directory(ctx context.Context, h vfs.Handle) (*node, *desc, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return nil, nil, err
	}
	if n.typ != vfs.Directory {
		d.done()
		return nil, nil, vfs.ErrNotDirectory
	}
	return n, d, nil
}

// acquire returns a descriptor of a file; the caller says done to it. It searches for a
// file that is no longer where it was.
func (fs *linuxFS) acquire(ctx context.Context, n *node, k kind) (*desc, error) {
	for range 3 {
		d, err := fs.try(ctx, n, k, 0)
		if err == nil || !errors.Is(err, errLost) {
			return d, err
		}
		fs.mu.Lock()
		h := n.handle
		fs.mu.Unlock()
		if n, err = fs.find(ctx, h, n.ino); err != nil {
			return nil, err
		}
	}
	return nil, vfs.ErrTryLater
}

// try returns a descriptor of a file that is at one of its places, or errLost.
func (fs *linuxFS) try(ctx context.Context, n *node, k kind, depth int) (*desc, error) {
	now := time.Now()
	fs.mu.Lock()
	if fs.closed {
		fs.mu.Unlock()
		return nil, vfs.ErrClosed
	}
	d := n.pick(k)
	if d != nil && (n == fs.root || now.Sub(n.checked) < fs.recheck) {
		d.hold()
		fs.touch(n, now)
		fs.mu.Unlock()
		return d, nil
	}
	places := append([]place(nil), n.places...)
	fs.mu.Unlock()
	if depth > maxDepth {
		return nil, errLost
	}
	for _, p := range places {
		d, err := fs.openPlace(ctx, n, p, k, depth)
		switch {
		case err == nil:
			return d, nil
		case errors.Is(err, errLost):
			fs.mu.Lock()
			fs.dropPlace(n, p)
			fs.mu.Unlock()
		default:
			return nil, err
		}
	}
	return nil, errLost
}

// pick returns the descriptor that serves, or nil. The caller holds mu.
func (n *node) pick(k kind) *desc {
	switch {
	case n.typ != vfs.Regular:
		return n.rd
	case k == writeDesc, n.rd == nil && k == anyDesc, n.wr != nil && n.wr.both:
		return n.wr
	}
	return n.rd
}

// openPlace opens a file at a place, or returns errLost if another is there or none.
func (fs *linuxFS) openPlace(ctx context.Context, n *node, p place, k kind, depth int) (*desc, error) {
	dir, err := fs.try(ctx, p.dir, anyDesc, depth+1)
	if err != nil {
		return nil, err
	}
	defer dir.done()
	fd, err := fs.openFD(dir.fd, p.name, unix.O_PATH, 0)
	if err != nil {
		return nil, lost(err)
	}
	d := newDesc(fd)
	f, h, err := fs.identify(fd)
	if err != nil {
		d.done()
		return nil, lost(err)
	}
	fs.mu.Lock()
	if n.handle == "" && f.st.Ino == n.ino {
		n.handle, n.typ = h, typeOf(&f.st)
	}
	same, typ := n.handle == h, n.typ
	if same {
		n.checked = time.Now()
		if have := n.pick(k); have != nil {
			defer d.done()
			have.hold()
			fs.touch(n, n.checked)
			fs.mu.Unlock()
			return have, nil
		}
	}
	fs.mu.Unlock()
	if !same {
		d.done()
		return nil, errLost
	}
	if typ == vfs.Directory {
		return fs.keepDir(n, d), nil
	}
	if k == anyDesc || typ != vfs.Regular {
		return d, nil
	}
	defer d.done()
	return fs.openData(n, d, dir.fd, p.name, k)
}

// keepDir keeps a directory's descriptor: one that can be read and synchronised if that is
// permitted.
func (fs *linuxFS) keepDir(n *node, d *desc) *desc {
	if fd, err := fs.openFD(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
		d.done()
		d = newDesc(fd)
	}
	fs.keep(n, d, readDesc)
	return d
}

// openData opens a regular file for data. path is open at the file, so that its inode
// number can't become another's meanwhile.
func (fs *linuxFS) openData(n *node, path *desc, dir int, name string, k kind) (*desc, error) {
	// What came into the file's place may be a FIFO, which would not let us go.
	const flags = unix.O_NONBLOCK | unix.O_NOCTTY
	var fd int
	var err error
	both := false
	if k == readDesc {
		fd, err = fs.openFD(dir, name, unix.O_RDONLY|flags, 0)
	} else {
		fd, err = fs.openFD(dir, name, unix.O_RDWR|flags, 0)
		if both = err == nil; errors.Is(err, unix.EACCES) {
			fd, err = fs.openFD(dir, name, unix.O_WRONLY|flags, 0)
		}
	}
	if err != nil {
		return nil, lost(err)
	}
	d := newDesc(fd)
	d.both = both
	if k == writeDesc {
		d.fs, d.ino = fs, n.ino
	}
	var a, b found
	if err = a.statAt(path.fd, ""); err == nil {
		err = b.statAt(fd, "")
	}
	if err != nil || a.st.Ino != b.st.Ino || a.st.Dev_major != b.st.Dev_major || a.st.Dev_minor != b.st.Dev_minor {
		d.done()
		return nil, errLost
	}
	fs.keep(n, d, k)
	return d, nil
}

// keep lets a node have a descriptor for later, too.
func (fs *linuxFS) keep(n *node, d *desc, k kind) {
	fs.mu.Lock()
	defer fs.unlock()
	if !n.known || fs.closed || n.pick(k) != nil {
		return // the file is gone, or somebody else was faster
	}
	d.hold()
	if k == writeDesc {
		if d.both && n.rd != nil {
			fs.dropped = append(fs.dropped, n.rd)
			n.rd = nil
		}
		n.wr = d
	} else {
		n.rd = d
	}
	fs.touch(n, time.Now())
	for fs.open.count > fs.opt.MaxOpen/2 { // a node may have two
		fs.closeDescs(fs.open.oldest())
	}
}

// openFD is the tree's opener that, when descriptors run out, closes those that are only kept.
func (fs *linuxFS) openFD(dir int, name string, flags, mode uint64) (int, error) {
	fd, err := fs.openAt(dir, name, flags, mode)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		fs.mu.Lock()
		for n := fs.open.oldest(); n != nil; n = fs.open.oldest() {
			fs.closeDescs(n)
		}
		fs.unlock()
		fd, err = fs.openAt(dir, name, flags, mode)
	}
	return fd, err
}

// lost makes errLost of errors that say that something else has a name, or nothing.
func lost(err error) error {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.EISDIR, unix.ENXIO, unix.ESTALE} {
		if errors.Is(err, e) {
			return errLost
		}
	}
	return fail(err)
}
