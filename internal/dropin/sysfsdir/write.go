package sysfsdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"urnic/internal/dropin/sysfs"
)

// Write makes a directory hold a tree. It may be missing, empty, or have one that was written
// here before; else the error is a *ForeignError, and nothing has changed.
func Write(dir string, entries []sysfs.Entry) (err error) {
	dir = filepath.Clean(dir)
	missing, _, err := ours(dir)
	if err != nil {
		return err
	}
	made, err := build(dir, entries)
	if err != nil {
		return err
	}
	defer func() {
		if made != "" {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	if missing {
		if err := os.Rename(made, dir); err != nil {
			return err
		}
		made = ""
		return nil
	}
	return exchange(made, dir) // made is then what was there
}

// build writes a tree into a new directory beside dir, and returns its name.
func build(dir string, entries []sysfs.Entry) (string, error) {
	made, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".new-")
	if err != nil {
		return "", err
	}
	err = os.Chmod(made, 0o755)
	for _, e := range entries {
		if err == nil {
			if b, is := counted(dir, e.Name); is && e.Counter { // it goes on
				e.Data = string(b)
			}
			err = add(made, e)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(made, Marker), []byte(manifest(entries)), 0o444)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	return made, nil
}

// add adds a file or link to a directory.
func add(dir string, e sysfs.Entry) error {
	if !fs.ValidPath(e.Name) || e.Name == "." || e.Name == Marker {
		return fmt.Errorf("%q is no name of a file of sysfs", e.Name)
	}
	path := filepath.Join(dir, filepath.FromSlash(e.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if e.Link != "" {
		return os.Symlink(e.Link, path)
	}
	mode := os.FileMode(0o444)
	if e.Counter {
		mode = 0o644
	}
	return os.WriteFile(path, []byte(e.Data), mode)
}

// Remove removes a directory that Write has written. If something in it is not as it was
// written, the error is a *ForeignError, and nothing is removed.
func Remove(dir string) error {
	missing, empty, err := ours(dir)
	switch {
	case err != nil:
		return err
	case missing:
		return &fs.PathError{Op: "remove", Path: dir, Err: fs.ErrNotExist}
	case empty:
		return &ForeignError{dir, "is empty"}
	}
	// Under another name first: readers see all of it, or nothing.
	aside, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), filepath.Base(dir)+".old-")
	if err != nil {
		return err
	}
	err = os.Rename(dir, filepath.Join(aside, "sys"))
	return errors.Join(err, os.RemoveAll(aside))
}

// Keep returns a directory below base with a tree, which it writes if there is none yet: the same
// for the same tree, so that there is one for each state of the host, however many programs run.
// base becomes a directory that only this user can change.
func Keep(base string, entries []sysfs.Entry) (dir string, err error) {
	if err := private(base); err != nil {
		return "", err
	}
	hash, _, _ := strings.Cut(line("", "", manifest(entries)), " ")
	dir = filepath.Join(base, hash)
	if whole(dir, entries) {
		return dir, nil
	}
	made, err := build(dir, entries)
	if err != nil {
		return "", err
	}
	// What is there has the same name, and so was the same, before somebody tidied up here.
	err = os.Rename(made, dir)
	if err != nil && !whole(dir, entries) { // else another process has just written it
		err = exchange(made, dir)
	}
	if rest := os.RemoveAll(made); err == nil || !whole(dir, entries) {
		err = errors.Join(err, rest)
	} else {
		err = rest
	}
	return dir, err
}

// whole reports whether a directory has all files of a tree.
func whole(dir string, entries []sysfs.Entry) bool {
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(e.Name))); err != nil {
			return false
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, Marker))
	return err == nil && string(b) == manifest(entries)
}
