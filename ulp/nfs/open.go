package nfs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"urnic/ulp/nfs/nfs3"
)

// Open opens a file for reading. A directory can be opened, too, to list it.
func (c *Client) Open(ctx context.Context, name string) (*File, error) {
	return c.OpenFile(ctx, name, os.O_RDONLY, 0)
}

// Create opens a file for reading and writing, which it makes if it is not there, and
// empties if it is.
func (c *Client) Create(ctx context.Context, name string) (*File, error) {
	return c.OpenFile(ctx, name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

const accessFlags = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

// OpenFile opens a file with flags of package os. With os.O_CREATE a file that is not
// there is made with these permissions: no umask changes them. With os.O_APPEND writes go
// to the end as it is when they begin, which others may move meanwhile. With os.O_SYNC
// they are on stable storage when they return.
func (c *Client) OpenFile(ctx context.Context, name string, flag int, perm fs.FileMode) (*File, error) {
	n, err := c.open(ctx, name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return c.file(name, n, flag), nil
}

// OpenHandle opens the file that a handle names. Flags that make files have no effect.
func (c *Client) OpenHandle(ctx context.Context, h nfs3.Handle, flag int) (*File, error) {
	attr, err := c.getattr(ctx, h)
	if err == nil {
		err = c.opening(ctx, node{h, attr}, flag)
	}
	if err != nil {
		return nil, pathError("open", h.String(), err)
	}
	return c.file(h.String(), node{h, attr}, flag), nil
}

// open finds a file, or makes it.
func (c *Client) open(ctx context.Context, name string, flag int, perm fs.FileMode) (node, error) {
	exclusive := flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0
	for range linksMost {
		p, err := c.resolve(ctx, name, !exclusive)
		switch {
		case err != nil:
			return node{}, err
		case p.exists && exclusive:
			return node{}, nfs3.ErrExist
		case p.exists:
			return p.node, c.opening(ctx, p.node, flag)
		case flag&os.O_CREATE == 0:
			return node{}, nfs3.ErrNoEnt
		}
		n, err := c.create(ctx, p.dir, p.name, perm, exclusive)
		if exclusive || !errors.Is(err, nfs3.ErrExist) {
			return n, err
		}
		// Somebody else has made it, or this call, whose reply was lost.
	}
	return node{}, nfs3.ErrNoEnt // it comes and goes
}

// opening does what opening a file that exists does to it.
func (c *Client) opening(ctx context.Context, n node, flag int) error {
	writes := flag&accessFlags != os.O_RDONLY
	switch {
	case n.attr.Type == nfs3.Directory && (writes || flag&os.O_TRUNC != 0):
		return nfs3.ErrIsDir
	case writes && n.attr.Type != nfs3.Regular:
		return fs.ErrInvalid // what is behind a device is not the server's
	case writes && flag&os.O_TRUNC != 0:
		return c.set(ctx, n.handle, nfs3.SetAttr{Size: new(uint64(0))})
	}
	return nil
}

// create makes a regular file.
func (c *Client) create(ctx context.Context, dir nfs3.Handle, name string, perm fs.FileMode, exclusive bool) (node, error) {
	args := nfs3.CreateArgs{Where: nfs3.NameArgs{Dir: dir, Name: name}, Mode: nfs3.Guarded, Attr: nfs3.SetAttr{Mode: bitsOf(perm)}}
	if exclusive { // a server that gets the call again knows it by the verifier
		args.Mode = nfs3.Exclusive
		_, _ = rand.Read(args.Verifier[:]) // never fails
	}
	var res nfs3.NewRes
	err := c.call(ctx, nfs3.ProcCreate, &args, &res, &res.Status)
	if exclusive && errors.Is(err, nfs3.ErrNotSupp) {
		args.Mode = nfs3.Guarded
		err = c.call(ctx, nfs3.ProcCreate, &args, &res, &res.Status)
	}
	if err != nil {
		return node{}, err
	}
	if !res.Object.Present {
		p, err := c.lookup(ctx, dir, name)
		if err != nil {
			return node{}, err
		}
		res.Object, res.Attr = nfs3.PostOpHandle{Present: true, Handle: p.handle}, nfs3.PostOpAttr{Present: true, Attr: p.attr}
	}
	if args.Mode == nfs3.Exclusive { // the server has the verifier where the attributes are (RFC 1813 §3.3.8)
		now := nfs3.SetTime{How: nfs3.SetToServerTime}
		if err := c.set(ctx, res.Object.Handle, nfs3.SetAttr{Mode: bitsOf(perm), Atime: now, Mtime: now}); err != nil {
			return node{}, err
		}
		res.Attr.Present = false
	}
	return c.complete(ctx, res.Object.Handle, res.Attr)
}

// ReadFile returns what a file holds.
func (c *Client) ReadFile(ctx context.Context, name string) ([]byte, error) {
	f, err := c.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := f.WithContext(ctx).readAll()
	return data, errors.Join(err, f.Close())
}

// WriteFile makes a file hold data, on stable storage. A file that is not there is made
// with these permissions.
func (c *Client) WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode) error {
	f, err := c.OpenFile(ctx, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	f = f.WithContext(ctx)
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
