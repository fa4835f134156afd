package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"urnic/internal/host/printable"
	"urnic/ulp/nfs"
)

// get copies what a path names to a local name.
func (c *copier) get(name, local string) error {
	info, err := c.s.Stat(c.ctx, name)
	if err != nil {
		return err
	}
	base := info.Name()
	if at, err := os.Stat(local); err == nil && at.IsDir() {
		if base == "." || base == "/" { // all of what is mounted
			base = path.Base(c.s.Target().Path)
		}
		if base == "/" { // an export that is called that
			base = "."
		} else if !localName(base) {
			return fmt.Errorf("no file can be called %s here: give another name", printable.Name(base))
		}
		local = filepath.Join(local, base)
	}
	// Nothing that the server names reaches out of the directory that is written to.
	root, err := os.OpenRoot(filepath.Dir(local))
	if err != nil {
		return err
	}
	err = c.getAny(root, name, filepath.Base(local), info)
	return errors.Join(err, root.Close())
}

// localName reports whether a name that a server has is one for a file of this machine.
func localName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

// getAny copies a file of any type.
func (c *copier) getAny(root *os.Root, name, local string, info fs.FileInfo) error {
	switch info.Mode().Type() {
	case 0:
		return c.getFile(root, name, local, info)
	case fs.ModeDir:
		if !c.recursive {
			return fmt.Errorf("%s is a directory: copy it with -R", printable.Name(name))
		}
		return c.getDir(root, name, local, info.Mode().Perm())
	case fs.ModeSymlink:
		target, err := c.s.Readlink(c.ctx, name)
		if err != nil {
			return err
		}
		if old, err := root.Lstat(local); err == nil && old.Mode().Type() == fs.ModeSymlink {
			if err := root.Remove(local); err != nil {
				return err
			}
		}
		return root.Symlink(target, local)
	default:
	}
	c.skip(fmt.Errorf("%s is a %s, which is not copied", printable.Name(name), nfsTypes[info.(*nfs.FileInfo).Attr().Type]))
	return nil
}

// getDir copies a directory: what of it can't be copied does not stop the rest.
func (c *copier) getDir(root *os.Root, name, local string, perm fs.FileMode) (err error) {
	made := false
	if local != "." {
		// Nobody gets a right that the server's directory does not give, not even for a
		// while. We need ours until all is in it.
		err := root.Mkdir(local, perm|0o700)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		made = err == nil
	}
	below, err := root.OpenRoot(local)
	if err != nil {
		return err
	}
	defer func() {
		if made && perm&0o700 != 0o700 {
			err = errors.Join(err, withdraw(below, 0o700&^perm))
		}
		_ = below.Close() // nothing was written to it
	}()
	return c.lister.each(c.ctx, name, func(e *nfs.DirEntry) error {
		full := path.Join(name, e.Name())
		if !localName(e.Name()) {
			c.skip(fmt.Errorf("%s: no file can be called that here", printable.Name(full)))
			return nil
		}
		info, err := e.Info()
		if err == nil {
			err = c.getAny(below, full, e.Name(), info)
		}
		if c.ctx.Err() != nil {
			return err
		}
		c.skip(err)
		return nil
	})
}

// withdraw takes permissions from a directory.
func withdraw(dir *os.Root, perm fs.FileMode) error {
	info, err := dir.Stat(".")
	if err != nil {
		return err
	}
	return dir.Chmod(".", info.Mode().Perm()&^perm)
}

// getFile copies a regular file. It has its name when it is whole.
func (c *copier) getFile(root *os.Root, name, local string, info fs.FileInfo) (err error) {
	begun := time.Now()
	f, err := c.s.Open(c.ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	temporary := "." + rand.Text()[:12] + ".part"
	created, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return alwaysTell(err)
	}
	out := &outputFile{created}
	p := c.progress(name, info.Size())
	n, err := f.WithContext(c.ctx).WriteTo(progressWriter{out, p})
	p.end()
	err = errors.Join(err, out.Close())
	if err == nil {
		err = alwaysTell(root.Rename(temporary, local))
	}
	if err != nil {
		return errors.Join(err, alwaysTell(root.Remove(temporary)))
	}
	c.did(name, local, n, time.Since(begun))
	return nil
}
