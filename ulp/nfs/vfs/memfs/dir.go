package memfs

import (
	"context"
	"slices"
	"sync/atomic"

	"urnic/ulp/nfs/vfs"
)

const (
	dirSize     = 32 // octets that a name adds to its directory's size
	firstCookie = 3
	minDead     = 64 // fewer dead entries than this are not worth tidying
)

// A dir is the content of a directory, guarded by the node's mu. Entries get increasing
// cookies and stay in that order, so that a listing can go on wherever it was, whatever
// became of the entry it was at.
type dir struct {
	parent atomic.Pointer[node] // changes only with FS.move held
	names  map[string]*entry
	list   []*entry
	dead   int // of list
	next   uint64
}

type entry struct {
	name   string
	cookie uint64
	node   *node // nil: removed
}

func newDir() *dir { return &dir{names: make(map[string]*entry), next: firstCookie} }

func (d *dir) add(name string, n *node) {
	e := &entry{name: name, cookie: d.next, node: n}
	d.next++
	d.names[name] = e
	d.list = append(d.list, e)
}

func (d *dir) remove(name string) {
	e := d.names[name]
	delete(d.names, name)
	e.node = nil
	if d.dead++; d.dead >= minDead && d.dead > len(d.list)/2 {
		d.list = slices.DeleteFunc(d.list, func(e *entry) bool { return e.node == nil })
		d.dead = 0
	}
}

// after returns where the entries behind a cookie begin.
func (d *dir) after(cookie uint64) int {
	i, found := slices.BinarySearchFunc(d.list, cookie, func(e *entry, c uint64) int {
		switch {
		case e.cookie < c:
			return -1
		case e.cookie > c:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	return i
}

// listed is how many entries are copied at a time, to be given away without a lock.
const listed = 64

// ReadDir lists a directory in the order in which its names were made.
func (fs *FS) ReadDir(ctx context.Context, h vfs.Handle, cookie uint64, plus bool, add func(vfs.Entry) bool) (bool, error) {
	n, err := fs.directory(ctx, h)
	if err != nil {
		return false, err
	}
	var some [listed]entry
	for {
		count := 0
		n.mu.RLock()
		if cookie >= n.dir.next {
			n.mu.RUnlock()
			return false, vfs.ErrBadCookie
		}
		list := n.dir.list[n.dir.after(cookie):]
		for i := 0; i < len(list) && count < listed; i++ {
			if list[i].node != nil {
				some[count] = *list[i]
				count++
			}
		}
		n.mu.RUnlock()
		for i := range some[:count] {
			e := &some[i]
			item := vfs.Entry{Name: e.name, FileID: e.node.id, Cookie: e.cookie}
			if plus {
				item.Handle = e.node.handle
				if a, err := e.node.attr(); err == nil {
					item.Attr = &a
				}
			}
			if !add(item) {
				return false, nil
			}
			cookie = e.cookie
		}
		if count < listed {
			n.accessed()
			return true, nil
		}
	}
}
