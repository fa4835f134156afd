package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"urnic/ulp/nfs/nfs3"
)

// Mkdir makes a directory.
func (c *Client) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	return c.make(ctx, "mkdir", name, func(where nfs3.NameArgs, res *nfs3.NewRes) error {
		return c.call(ctx, nfs3.ProcMkdir, &nfs3.MkdirArgs{Where: where, Attr: nfs3.SetAttr{Mode: bitsOf(perm)}}, res, &res.Status)
	})
}

// make makes a name that must not exist.
func (c *Client) make(ctx context.Context, op, name string, call func(nfs3.NameArgs, *nfs3.NewRes) error) error {
	p, err := c.entry(ctx, strings.TrimRight(name, "/"))
	if err == nil && p.exists {
		err = nfs3.ErrExist
	}
	if err == nil {
		err = call(nfs3.NameArgs{Dir: p.dir, Name: p.name}, new(nfs3.NewRes))
	}
	return pathError(op, name, err)
}

// MkdirAll makes a directory and those above it that are not there.
func (c *Client) MkdirAll(ctx context.Context, name string, perm fs.FileMode) error {
	info, err := c.Stat(ctx, name)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return pathError("mkdir", name, nfs3.ErrNotDir)
	case !errors.Is(err, nfs3.ErrNoEnt):
		return err
	}
	trimmed := strings.TrimRight(name, "/")
	if i := strings.LastIndexByte(trimmed, '/'); i > 0 {
		if err := c.MkdirAll(ctx, trimmed[:i], perm); err != nil {
			return err
		}
	}
	err = c.Mkdir(ctx, name, perm)
	if errors.Is(err, nfs3.ErrExist) { // since, or by this call, whose reply was lost
		if info, e := c.Stat(ctx, name); e == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// Symlink makes a symbolic link that says target.
func (c *Client) Symlink(ctx context.Context, target, name string) error {
	if target == "" || len(target) > nfs3.MaxPath || strings.ContainsRune(target, 0) {
		return linkError("symlink", target, name, fs.ErrInvalid)
	}
	err := c.make(ctx, "symlink", name, func(where nfs3.NameArgs, res *nfs3.NewRes) error {
		args := nfs3.SymlinkArgs{Where: where, Attr: nfs3.SetAttr{Mode: bitsOf(0o777)}, Path: target}
		return c.call(ctx, nfs3.ProcSymlink, &args, res, &res.Status)
	})
	return linkError("symlink", target, name, inner(err))
}

// Mknod makes a device, a socket or a FIFO: the type is in mode. Numbers are for devices.
func (c *Client) Mknod(ctx context.Context, name string, mode fs.FileMode, major, minor uint32) error {
	t := nfs3.FileType(0)
	switch mode.Type() {
	case fs.ModeDevice:
		t = nfs3.BlockDevice
	case fs.ModeDevice | fs.ModeCharDevice:
		t = nfs3.CharDevice
	case fs.ModeSocket:
		t = nfs3.Socket
	case fs.ModeNamedPipe:
		t = nfs3.FIFO
	default:
		return pathError("mknod", name, fs.ErrInvalid)
	}
	return c.make(ctx, "mknod", name, func(where nfs3.NameArgs, res *nfs3.NewRes) error {
		args := nfs3.MknodArgs{Where: where, Type: t, Attr: nfs3.SetAttr{Mode: bitsOf(mode)}, Major: major, Minor: minor}
		return c.call(ctx, nfs3.ProcMknod, &args, res, &res.Status)
	})
}

// Link gives a file another name. It follows no symbolic link at the end of a path.
func (c *Client) Link(ctx context.Context, old, name string) error {
	n, err := c.find(ctx, old, false)
	if err == nil {
		var p place
		if p, err = c.entry(ctx, name); err == nil {
			var res nfs3.LinkRes
			args := nfs3.LinkArgs{File: n.handle, Link: nfs3.NameArgs{Dir: p.dir, Name: p.name}}
			err = c.call(ctx, nfs3.ProcLink, &args, &res, &res.Status)
		}
	}
	return linkError("link", old, name, err)
}

// Rename gives a file another name, and replaces what has that.
func (c *Client) Rename(ctx context.Context, old, name string) error {
	from, err := c.entry(ctx, strings.TrimRight(old, "/"))
	if err == nil && !from.exists {
		err = nfs3.ErrNoEnt
	}
	if err == nil {
		var to place
		if to, err = c.entry(ctx, strings.TrimRight(name, "/")); err == nil {
			var res nfs3.RenameRes
			args := nfs3.RenameArgs{From: nfs3.NameArgs{Dir: from.dir, Name: from.name}, To: nfs3.NameArgs{Dir: to.dir, Name: to.name}}
			err = c.call(ctx, nfs3.ProcRename, &args, &res, &res.Status)
		}
	}
	return linkError("rename", old, name, err)
}

// Remove removes a name, or an empty directory.
func (c *Client) Remove(ctx context.Context, name string) error {
	p, err := c.entry(ctx, strings.TrimRight(name, "/"))
	if err == nil && !p.exists {
		err = nfs3.ErrNoEnt
	}
	if err == nil {
		err = c.remove(ctx, p.dir, p.name, p.attr.Type == nfs3.Directory)
	}
	return pathError("remove", name, err)
}

func (c *Client) remove(ctx context.Context, dir nfs3.Handle, name string, isDir bool) error {
	var res nfs3.WccRes
	p := nfs3.ProcRemove
	if isDir {
		p = nfs3.ProcRmdir
	}
	return c.call(ctx, p, &nfs3.NameArgs{Dir: dir, Name: name}, &res, &res.Status)
}

// RemoveAll removes a name and all that is below it. That there is nothing is no error.
func (c *Client) RemoveAll(ctx context.Context, name string) error {
	p, err := c.resolve(ctx, strings.TrimRight(name, "/"), false)
	switch {
	case errors.Is(err, nfs3.ErrNoEnt), err == nil && !p.exists:
		return nil
	case err == nil && p.name == "":
		err = nfs3.ErrInval
	case err == nil:
		err = c.removeTree(ctx, p, 0)
	}
	return pathError("removeall", name, err)
}

// depthMost is how deeply directories may lie in each other for RemoveAll.
const depthMost = 4096

// removeTree removes a name and what is below it. Names that are gone already are no
// error.
func (c *Client) removeTree(ctx context.Context, p place, depth int) error {
	if depth > depthMost {
		return ErrDepth
	}
	if p.attr.Type != nfs3.Directory {
		return gone(c.remove(ctx, p.dir, p.name, false))
	}
	for total := 0; ; {
		err := c.remove(ctx, p.dir, p.name, true)
		if err == nil || errors.Is(err, nfs3.ErrNoEnt) {
			return nil
		}
		// Whatever the server says, what is in it comes first.
		removed := 0
		for e, err := range c.list(ctx, p.handle, false) {
			if errors.Is(err, nfs3.ErrBadCookie) && removed > 0 { // that was removed
				break
			}
			if err != nil {
				return err
			}
			below, err := c.lookup(ctx, p.handle, e.name)
			if errors.Is(err, nfs3.ErrNoEnt) {
				continue
			}
			if err == nil {
				err = c.removeTree(ctx, below, depth+1)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			removed++
		}
		if removed == 0 {
			return err
		}
		if total += removed; total > c.entries { // they come back
			return ErrEntries
		}
	}
}

func gone(err error) error {
	if errors.Is(err, nfs3.ErrNoEnt) {
		return nil
	}
	return err
}

// inner returns what a path error says.
func inner(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
