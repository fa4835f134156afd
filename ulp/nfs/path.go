package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc/xdr"
)

// Bounds of paths.
const (
	linksMost = 40      // symbolic links that one path may lead over
	partsMost = 1 << 12 // names that are still to be looked up
)

// A node is a file of the server.
type node struct {
	handle nfs3.Handle
	attr   nfs3.Attr
}

// A place is where a path leads.
type place struct {
	dir    nfs3.Handle // of the directory, unless the place is the root
	name   string      // in it; "" for the root, and behind ".."
	exists bool
	node   // if it exists
}

// find returns the file at a path. It follows the last symbolic link if follow is set.
func (c *Client) find(ctx context.Context, name string, follow bool) (node, error) {
	p, err := c.resolve(ctx, name, follow)
	if err == nil && !p.exists {
		err = nfs3.ErrNoEnt
	}
	return p.node, err
}

// entry returns a path's directory, and the name in it, for what makes or removes names.
// The last symbolic link is not followed.
func (c *Client) entry(ctx context.Context, name string) (place, error) {
	p, err := c.resolve(ctx, name, false)
	if err == nil && p.name == "" {
		err = nfs3.ErrInval // the root, or a path that ends with ".."
	}
	return p, err
}

// resolve finds out where a path leads, component by component. All but the last have to
// exist.
func (c *Client) resolve(ctx context.Context, name string, follow bool) (place, error) {
	root := place{exists: true, node: node{handle: c.root}}
	if strings.HasSuffix(name, "/") {
		follow = true
	}
	way, parts, links := []place{root}, split(nil, name), 0
	for len(parts) > 0 {
		part := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		top := way[len(way)-1]
		if part == ".." {
			if len(way) > 1 {
				way = way[:len(way)-1]
			}
			way[len(way)-1].name = ""
			continue
		}
		next, err := c.lookup(ctx, top.handle, part)
		if err != nil {
			if errors.Is(err, nfs3.ErrNoEnt) && len(parts) == 0 {
				return place{dir: top.handle, name: part}, nil
			}
			return place{}, err
		}
		if next.attr.Type == nfs3.Symlink && (follow || len(parts) > 0) {
			if links++; links > linksMost {
				return place{}, ErrLoop
			}
			target, err := c.readlink(ctx, next.handle)
			if err != nil {
				return place{}, err
			}
			if strings.HasPrefix(target, "/") {
				way = way[:1]
			}
			if parts = split(parts, target); len(parts) > partsMost {
				return place{}, nfs3.ErrNameTooLong
			}
			continue
		}
		way = append(way, next)
	}
	p := way[len(way)-1]
	if p.attr.Type == 0 { // the root, or behind ".."
		attr, err := c.getattr(ctx, p.handle)
		if err != nil {
			return place{}, err
		}
		p.attr = attr
	}
	if strings.HasSuffix(name, "/") && p.attr.Type != nfs3.Directory {
		return place{}, nfs3.ErrNotDir
	}
	return p, nil
}

// split puts the components of a path onto those that are to be looked up after them. The
// first is the last.
func split(parts []string, name string) []string {
	names := strings.Split(name, "/")
	for _, n := range slices.Backward(names) {
		if n != "" && n != "." {
			parts = append(parts, n)
		}
	}
	return parts
}

// lookup finds a name in a directory.
func (c *Client) lookup(ctx context.Context, dir nfs3.Handle, name string) (place, error) {
	if err := checkName(name); err != nil {
		return place{}, err
	}
	var res nfs3.LookupRes
	if err := c.call(ctx, nfs3.ProcLookup, &nfs3.NameArgs{Dir: dir, Name: name}, &res, &res.Status); err != nil {
		return place{}, err
	}
	n, err := c.complete(ctx, res.Object, res.Attr)
	return place{dir: dir, name: name, exists: true, node: n}, err
}

// complete returns a file whose attributes may have to be asked for.
func (c *Client) complete(ctx context.Context, h nfs3.Handle, attr nfs3.PostOpAttr) (node, error) {
	if attr.Present {
		return node{h, attr.Attr}, nil
	}
	a, err := c.getattr(ctx, h)
	return node{h, a}, err
}

// checkName finds what is wrong with a name that is sent.
func checkName(name string) error {
	switch {
	case strings.ContainsRune(name, 0):
		return nfs3.ErrInval
	case len(name) > nfs3.MaxName:
		return nfs3.ErrNameTooLong
	}
	return nil
}

// legal reports whether a name that a server lists is one: what a program makes of it, a
// file of its own machine perhaps, must be below the directory.
func legal(name string) bool {
	return name != "" && !strings.ContainsAny(name, "/\x00")
}

func (c *Client) getattr(ctx context.Context, h nfs3.Handle) (nfs3.Attr, error) {
	var res nfs3.GetAttrRes
	err := c.call(ctx, nfs3.ProcGetAttr, &nfs3.HandleArgs{Handle: h}, &res, &res.Status)
	return res.Attr, err
}

func (c *Client) readlink(ctx context.Context, h nfs3.Handle) (string, error) {
	args, res := nfs3.HandleArgs{Handle: h}, linkRes{}
	if err := c.call(ctx, nfs3.ProcReadLink, &args, &res, &res.Status, make([]byte, nfs3.MaxPath)); err != nil {
		return "", err
	}
	if res.target != "" && !strings.ContainsRune(res.target, 0) {
		return res.target, nil
	}
	return "", ErrServer
}

// linkRes are results of READLINK that outlive the reply.
type linkRes struct {
	nfs3.ReadLinkRes
	target string
}

func (r *linkRes) Decode(d *xdr.Decoder) error {
	err := r.ReadLinkRes.Decode(d)
	r.target, r.Path = string(r.Path), nil
	return err
}

// Readlink returns what a symbolic link says.
func (c *Client) Readlink(ctx context.Context, name string) (string, error) {
	n, err := c.find(ctx, name, false)
	if err == nil && n.attr.Type != nfs3.Symlink {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	target, err := c.readlink(ctx, n.handle)
	return target, pathError("readlink", name, err)
}
