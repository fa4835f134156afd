package memfs

import (
	"bytes"
	"context"
	"sync"

	"urnic/ulp/nfs/vfs"
)

// A loan is a part of a file that does not change until it is returned.
type loan struct {
	pieces [][]byte
	pages  []lentPage
}

// A lentPage is a page of which one copy is lent.
type lentPage struct {
	page *page
	copy uint64
}

var loans = sync.Pool{New: func() any { return new(loan) }}

// holes is what holes are lent as.
var holes [pageSize]byte

// Lend implements vfs.Lender. What is lent, and has been replaced since, counts for
// nothing in what the FS may hold.
func (fs *FS) Lend(ctx context.Context, h vfs.Handle, n int, off uint64) (vfs.Loan, bool, error) {
	l := loans.Get().(*loan)
	_, end, err := fs.look(ctx, h, max(0, n), off, l.add)
	if err != nil {
		l.Return()
		return nil, false, err
	}
	return l, end, nil
}

// add lends n bytes of a page from offset at on.
func (l *loan) add(pg *page, at, n int) {
	if pg != nil {
		pg.mu.Lock()
		if there := min(n, len(pg.data)-at); there > 0 {
			pg.lent++
			l.pages = append(l.pages, lentPage{pg, pg.copy})
			l.pieces = append(l.pieces, pg.data[at:at+there:at+there])
			n -= there
		}
		pg.mu.Unlock()
	}
	if n > 0 {
		l.pieces = append(l.pieces, holes[:n:n])
	}
}

// Pieces implements vfs.Loan.
func (l *loan) Pieces() [][]byte { return l.pieces }

// Return implements vfs.Loan.
func (l *loan) Return() {
	for _, p := range l.pages {
		p.page.mu.Lock()
		if p.page.copy == p.copy {
			p.page.lent--
		}
		p.page.mu.Unlock()
	}
	clear(l.pages)
	clear(l.pieces)
	l.pages, l.pieces = l.pages[:0], l.pieces[:0]
	loans.Put(l)
}

// replace puts data in place of what there is. The caller holds mu.
func (pg *page) replace(data []byte) {
	pg.data, pg.lent = data, 0
	pg.copy++
}

// own makes sure that data may be changed: all of it, or some. The caller holds mu.
func (pg *page) own(all bool) {
	switch {
	case pg.lent == 0:
	case all:
		pg.replace(make([]byte, len(pg.data)))
	default:
		pg.replace(bytes.Clone(pg.data))
	}
}

// cut clears what lies behind offset at.
func (pg *page) cut(at int) {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if at < len(pg.data) {
		pg.own(false)
		clear(pg.data[at:])
	}
}
