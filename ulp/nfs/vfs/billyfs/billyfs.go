// Package billyfs makes a vfs.FS of any filesystem of go-billy: what is in a git repository,
// in memory, or behind somebody's own implementation.
//
//	fs, err := billyfs.New(memfs.New(), billyfs.Options{})
//
// Handles live as long as the FS does. go-billy has no hard links and no devices; modes,
// owners and times can be set if the filesystem implements billy.Change. Nor can data be
// brought to stable storage through it: a Commit says only that the filesystem has it.
// It knows no owners: files are those of Options.
//
// What the filesystem gets wrong stays wrong; if it panics, the call fails with ErrIO. In
// version 5, go-billy's own memfs is such a one: renaming a file destroys others whose names
// begin with the same letters. Package ulp/nfs/vfs/memfs does not.
package billyfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/pathfs"
)

// Options says how a filesystem is served.
type Options struct {
	ReadOnly bool
	// Concurrent says that the filesystem may be used by several goroutines at once, as
	// osfs may. Without it, one call follows the other.
	Concurrent bool
	// MaxFileSize is how many bytes a file may have; 1<<40. A filesystem in memory
	// needs less, because a client can make a file of that size by one byte.
	MaxFileSize uint64
	UID, GID    uint32 // of all files
}

const (
	maxFileSize = 1 << 40
	maxName     = 255
)

// New serves a filesystem. Closing it does nothing to the filesystem.
func New(b billy.Filesystem, o Options) (vfs.FS, error) {
	if o.MaxFileSize == 0 || o.MaxFileSize > math.MaxInt64 {
		o.MaxFileSize = maxFileSize
	}
	t := &tree{fs: b, opt: o}
	t.change, _ = b.(billy.Change)
	t.chmod, _ = b.(billy.Chmod)
	return pathfs.New(t)
}

// tree is a filesystem of go-billy.
type tree struct {
	fs     billy.Filesystem
	change billy.Change // nil: it can't
	chmod  billy.Chmod  // nil: it can't
	opt    Options
	mu     sync.Mutex
}

var _ pathfs.Tree = (*tree)(nil)

// enter lets one call follow the other, if they must. What leave gets, it makes an error
// of if the filesystem panics: defer t.enter()(&err).
func (t *tree) enter() (leave func(*error)) {
	if !t.opt.Concurrent {
		t.mu.Lock()
	}
	return func(err *error) {
		if !t.opt.Concurrent {
			t.mu.Unlock()
		}
		if p := recover(); p != nil {
			*err = fmt.Errorf("billyfs: the filesystem has panicked: %v: %w", p, vfs.ErrIO)
		}
	}
}

func (t *tree) Features() vfs.Features {
	return vfs.Features{
		MaxFileSize: t.opt.MaxFileSize,
		TimeDelta:   time.Microsecond,
		MaxName:     maxName,
		MaxLinks:    1,
		ReadOnly:    t.opt.ReadOnly || !billy.CapabilityCheck(t.fs, billy.WriteCapability),
		Symlinks:    true,
		SetTime:     t.change != nil,
		SetMode:     t.chmod != nil,
	}
}

// name is a path as go-billy has it.
func (t *tree) name(path string) string {
	if path == "." {
		return string(filepath.Separator)
	}
	return filepath.FromSlash(path)
}

func (t *tree) info(i fs.FileInfo) pathfs.Info {
	info := pathfs.Info{Name: i.Name(), Attr: pathfs.AttrOf(i)}
	info.Attr.UID, info.Attr.GID = t.opt.UID, t.opt.GID
	return info
}

func (t *tree) Lstat(path string) (info pathfs.Info, err error) {
	defer t.enter()(&err)
	i, err := t.fs.Lstat(t.name(path))
	if path == "." && (err != nil || !i.IsDir()) {
		// Not all have an entry for their root, before something is in it or at all.
		return pathfs.Info{Attr: vfs.Attr{
			Type: vfs.Directory, Mode: 0o755, Links: 1, UID: t.opt.UID, GID: t.opt.GID,
			Atime: time.Unix(0, 0), Mtime: time.Unix(0, 0), Ctime: time.Unix(0, 0),
		}}, nil
	}
	if err != nil {
		return pathfs.Info{}, err
	}
	info = t.info(i)
	if info.Attr.Type == vfs.Symlink { // some store another target than they report
		if to, err := t.fs.Readlink(t.name(path)); err == nil {
			info.Attr.Size = uint64(len(to))
		}
	}
	return info, nil
}

