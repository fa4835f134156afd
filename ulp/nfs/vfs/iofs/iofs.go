// Package iofs makes a vfs.FS, for reading only, of a file system of package io/fs: an
// embedded one, a zip archive, a directory by os.DirFS.
//
//	fs, err := iofs.New(os.DirFS("/usr/share/doc"))
//
// Handles live as long as the FS does. Symbolic links are shown if the file system
// implements fs.ReadLinkFS, and never followed by this package. Files that can't be read at
// an offset (io.ReaderAt, io.Seeker) are read from their beginning each time.
package iofs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"time"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/pathfs"
)

// New serves a file system. Closing it does nothing to the file system.
func New(fsys fs.FS) (vfs.FS, error) { return pathfs.New(&tree{fs: fsys}) }

type tree struct {
	readOnly
	fs fs.FS
}

var _ pathfs.Tree = (*tree)(nil)

func (t *tree) Features() vfs.Features {
	_, links := t.fs.(fs.ReadLinkFS)
	return vfs.Features{MaxFileSize: math.MaxInt64, TimeDelta: 1, MaxName: 255, MaxLinks: 1, ReadOnly: true, Symlinks: links}
}

func (t *tree) Lstat(path string) (pathfs.Info, error) {
	i, err := fs.Lstat(t.fs, path)
	if err != nil {
		return pathfs.Info{}, err
	}
	return pathfs.Info{Name: i.Name(), Attr: pathfs.AttrOf(i)}, nil
}

func (t *tree) ReadDir(path string) ([]pathfs.Info, error) {
	list, err := fs.ReadDir(t.fs, path)
	if err != nil {
		return nil, err
	}
	infos := make([]pathfs.Info, 0, len(list))
	for _, e := range list {
		i, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, pathfs.Info{Name: e.Name(), Attr: pathfs.AttrOf(i)})
	}
	return infos, nil
}

func (t *tree) ReadLink(path string) (string, error) { return fs.ReadLink(t.fs, path) }

func (t *tree) Open(path string, write bool) (pathfs.File, error) {
	if write {
		return nil, vfs.ErrReadOnly
	}
	f, err := t.fs.Open(path)
	if err != nil {
		return nil, err
	}
	return &file{f}, nil
}

func (t *tree) Close() error { return nil }

// file is an open file, which is one caller's own.
type file struct{ fs.File }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if r, ok := f.File.(io.ReaderAt); ok {
		return r.ReadAt(p, off)
	}
	if s, ok := f.File.(io.Seeker); ok {
		if _, err := s.Seek(off, io.SeekStart); err != nil {
			return 0, err
		}
	} else if _, err := io.CopyN(io.Discard, f, off); err != nil {
		return 0, err
	}
	// Not io.ReadFull, which hides whether the file ends or was cut off.
	var n int
	var err error
	for n < len(p) && err == nil {
		var m int
		m, err = f.Read(p[n:])
		n += m
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}

func (f *file) WriteAt([]byte, int64) (int, error) { return 0, vfs.ErrReadOnly }
func (f *file) Truncate(int64) error               { return vfs.ErrReadOnly }
func (f *file) Sync() error                        { return nil }

// readOnly is the part of a tree that would change something.
type readOnly struct{}

func (readOnly) Create(string, uint32) (pathfs.File, error) { return nil, vfs.ErrReadOnly }
func (readOnly) Mkdir(string, uint32) error                 { return vfs.ErrReadOnly }
func (readOnly) Symlink(string, string) error               { return vfs.ErrReadOnly }
func (readOnly) Remove(string) error                        { return vfs.ErrReadOnly }
func (readOnly) Rename(string, string) error                { return vfs.ErrReadOnly }
func (readOnly) Link(string, string) error                  { return vfs.ErrReadOnly }
func (readOnly) Chmod(string, uint32) error                 { return vfs.ErrReadOnly }
func (readOnly) Chown(string, int, int) error               { return vfs.ErrReadOnly }
func (readOnly) Chtimes(string, time.Time, time.Time) error { return vfs.ErrReadOnly }
func (readOnly) Stat() (vfs.Stat, error)                    { return vfs.Stat{}, nil }
func (readOnly) CheckName(string) error                     { return nil }
