package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"urnic/internal/host/printable"
	"urnic/ulp/nfs/nfs3"
)

// checkSlash refuses an address that ends like a directory's, but names none into which a
// file could be put.
func (c *copier) checkSlash(local, address, name string) error {
	address, _, _ = strings.Cut(address, "?")
	if info, err := os.Stat(local); !strings.HasSuffix(address, "/") || err == nil && info.IsDir() {
		return nil
	}
	at, err := c.s.Stat(c.ctx, name)
	if err == nil && !at.IsDir() {
		err = nfs3.ErrNotDir
	}
	if err != nil {
		return fmt.Errorf("%s names no directory of the server: leave the / at its end out to call the file that: %w", address, err)
	}
	return nil
}

// put copies a local file to what a path names.
func (c *copier) put(local, name string) error {
	info, err := os.Stat(local)
	if err != nil {
		return err
	}
	if at, err := c.s.Stat(c.ctx, name); err == nil && at.IsDir() {
		absolute, err := filepath.Abs(local) // the name of . is that of the directory
		if err != nil {
			return err
		}
		name = path.Join(name, filepath.Base(absolute))
	}
	if info.IsDir() && !c.recursive {
		return fmt.Errorf("%s is a directory: copy it with -R", local)
	}
	return c.putAny(local, name, info)
}

// putAny copies a file of any type.
func (c *copier) putAny(local, name string, info fs.FileInfo) error {
	switch info.Mode().Type() {
	case 0:
		return c.putFile(local, name, info)
	case fs.ModeDir:
		return c.putDir(local, name, info)
	case fs.ModeSymlink:
		target, err := os.Readlink(local)
		if err != nil {
			return err
		}
		if old, err := c.s.Lstat(c.ctx, name); err == nil && old.Mode().Type() == fs.ModeSymlink {
			if err := c.s.Remove(c.ctx, name); err != nil {
				return err
			}
		}
		return c.s.Symlink(c.ctx, filepath.ToSlash(target), name)
	default:
	}
	c.skip(fmt.Errorf("%s is no regular file, directory or symbolic link, and not copied", local))
	return nil
}

// putDir copies a directory: what of it can't be copied does not stop the rest.
func (c *copier) putDir(local, name string, info fs.FileInfo) error {
	perm := info.Mode().Perm()
	err := c.s.Mkdir(c.ctx, name, perm|0o700)
	made := err == nil
	if err != nil {
		if at, e := c.s.Lstat(c.ctx, name); e != nil || !at.IsDir() {
			return err
		}
	}
	entries, err := os.ReadDir(local)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil {
			err = c.putAny(filepath.Join(local, e.Name()), path.Join(name, e.Name()), info)
		}
		if c.ctx.Err() != nil {
			return err
		}
		if err != nil {
			c.skip(err)
		}
	}
	if made && perm&0o700 != 0o700 { // what was ours until all is in it
		return c.s.Chmod(c.ctx, name, perm)
	}
	return nil
}

func (c *copier) putFile(local, name string, info fs.FileInfo) (err error) {
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return c.putStream(f, local, name, info.Mode().Perm(), info.Size())
}

// putStream copies what a reader has. It is on stable storage in the end.
func (c *copier) putStream(r io.Reader, from, name string, perm fs.FileMode, size int64) error {
	begun := time.Now()
	f, err := c.s.OpenFile(c.ctx, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	f = f.WithContext(c.ctx)
	p := c.progress(from, size)
	n, err := f.ReadFrom(progressReader{r, p})
	p.end()
	if err = errors.Join(err, f.Close()); err != nil {
		if c.ctx.Err() != nil {
			err = errors.Join(err, alwaysTell(fmt.Errorf("%s is incomplete on the server", printable.Name(path.Join(c.s.Target().Path, name)))))
		}
		return err
	}
	c.did(from, name, n, time.Since(begun))
	return nil
}
