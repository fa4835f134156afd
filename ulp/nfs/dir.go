package nfs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"

	"urnic/ulp/nfs/nfs3"
)

// A DirEntry is a name in a directory; it is an fs.DirEntry.
type DirEntry struct {
	of     *directory
	name   string
	fileID uint64
	known  bool // what follows
	node
}

// A directory is what the entries of one listing have in common.
type directory struct {
	c   *Client
	ctx context.Context //nolint:containedctx // fs.DirEntry's Info has none
	dir nfs3.Handle
}

// Name returns the name.
func (e *DirEntry) Name() string { return e.name }

// FileID returns the number of the file, which is unique within the filesystem.
func (e *DirEntry) FileID() uint64 { return e.fileID }

// IsDir reports whether it is a directory.
func (e *DirEntry) IsDir() bool { return e.Type().IsDir() }

// Type returns the type of the file.
func (e *DirEntry) Type() fs.FileMode {
	if err := e.fill(); err != nil {
		return fs.ModeIrregular
	}
	return typeOf(e.attr.Type)
}

// Info describes the file, as it was when the directory was read if the server has told
// that.
func (e *DirEntry) Info() (fs.FileInfo, error) {
	if err := e.fill(); err != nil {
		return nil, pathError("stat", e.name, err)
	}
	return infoOf(e.name, e.node), nil
}

func (e *DirEntry) String() string { return fs.FormatDirEntry(e) }

// fill asks for what the listing has not told.
func (e *DirEntry) fill() error {
	if e.known {
		return nil
	}
	p, err := e.of.c.lookup(e.of.ctx, e.of.dir, e.name)
	if err == nil {
		e.node, e.known = p.node, true
	}
	return err
}

const (
	// entriesMost is how many entries of one directory are read: the end has to come.
	entriesMost = 1 << 23

	// ListingMost is how many bytes of memory a listing takes that is returned whole: about
	// two million entries with short names. A larger directory is ErrEntries. Entries lists
	// it all the same.
	ListingMost = 512 << 20
)

// Memory returns about how many bytes of memory an entry takes.
func (e *DirEntry) Memory() int {
	const entry = 288 // with its place in a slice that has room to grow
	return entry + len(e.name)
}

// Entries lists a directory as the server does, in its order, with attributes. It keeps no
// more in memory than one reply. The context is that of entries that have to ask for their
// attributes, too. A directory without an end is ErrServer if it comes back to where it was,
// and ErrEntries after eight million entries.
func (c *Client) Entries(ctx context.Context, name string) iter.Seq2[*DirEntry, error] {
	return func(yield func(*DirEntry, error) bool) {
		n, err := c.find(ctx, name, true)
		if err != nil {
			yield(nil, pathError("readdir", name, err))
			return
		}
		for e, err := range c.list(ctx, n.handle, true) {
			if !yield(e, pathError("readdir", name, err)) || err != nil {
				return
			}
		}
	}
}

// collect returns a listing of at most so many bytes, and what has ended it before its end.
func collect(list iter.Seq2[*DirEntry, error], most int) (entries []fs.DirEntry, err error) {
	for e, err := range list {
		if err != nil {
			return entries, err
		}
		if most -= e.Memory(); most < 0 {
			return entries, ErrEntries
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// ReadDir lists a directory, sorted by name. It keeps up to ListingMost bytes in memory.
func (c *Client) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	entries, err := collect(c.Entries(ctx, name), ListingMost)
	if err != nil {
		return entries, pathError("readdir", name, inner(err))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// A page is some entries of a directory.
type page struct {
	verifier nfs3.Verifier
	entries  []nfs3.EntryPlus
	end      bool
}

// list lists a directory without "." and "..", with attributes if plus is set and the
// server knows how.
func (c *Client) list(ctx context.Context, dir nfs3.Handle, plus bool) iter.Seq2[*DirEntry, error] {
	return func(yield func(*DirEntry, error) bool) {
		of := &directory{c, ctx, dir}
		var at page
		var cookie uint64
		var loop loopFinder
		for count := 0; !at.end; {
			p, err := c.page(ctx, dir, cookie, at.verifier, &plus)
			if err == nil {
				err = p.check(&loop)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			at = p
			for i := range p.entries {
				x := &p.entries[i]
				cookie = x.Cookie
				if count++; count > c.entries {
					yield(nil, ErrEntries)
					return
				}
				if x.Name == "." || x.Name == ".." {
					continue
				}
				e := &DirEntry{of: of, name: x.Name, fileID: x.FileID}
				if x.Attr.Present && x.Handle.Present {
					e.node, e.known = node{x.Handle.Handle, x.Attr.Attr}, true
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// check finds what no server may list.
func (p *page) check(loop *loopFinder) error {
	for _, x := range p.entries {
		if !legal(x.Name) {
			return ErrName
		}
	}
	if n := len(p.entries); !p.end && (n == 0 || loop.seen(p.entries[n-1].Cookie)) {
		return ErrServer // it would continue like that forever
	}
	return nil
}

// A loopFinder finds that a listing comes back to where it was, however many pages that
// takes, with two cookies for memory: it is R. P. Brent's algorithm (An improved Monte Carlo
// factorization algorithm, BIT 20, 1980). Cookies need not grow, so that no other order
// tells. A loop is found before three times as many pages have come as there are in it and
// before it.
type loopFinder struct {
	mark        uint64 // a cookie that was seen: first that of the beginning, 0
	since, next int    // pages since, and after how many there is a new mark
}

// seen reports whether a page ends where the mark is.
func (l *loopFinder) seen(cookie uint64) bool {
	if cookie == l.mark {
		return true
	}
	if l.since++; l.since > l.next {
		l.mark, l.since, l.next = cookie, 0, 2*l.next+1
	}
	return false
}

// page reads what is behind a cookie.
func (c *Client) page(ctx context.Context, dir nfs3.Handle, cookie uint64, v nfs3.Verifier, plus *bool) (page, error) {
	size := uint32(c.dsize)
	if *plus {
		var res nfs3.ReadDirPlusRes
		args := nfs3.ReadDirPlusArgs{Dir: dir, Cookie: cookie, Verifier: v, DirCount: size / 4, MaxCount: size}
		err := c.call(ctx, nfs3.ProcReadDirPlus, &args, &res, &res.Status)
		if !errors.Is(err, nfs3.ErrNotSupp) || cookie != 0 {
			return page{res.Verifier, res.Entries, res.EOF}, err
		}
		*plus = false
	}
	var res nfs3.ReadDirRes
	args := nfs3.ReadDirArgs{Dir: dir, Cookie: cookie, Verifier: v, Count: size}
	err := c.call(ctx, nfs3.ProcReadDir, &args, &res, &res.Status)
	entries := make([]nfs3.EntryPlus, len(res.Entries))
	for i, e := range res.Entries {
		entries[i].Entry = e
	}
	return page{res.Verifier, entries, res.EOF}, err
}
