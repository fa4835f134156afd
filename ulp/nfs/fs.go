package nfs

import (
	"context"
	"io/fs"
	"path"
)

// An FS is a part of a client's tree as package io/fs has it: fs.ReadDirFS, fs.StatFS,
// fs.ReadFileFS, fs.ReadLinkFS and fs.SubFS. Its files are *File.
type FS struct {
	c   *Client
	ctx context.Context //nolint:containedctx // the interfaces of package io/fs have none
	dir string
}

// FS returns the tree.
func (c *Client) FS() *FS { return &FS{c, context.Background(), "/"} }

// WithContext returns the same tree, whose methods, and those of files opened from it, end
// when the context does.
func (f *FS) WithContext(ctx context.Context) *FS { return &FS{f.c, ctx, f.dir} }

// path returns a name's path in the client's tree.
func (f *FS) path(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", pathError(op, name, fs.ErrInvalid)
	}
	return path.Join(f.dir, name), nil
}

// renamed returns an error that tells a name in place of the path.
func renamed(op, name string, err error) error { return pathError(op, name, inner(err)) }

// Open opens a file or a directory.
func (f *FS) Open(name string) (fs.File, error) {
	p, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	file, err := f.c.Open(f.ctx, p)
	if err != nil {
		return nil, renamed("open", name, err)
	}
	file.name = name
	return file.WithContext(f.ctx), nil
}

// ReadFile returns what a file holds.
func (f *FS) ReadFile(name string) ([]byte, error) {
	p, err := f.path("open", name)
	if err != nil {
		return nil, err
	}
	data, err := f.c.ReadFile(f.ctx, p)
	return data, renamed("read", name, err)
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	p, err := f.path("readdir", name)
	if err != nil {
		return nil, err
	}
	entries, err := f.c.ReadDir(f.ctx, p)
	return entries, renamed("readdir", name, err)
}

// Stat describes a file. It follows symbolic links.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

// Lstat describes a file: a symbolic link itself, if it is one.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

func (f *FS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	p, err := f.path(op, name)
	if err != nil {
		return nil, err
	}
	info, err := f.c.stat(f.ctx, op, p, follow)
	if err != nil {
		return nil, renamed(op, name, err)
	}
	info.name = path.Base(name)
	return info, nil
}

// ReadLink returns what a symbolic link says.
func (f *FS) ReadLink(name string) (string, error) {
	p, err := f.path("readlink", name)
	if err != nil {
		return "", err
	}
	target, err := f.c.Readlink(f.ctx, p)
	return target, renamed("readlink", name, err)
}

// Sub returns the tree below a directory. Symbolic links in it may lead out of it, but not
// out of what is mounted.
func (f *FS) Sub(dir string) (fs.FS, error) {
	p, err := f.path("sub", dir)
	if err != nil {
		return nil, err
	}
	return &FS{f.c, f.ctx, p}, nil
}
