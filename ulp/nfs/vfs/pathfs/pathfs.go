package pathfs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"path"
	"sync"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/internal/dirlist"
)

// FS is a vfs.FS of a Tree.
type FS struct {
	tree Tree
	can  vfs.Features
	root *node

	// names is held alone by whoever changes what a path names, and shared by all others
	// for as long as they use a path.
	names sync.RWMutex

	mu     sync.Mutex // guards the table, and all nodes
	closed bool
	nextID uint64
	table  map[uint64]*node
	byID   map[any]*node
}

// A node is a file that somebody has seen.
type node struct {
	id     uint64
	handle vfs.Handle
	typ    vfs.Type
	same   any // Info.ID
	places []place
	kids   *dirlist.List[*node] // of a directory
}

type place struct {
	dir  *node
	name string
}

// New serves a tree, which Close closes.
func New(t Tree) (*FS, error) {
	fs := &FS{tree: t, can: t.Features(), table: make(map[uint64]*node), byID: make(map[any]*node)}
	info, err := t.Lstat(".")
	if err != nil {
		return nil, Fail(err)
	}
	if info.Attr.Type != vfs.Directory {
		return nil, vfs.ErrNotDirectory
	}
	fs.root = fs.newNode(info)
	return fs, nil
}

// newNode makes a node. The caller holds mu, except for the root.
func (fs *FS) newNode(info Info) *node {
	fs.nextID++
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], fs.nextID)
	_, _ = rand.Read(b[8:]) // never fails
	n := &node{id: fs.nextID, handle: vfs.Handle(b[:]), typ: info.Attr.Type, same: info.ID}
	if n.typ == vfs.Directory {
		n.kids = dirlist.New[*node]()
	}
	fs.table[n.id] = n
	if n.same != nil {
		fs.byID[n.same] = n
	}
	return n
}

// Features says what the tree can do.
func (fs *FS) Features() vfs.Features { return fs.can }

// Root returns the root's handle.
func (fs *FS) Root() vfs.Handle { return fs.root.handle }

// Close closes the tree.
func (fs *FS) Close() error {
	fs.names.Lock()
	defer fs.names.Unlock()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return nil
	}
	fs.closed = true
	fs.table, fs.byID = nil, nil
	return Fail(fs.tree.Close())
}

// node returns what a handle names.
func (fs *FS) node(ctx context.Context, h vfs.Handle) (*node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return nil, vfs.ErrClosed
	}
	if len(h) == 16 {
		if n := fs.table[binary.BigEndian.Uint64([]byte(h[:8]))]; n != nil && n.handle == h {
			return n, nil
		}
	}
	return nil, vfs.ErrStale
}

// find returns what a handle names, a path of it, and what the tree says of it. The caller
// holds names.
func (fs *FS) find(ctx context.Context, h vfs.Handle) (*node, string, Info, error) {
	n, err := fs.node(ctx, h)
	for err == nil {
		p, ok := fs.path(n)
		if !ok {
			break
		}
		info, err := fs.tree.Lstat(p)
		if err == nil && n.is(info) {
			return n, p, fs.complete(n, info), nil
		}
		if err = Fail(err); err != nil && !missing(err) {
			return nil, "", Info{}, err
		}
		if n == fs.root {
			break
		}
		fs.mu.Lock() // somebody has removed it, or put something else in its place
		if len(n.places) > 0 {
			fs.leave(n, n.places[0])
		}
		fs.mu.Unlock()
	}
	if err == nil {
		err = vfs.ErrStale
	}
	return nil, "", Info{}, err
}

// is says whether the tree reports the same file.
func (n *node) is(info Info) bool { return n.typ == info.Attr.Type && n.same == info.ID }

// complete fills in what the tree does not know.
func (fs *FS) complete(n *node, info Info) Info {
	if info.ID == nil {
		info.Attr.FileID = n.id
	}
	return info
}

// directory is find for directories.
func (fs *FS) directory(ctx context.Context, h vfs.Handle) (*node, string, error) {
	n, p, _, err := fs.find(ctx, h)
	if err == nil && n.kids == nil {
		err = vfs.ErrNotDirectory
	}
	return n, p, err
}

// path returns a path of a node, or false if none is left.
func (fs *FS) path(n *node) (string, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	p := "."
	for ; n != fs.root; n = n.places[0].dir {
		if len(n.places) == 0 {
			return "", false
		}
		p = path.Join(n.places[0].name, p)
	}
	return p, true
}

// see notes that a name in a directory is the file that info reports. The caller holds mu.
func (fs *FS) see(dir *node, name string, info Info) *node {
	if e := dir.kids.Get(name); e != nil {
		if e.Item.is(info) {
			return e.Item
		}
		fs.leave(e.Item, place{dir, name})
	}
	var n *node
	if info.ID != nil {
		n = fs.byID[info.ID]
	}
	if n != nil && (!n.is(info) || n.holds(dir)) { // what holds dir can't be in it
		n = nil
	}
	if n == nil {
		n = fs.newNode(info)
	}
	if n.kids != nil { // a directory has one place
		for len(n.places) > 0 {
			p := n.places[0]
			p.dir.kids.Remove(p.name)
			n.places = n.places[1:]
		}
	}
	fs.join(n, place{dir, name})
	return n
}

// join gives a node a name. The caller holds mu.
func (fs *FS) join(n *node, p place) {
	n.places = append(n.places, p)
	p.dir.kids.Add(p.name, n)
}

// leave takes a name from a node, which is gone with its last one, as is all that is in
// it. The caller holds mu.
func (fs *FS) leave(n *node, p place) {
	for i, have := range n.places {
		if have == p {
			n.places = append(n.places[:i:i], n.places[i+1:]...)
			p.dir.kids.Remove(p.name)
			break
		}
	}
	if len(n.places) > 0 || n == fs.root {
		return
	}
	delete(fs.table, n.id)
	if n.same != nil && fs.byID[n.same] == n {
		delete(fs.byID, n.same)
	}
	if n.kids == nil {
		return
	}
	var some [16]dirlist.Entry[*node]
	for {
		count, _ := n.kids.After(0, some[:])
		if count == 0 {
			return
		}
		for _, e := range some[:count] {
			fs.leave(e.Item, place{n, e.Name})
		}
	}
}

func (fs *FS) checkName(name string) error {
	if err := vfs.CheckName(name, fs.can.MaxName); err != nil {
		return err
	}
	return fs.tree.CheckName(name)
}
