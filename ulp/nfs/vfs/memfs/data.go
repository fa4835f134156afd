package memfs

import (
	"context"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"

	"urnic/ulp/nfs/vfs"
)

const (
	pageSize  = 64 << 10
	pageShift = 16
	// smallest is how many bytes a page of a small file holds. It doubles as the file
	// grows.
	smallest = 512
	// batch is how many pages are looked up at once.
	batch = 16
)

// A file is the content of a regular file. Bytes of pages behind the file's size are
// always zero, so that nothing has to be cleared when it grows.
type file struct {
	// io is shared by whoever reads and writes, and held alone by whoever shortens or frees the
	// file.
	io    sync.RWMutex
	freed bool
	used  atomic.Int64     // bytes of pages
	pages map[uint64]*page // guarded by the node's mu
	most  int              // pages that the map had since it was made
}

// A page is up to pageSize bytes of a file. What data is too short for is zero. While
// data is lent it does not change: what is written goes to a copy.
type page struct {
	mu   sync.RWMutex
	data []byte
	lent int    // loans of data
	copy uint64 // which copy data is
}

func newFile() *file { return &file{pages: make(map[uint64]*page)} }

// Read copies from the file. Holes are read as zeros.
func (fs *FS) Read(ctx context.Context, h vfs.Handle, p []byte, off uint64) (int, bool, error) {
	return fs.look(ctx, h, len(p), off, func(pg *page, at, n int) {
		pg.read(p[:n], at)
		p = p[n:]
	})
}

// look calls each for the pages of up to most bytes from off on, with where they are in the
// page and how many; nil is a hole. It returns how many there are of all, and what Read
// does.
func (fs *FS) look(ctx context.Context, h vfs.Handle, most int, off uint64, each func(pg *page, at, n int)) (int, bool, error) {
	n, err := fs.regular(ctx, h)
	if err != nil {
		return 0, false, err
	}
	f := n.file
	f.io.RLock()
	defer f.io.RUnlock()
	if f.freed {
		return 0, false, vfs.ErrStale
	}
	n.mu.RLock()
	size, unread := n.size, n.unread()
	if off >= size {
		n.mu.RUnlock()
		return 0, true, nil
	}
	total := int(min(uint64(most), size-off))
	end := uint64(total) == size-off
	var pages [batch]*page
	for left := total; left > 0; {
		first := off >> pageShift
		last := min((off+uint64(left)-1)>>pageShift, first+batch-1)
		for i := first; i <= last; i++ {
			pages[i-first] = f.pages[i]
		}
		n.mu.RUnlock()
		for i := first; i <= last; i++ {
			at := int(off % pageSize)
			part := min(left, pageSize-at)
			each(pages[i-first], at, part)
			left, off = left-part, off+uint64(part)
		}
		n.mu.RLock()
	}
	n.mu.RUnlock()
	if unread && total > 0 {
		n.accessed()
	}
	return total, end, nil
}

// read fills p from what lies at offset at; nil is a hole.
func (pg *page) read(p []byte, at int) {
	n := 0
	if pg != nil {
		pg.mu.RLock()
		if at < len(pg.data) {
			n = copy(p, pg.data[at:])
		}
		pg.mu.RUnlock()
	}
	clear(p[n:])
}

// Write copies to the file. Nothing is more stable than the process, so sync changes
// nothing.
func (fs *FS) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, _ bool) error {
	n, err := fs.regular(ctx, h)
	if err != nil {
		return err
	}
	if off > fs.opt.MaxFileSize || uint64(len(p)) > fs.opt.MaxFileSize-off {
		return vfs.ErrTooBig
	}
	if len(p) == 0 {
		return nil
	}
	f := n.file
	f.io.RLock()
	defer f.io.RUnlock()
	if f.freed {
		return vfs.ErrStale
	}
	start := off
	var pages [batch]*page
	for len(p) > 0 && err == nil {
		first := off >> pageShift
		last := min((off+uint64(len(p))-1)>>pageShift, first+batch-1)
		n.findPages(pages[:last-first+1], first)
		for i := first; i <= last && err == nil; i++ {
			at := int(off % pageSize)
			part := p[:min(len(p), pageSize-at)]
			if pg := pages[i-first]; pg != nil {
				err = pg.write(fs, f, part, at)
			} else {
				err = n.addPage(fs, i, part, at)
			}
			if err == nil {
				p, off = p[len(part):], off+uint64(len(part))
			}
		}
	}
	if off == start {
		return err
	}
	// Who sees the new size or time must see the data.
	n.mu.Lock()
	n.size = max(n.size, off)
	n.changed(true)
	n.mu.Unlock()
	return err
}