func (t *tree) ReadDir(path string) (infos []pathfs.Info, err error) {
	defer t.enter()(&err)
	list, err := t.fs.ReadDir(t.name(path))
	if err != nil && path == "." && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	infos = make([]pathfs.Info, len(list))
	for i := range list {
		infos[i] = t.info(list[i])
	}
	return infos, err
}

func (t *tree) Open(path string, write bool) (pathfs.File, error) {
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	return t.open(path, flags, 0)
}

func (t *tree) Create(path string, mode uint32) (pathfs.File, error) {
	return t.open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, pathfs.Mode(mode))
}

func (t *tree) open(path string, flags int, mode fs.FileMode) (_ pathfs.File, err error) {
	defer t.enter()(&err)
	f, err := t.fs.OpenFile(t.name(path), flags, mode)
	if err != nil {
		return nil, err
	}
	return &file{File: f, tree: t}, nil
}

// Mkdir makes all above too: go-billy has no other, and they are there.
func (t *tree) Mkdir(path string, mode uint32) (err error) {
	defer t.enter()(&err)
	return t.fs.MkdirAll(t.name(path), pathfs.Mode(mode))
}

func (t *tree) Symlink(target, path string) (err error) {
	defer t.enter()(&err)
	return t.fs.Symlink(target, t.name(path))
}

func (t *tree) ReadLink(path string) (_ string, err error) {
	defer t.enter()(&err)
	return t.fs.Readlink(t.name(path))
}

func (t *tree) Remove(path string) (err error) {
	defer t.enter()(&err)
	return t.fs.Remove(t.name(path))
}

func (t *tree) Rename(from, to string) (err error) {
	defer t.enter()(&err)
	return t.fs.Rename(t.name(from), t.name(to))
}

func (t *tree) Link(string, string) error { return vfs.ErrNotSupported }

func (t *tree) Chmod(path string, mode uint32) (err error) {
	defer t.enter()(&err)
	i, err := t.fs.Lstat(t.name(path))
	if err != nil {
		return err
	}
	return t.chmod.Chmod(t.name(path), i.Mode().Type()|pathfs.Mode(mode)) // some take all of it
}

func (t *tree) Chown(string, int, int) error { return vfs.ErrNotOwner }

func (t *tree) Chtimes(path string, atime, mtime time.Time) (err error) {
	defer t.enter()(&err)
	return t.change.Chtimes(t.name(path), atime, mtime)
}

// Stat knows nothing: go-billy has no words for it.
func (t *tree) Stat() (vfs.Stat, error) { return vfs.Stat{}, nil }

// CheckName refuses what go-billy would take for several components.
func (t *tree) CheckName(name string) error {
	if strings.ContainsRune(name, filepath.Separator) || !filepath.IsLocal(name) {
		return vfs.ErrInvalid
	}
	return nil
}

func (t *tree) Close() error { return nil }

// file is an open file, which is one caller's own.
type file struct {
	billy.File
	tree *tree
}

func (f *file) ReadAt(p []byte, off int64) (_ int, err error) {
	defer f.tree.enter()(&err)
	return f.File.ReadAt(p, off)
}

// WriteAt needs two calls, because not all files have one for it.
func (f *file) WriteAt(p []byte, off int64) (_ int, err error) {
	defer f.tree.enter()(&err)
	if _, err := f.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	return f.Write(p)
}

func (f *file) Truncate(size int64) (err error) {
	defer f.tree.enter()(&err)
	return f.File.Truncate(size)
}

func (f *file) Close() (err error) {
	defer f.tree.enter()(&err)
	return f.File.Close()
}

// Sync brings to stable storage what can be: files of the system.
func (f *file) Sync() (err error) {
	if s, ok := f.File.(interface{ Sync() error }); ok {
		defer f.tree.enter()(&err)
		return s.Sync()
	}
	return nil
}
