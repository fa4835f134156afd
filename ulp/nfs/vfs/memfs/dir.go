package memfs

import (
	"context"
	"sync/atomic"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/internal/dirlist"
)

// dirSize is how many bytes a name adds to its directory's size.
const dirSize = 32

// A dir is the content of a directory. The node's mu guards the names.
type dir struct {
	parent atomic.Pointer[node] // changes only with FS.move held
	names  *dirlist.List[*node]
}

func newDir() *dir { return &dir{names: dirlist.New[*node]()} }

// child returns what has a name, or nil.
func (d *dir) child(name string) *node {
	if e := d.names.Get(name); e != nil {
		return e.Item
	}
	return nil
}

// listed is how many entries are copied at a time, to be given away without a lock.
const listed = 64

// ReadDir lists a directory in the order in which its names were made.
func (fs *FS) ReadDir(ctx context.Context, h vfs.Handle, cookie uint64, plus bool, add func(vfs.Entry) bool) (bool, error) {
	n, err := fs.directory(ctx, h)
	if err != nil {
		return false, err
	}
	var some [listed]dirlist.Entry[*node]
	for {
		n.mu.RLock()
		count, ok := n.dir.names.After(cookie, some[:])
		n.mu.RUnlock()
		if !ok {
			return false, vfs.ErrBadCookie
		}
		for i := range some[:count] {
			e := &some[i]
			item := vfs.Entry{Name: e.Name, FileID: e.Item.id, Cookie: e.Cookie}
			if plus {
				item.Handle = e.Item.handle
				if a, err := e.Item.attr(); err == nil {
					item.Attr = &a
				}
			}
			if !add(item) {
				return false, nil
			}
			cookie = e.Cookie
		}
		if count < listed {
			n.accessed()
			return true, nil
		}
	}
}
