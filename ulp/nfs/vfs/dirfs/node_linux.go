package dirfs

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// A node is a file of which something is known. linuxFS.mu guards all but ino.
type node struct {
	ino      uint64
	handle   vfs.Handle // "": a walk has found the name, and nobody has looked at the file
	typ      vfs.Type   // does not change once handle is known
	places   []place    // where it was seen, the latest first; of a directory one
	children int        // places that lie in it
	known    bool       // it is in linuxFS.known

	// Descriptors, with which it was last seen in the tree at the time checked. rd can
	// be read (that of a directory is O_PATH where it can't), wr written.
	rd, wr  *desc
	checked time.Time
	inUse   time.Time // when a descriptor was last used

	used, open link
}

func newNode(ino uint64) *node {
	n := &node{ino: ino}
	n.used.node, n.open.node = n, n
	return n
}

// A place is a name in a directory.
type place struct {
	dir  *node
	name string
}

// maxPlaces is how many names of one file are remembered.
const maxPlaces = 8

// A desc is a descriptor that is closed when nobody uses it any more.
type desc struct {
	fd   int
	refs atomic.Int32
	both bool // can be read and written

	// Of one that can be written: see stable_linux.go.
	fs    *linuxFS
	ino   uint64
	dirty atomic.Bool
}

func newDesc(fd int) *desc {
	d := &desc{fd: fd}
	d.refs.Store(1)
	return d
}

// done may take as long as the disk does, if data was written. The caller does not hold mu.
func (d *desc) done() {
	if d.refs.Add(-1) == 0 {
		if d.dirty.Load() {
			d.fs.flush(d)
		}
		_ = unix.Close(d.fd)
	}
}

func (d *desc) hold() *desc {
	d.refs.Add(1)
	return d
}

// learn notes that the file that f reports has a name in dir, and returns its node.
func (fs *linuxFS) learn(dir *node, name string, f *found, h vfs.Handle) *node {
	fs.mu.Lock()
	defer fs.unlock()
	n := fs.known[f.st.Ino]
	if n != nil && n.handle != "" && n.handle != h {
		fs.forget(n) // its inode number is another file's now
		n = nil
	}
	if n == nil {
		n = fs.enter(f.st.Ino)
	}
	if n.handle == "" {
		n.handle, n.typ = h, typeOf(&f.st)
	}
	fs.addPlace(n, place{dir, name})
	fs.used.toFront(n)
	return n
}

// enter makes a node. The caller holds mu.
func (fs *linuxFS) enter(ino uint64) *node {
	for range 16 { // enough: of what is used longest ago, not all is a directory in use
		if len(fs.known) < fs.opt.MaxKnown {
			break
		}
		old := fs.used.oldest()
		if old == nil {
			break
		}
		if old.children > 0 {
			fs.used.toFront(old)
			continue
		}
		fs.forget(old)
		fs.walk.complete = false // what is not known may exist
	}
	n := newNode(ino)
	if fs.closed {
		return n
	}
	n.known = true
	fs.known[ino] = n
	fs.used.toFront(n)
	return n
}

// addPlace puts a place in front. The caller holds mu.
func (fs *linuxFS) addPlace(n *node, p place) {
	if n == fs.root || len(n.places) > 0 && n.places[0] == p {
		return
	}
	p.dir.children++ // first, so that it has one throughout
	if n.typ == vfs.Directory {
		for len(n.places) > 0 {
			fs.dropPlace(n, n.places[0])
		}
	}
	fs.dropPlace(n, p)
	if len(n.places) == maxPlaces {
		fs.dropPlace(n, n.places[maxPlaces-1])
	}
	n.places = slices.Insert(n.places, 0, p)
}

// dropPlace removes a place. The caller holds mu.
func (fs *linuxFS) dropPlace(n *node, p place) {
	if i := slices.Index(n.places, p); i >= 0 {
		n.places = slices.Delete(n.places, i, i+1)
		fs.orphan(p.dir)
	}
}

// orphan takes a child from a directory. One that is there for its children only, as a walk
// had no room for more, goes with the last of them. The caller holds mu.
func (fs *linuxFS) orphan(dir *node) {
	dir.children--
	if dir.children > 0 || dir.known {
		return
	}
	for len(dir.places) > 0 {
		fs.dropPlace(dir, dir.places[0])
	}
}

// forget removes a node. The caller holds mu, and gives it back with unlock.
func (fs *linuxFS) forget(n *node) {
	if n == fs.root {
		return
	}
	for len(n.places) > 0 {
		fs.dropPlace(n, n.places[0])
	}
	fs.closeDescs(n)
	if n.known {
		n.known = false
		delete(fs.known, n.ino)
		fs.used.remove(n)
	}
}

// closeDescs closes a node's descriptors. The caller holds mu, and gives it back with unlock.
func (fs *linuxFS) closeDescs(n *node) {
	fs.open.remove(n)
	for _, d := range []*desc{n.rd, n.wr} {
		if d != nil {
			fs.dropped = append(fs.dropped, d)
		}
	}
	n.rd, n.wr = nil, nil
}

// unlock gives mu back, and then closes the descriptors that were dropped meanwhile.
func (fs *linuxFS) unlock() {
	list := fs.dropped
	fs.dropped = nil
	fs.mu.Unlock()
	for _, d := range list {
		d.done()
	}
}

// touch notes that a node's descriptors are used now. The caller holds mu.
func (fs *linuxFS) touch(n *node, now time.Time) {
	if n == fs.root {
		return
	}
	n.inUse = now
	fs.open.toFront(n)
	fs.watchIdle()
}

// A link is a node's place in an lru.
type link struct {
	node       *node
	next, prev *link
}

// An lru is a list of nodes in the order in which they were used.
type lru struct {
	head  link // next is the latest
	count int
	of    func(*node) *link
}

func (l *lru) init(of func(*node) *link) {
	l.of = of
	l.head.next, l.head.prev = &l.head, &l.head
}

func (l *lru) remove(n *node) {
	e := l.of(n)
	if e.next == nil {
		return
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.next, e.prev = nil, nil
	l.count--
}

func (l *lru) toFront(n *node) {
	l.remove(n)
	e := l.of(n)
	e.next, e.prev = l.head.next, &l.head
	e.next.prev, l.head.next = e, e
	l.count++
}

func (l *lru) oldest() *node {
	if l.count == 0 {
		return nil
	}
	return l.head.prev.node
}

// newer returns the node that was used next after n, or nil.
func (l *lru) newer(n *node) *node { return l.of(n).prev.node }

// expired are handles that are known to be stale, until a time. It is bounded, and what is
// beyond is searched for again.
type expired struct {
	until map[vfs.Handle]time.Time
	order []vfs.Handle
}

const maxExpired = 8192

func (e *expired) add(h vfs.Handle, until time.Time) {
	if e.until == nil {
		e.until = make(map[vfs.Handle]time.Time)
	}
	if _, ok := e.until[h]; !ok {
		if len(e.order) == maxExpired {
			delete(e.until, e.order[0])
			e.order = e.order[1:]
		}
		e.order = append(e.order, h)
	}
	e.until[h] = until
}

func (e *expired) has(h vfs.Handle) bool {
	t, ok := e.until[h]
	return ok && time.Now().Before(t)
}
