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
	c      *Client
	ctx    context.Context //nolint:containedctx // fs.DirEntry's Info has none
	dir    nfs3.Handle
	name   string
	fileID uint64
	known  bool // what follows
	node
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
	p, err := e.c.lookup(e.ctx, e.dir, e.name)
	if err == nil {
		e.node, e.known = p.node, true
	}
	return err
}

// entriesMost is how many entries of one directory are read: the end has to come.
const entriesMost = 1 << 23

// Entries lists a directory as the server does, in its order, with attributes. The
// context is that of entries that have to ask for them, too.
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

// ReadDir lists a directory, sorted by name.
func (c *Client) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	for e, err := range c.Entries(ctx, name) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
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
		var at page
		var cookie uint64
		for count := 0; !at.end; {
			p, err := c.page(ctx, dir, cookie, at.verifier, &plus)
			if err == nil {
				err = p.check(cookie)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			at = p
			for i := range p.entries {
				x := &p.entries[i]
				cookie = x.Cookie
				if x.Name == "." || x.Name == ".." {
					continue
				}
				if count++; count > entriesMost {
					yield(nil, ErrEntries)
					return
				}
				e := &DirEntry{c: c, ctx: ctx, dir: dir, name: x.Name, fileID: x.FileID}
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
func (p *page) check(cookie uint64) error {
	for _, x := range p.entries {
		if !legal(x.Name) {
			return ErrName
		}
	}
	if n := len(p.entries); !p.end && (n == 0 || p.entries[n-1].Cookie == cookie) {
		return ErrServer // it would go on like that for ever
	}
	return nil
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
