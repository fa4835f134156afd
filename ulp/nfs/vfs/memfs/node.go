package memfs

import (
	"context"
	"sync"
	"time"

	"urnic/ulp/nfs/vfs"
)

// A node is a file of any type.
type node struct {
	id           uint64
	handle       vfs.Handle
	typ          vfs.Type
	major, minor uint32
	target       string // of a symbolic link
	file         *file  // of a regular file
	dir          *dir   // of a directory

	// mu guards what follows, and the table of pages or the names. It is never held
	// while data is copied.
	mu                  sync.RWMutex
	mode, uid, gid      uint32
	links               uint32 // 0: gone
	size                uint64
	atime, mtime, ctime time.Time
}

// newNode makes a file that has no name yet.
func (fs *FS) newNode(t vfs.Type, s vfs.SetAttr) *node {
	now := time.Now().Round(0)
	n := &node{
		id: fs.nextID.Add(1), typ: t, mode: 0o644, uid: fs.opt.UID, gid: fs.opt.GID, links: 1,
		atime: now, mtime: now, ctime: now,
	}
	n.handle = makeHandle(n.id)
	switch t {
	case vfs.Directory:
		n.mode, n.links, n.dir = 0o755, 2, newDir()
	case vfs.Symlink:
		n.mode = 0o777
	case vfs.Regular:
		n.file = newFile()
		if s.Size != nil {
			n.size = *s.Size
		}
	case vfs.BlockDevice, vfs.CharDevice, vfs.Socket, vfs.FIFO: // nothing but attributes
	}
	n.apply(s)
	return n
}

// apply sets all of s but the size.
func (n *node) apply(s vfs.SetAttr) {
	set := func(to *uint32, v *uint32) {
		if v != nil {
			*to = *v
		}
	}
	set(&n.mode, s.Mode)
	set(&n.uid, s.UID)
	set(&n.gid, s.GID)
	if s.Atime != nil {
		n.atime = s.Atime.Round(0)
	}
	if s.Mtime != nil {
		n.mtime = s.Mtime.Round(0)
	}
}

// changed notes that attributes have changed, and content too if so. The time of the
// change is later than that of each before, also if the clock stands still.
func (n *node) changed(content bool) {
	now := time.Now().Round(0)
	if !now.After(n.ctime) {
		now = n.ctime.Add(1)
	}
	n.ctime = now
	if content {
		n.mtime = now
	}
}

// accessed notes that content was read. It does so as Linux's relatime does, lest each
// read writes: once after each change, and once a day.
func (n *node) accessed() {
	n.mu.RLock()
	old := n.unread()
	n.mu.RUnlock()
	if !old {
		return
	}
	n.mu.Lock()
	if n.unread() {
		n.atime = time.Now().Round(0)
		if !n.atime.After(n.mtime) {
			n.atime = n.mtime.Add(1)
		}
	}
	n.mu.Unlock()
}

func (n *node) unread() bool {
	return !n.atime.After(n.mtime) || n.ctime.Sub(n.atime) > 24*time.Hour
}

// attr returns the attributes, and ErrStale if the node has no name any more.
func (n *node) attr() (vfs.Attr, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.attrLocked()
}

func (n *node) attrLocked() (vfs.Attr, error) {
	if n.links == 0 {
		return vfs.Attr{}, vfs.ErrStale
	}
	a := vfs.Attr{
		Type: n.typ, Mode: n.mode, Links: n.links, UID: n.uid, GID: n.gid, Size: n.size,
		Major: n.major, Minor: n.minor, FileID: n.id, Atime: n.atime, Mtime: n.mtime, Ctime: n.ctime,
	}
	switch {
	case n.file != nil:
		a.Used = uint64(n.file.used.Load())
	case n.dir != nil:
		a.Size = dirSize * uint64(n.dir.names.Len())
		a.Used = a.Size
	default:
		a.Size = uint64(len(n.target))
		a.Used = a.Size
	}
	return a, nil
}

// GetAttr returns what is known of a file.
func (fs *FS) GetAttr(ctx context.Context, h vfs.Handle) (vfs.Attr, error) {
	n, err := fs.node(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	return n.attr()
}

// SetAttr changes all that s says, or nothing.
func (fs *FS) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	n, err := fs.node(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	if err := fs.check(n.typ, s); err != nil {
		return vfs.Attr{}, err
	}
	if s.Size != nil {
		n.file.io.Lock()
		defer n.file.io.Unlock()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.links == 0 {
		return vfs.Attr{}, vfs.ErrStale
	}
	if s.Size != nil {
		n.file.cut(fs, *s.Size)
		n.size = *s.Size
	}
	n.changed(s.Size != nil)
	n.apply(s)
	return n.attrLocked()
}

// check returns an error if a file of type t can't have what s asks for.
func (fs *FS) check(t vfs.Type, s vfs.SetAttr) error {
	if err := s.Check(t); err != nil {
		return err
	}
	if s.Size != nil && *s.Size > fs.opt.MaxFileSize {
		return vfs.ErrTooBig
	}
	return nil
}

// ReadLink returns where a symbolic link points to.
func (fs *FS) ReadLink(ctx context.Context, h vfs.Handle) (string, error) {
	n, err := fs.node(ctx, h)
	if err != nil {
		return "", err
	}
	if n.typ != vfs.Symlink {
		return "", vfs.ErrInvalid
	}
	return n.target, nil
}