// findPages fills pages from that with the number first on: nil for a hole.
func (n *node) findPages(pages []*page, first uint64) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for i := range pages {
		pages[i] = n.file.pages[first+uint64(i)]
	}
}

// addPage makes the page with the number i, and puts p at offset at of it. It returns
// ErrNoSpace, and then has made none. Another writer may have made it meanwhile.
func (n *node) addPage(fs *FS, i uint64, p []byte, at int) error {
	size := roomFor(at + len(p))
	if err := fs.takeBytes(pageCost + size); err != nil {
		return err
	}
	pg := new(page)
	if len(p) == size { // all of it: nothing needs to be cleared first
		pg.data = append([]byte(nil), p...)
	} else {
		pg.data = make([]byte, size)
		copy(pg.data[at:], p)
	}
	n.mu.Lock()
	have := n.file.pages[i]
	if have == nil {
		n.file.pages[i] = pg
		n.file.most = max(n.file.most, len(n.file.pages))
		n.file.used.Add(int64(size))
	}
	n.mu.Unlock()
	if have == nil {
		return nil
	}
	fs.giveBytes(pageCost + size)
	return have.write(fs, n.file, p, at)
}

// roomFor returns how many bytes a page has for so many.
func roomFor(n int) int { return max(smallest, 1<<bits.Len(uint(n-1))) }

// write puts p at offset at. It returns ErrNoSpace, and then has changed nothing.
func (pg *page) write(fs *FS, f *file, p []byte, at int) error {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if need := at + len(p); need > len(pg.data) {
		size := roomFor(need)
		more := size - len(pg.data)
		if err := fs.takeBytes(more); err != nil {
			return err
		}
		f.used.Add(int64(more))
		if len(p) == size { // all of it: nothing needs to be cleared first
			pg.replace(append([]byte(nil), p...))
			return nil
		}
		data := make([]byte, size)
		copy(data, pg.data)
		pg.replace(data)
	}
	pg.own(len(p) == len(pg.data))
	copy(pg.data[at:], p)
	return nil
}

// cut removes what lies behind size. The caller holds io alone, and the node's mu.
func (f *file) cut(fs *FS, size uint64) {
	freed, gone := 0, 0
	keep := size >> pageShift // pages before this one stay as they are
	for i, pg := range f.pages {
		switch at := int(size % pageSize); {
		case i < keep:
		case i == keep && at > 0:
			pg.cut(at)
		default:
			freed += len(pg.data)
			gone++
			delete(f.pages, i)
		}
	}
	if f.most >= 64 && len(f.pages) < f.most/4 { // a map keeps the memory that it once needed
		f.pages, f.most = maps.Clone(f.pages), len(f.pages)
	}
	f.used.Add(-int64(freed))
	fs.giveBytes(freed + gone*pageCost)
}

// free removes all, once nobody is at it any more, and lets nobody begin again.
func (f *file) free(fs *FS) {
	f.io.Lock()
	defer f.io.Unlock()
	f.freed = true
	fs.giveBytes(int(f.used.Swap(0)) + len(f.pages)*pageCost)
	f.pages = nil // nobody looks at it any more
}

// Losses returns 0: nothing is lost before the process is.
func (fs *FS) Losses() uint64 { return 0 }

// Commit has nothing to do but to look whether the file exists.
func (fs *FS) Commit(ctx context.Context, h vfs.Handle, _, _ uint64) error {
	_, err := fs.regular(ctx, h)
	return err
}
