package pathfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"urnic/ulp/nfs/vfs"
)

// A Tree is what has files by paths. Paths have slashes between their components; that of
// the root is ".". Symbolic links are never given to what would follow them. Errors are
// those of vfs, or those that Fail understands.
type Tree interface {
	// Features says what the tree can do. What it can't is not called.
	Features() vfs.Features
	Lstat(path string) (Info, error)
	// ReadDir returns the names in a directory.
	ReadDir(path string) ([]Info, error)
	// Open opens a regular file, for writing too if so.
	Open(path string, write bool) (File, error)
	// Create makes a regular file of a name that is free.
	Create(path string, mode uint32) (File, error)
	Mkdir(path string, mode uint32) error
	Symlink(target, path string) error
	ReadLink(path string) (string, error)
	// Remove removes anything; of directories, only empty ones are given to it.
	Remove(path string) error
	// Rename gives a file another name, and replaces a file that is none of directory.
	Rename(from, to string) error
	Link(from, to string) error
	Chmod(path string, mode uint32) error
	// Chown leaves alone what is negative.
	Chown(path string, uid, gid int) error
	Chtimes(path string, atime, mtime time.Time) error
	Stat() (vfs.Stat, error)
	// CheckName refuses names that are special to the tree.
	CheckName(name string) error
	Close() error
}

// A File is an open regular file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// An Info is what is known of a file.
type Info struct {
	Name string
	Attr vfs.Attr
	// ID is the same for all names of a file, and can be compared. nil says that
	// nothing is, and that each name is a file of its own.
	ID any
}

// AttrOf returns what package io/fs knows of a file.
func AttrOf(i fs.FileInfo) vfs.Attr {
	a := vfs.Attr{
		Type: TypeOf(i.Mode()), Mode: uint32(i.Mode().Perm()), Links: 1,
		Mtime: i.ModTime(), Atime: i.ModTime(), Ctime: i.ModTime(),
	}
	if a.Type == vfs.Regular || a.Type == vfs.Symlink {
		a.Size = uint64(max(i.Size(), 0))
		a.Used = a.Size
	}
	for bit, to := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if i.Mode()&bit != 0 {
			a.Mode |= to
		}
	}
	return a
}

// TypeOf returns which type a mode of package io/fs reports.
func TypeOf(m fs.FileMode) vfs.Type {
	switch {
	case m.IsRegular():
		return vfs.Regular
	case m.IsDir():
		return vfs.Directory
	case m&fs.ModeSymlink != 0:
		return vfs.Symlink
	case m&fs.ModeNamedPipe != 0:
		return vfs.FIFO
	case m&fs.ModeSocket != 0:
		return vfs.Socket
	case m&fs.ModeCharDevice != 0:
		return vfs.CharDevice
	case m&fs.ModeDevice != 0:
		return vfs.BlockDevice
	}
	return vfs.FIFO // nothing that can be read or written
}

// Mode returns how package io/fs says permissions.
func Mode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, to := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= to
		}
	}
	return m
}

// Fail says in vfs's words what a Tree has said.
func Fail(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{
		vfs.ErrStale, vfs.ErrNotExist, vfs.ErrExist, vfs.ErrNotOwner, vfs.ErrAccess, vfs.ErrNotDirectory,
		vfs.ErrIsDirectory, vfs.ErrNotEmpty, vfs.ErrInvalid, vfs.ErrNameTooLong, vfs.ErrTooBig, vfs.ErrNoSpace,
		vfs.ErrQuota, vfs.ErrReadOnly, vfs.ErrNotSupported, vfs.ErrClosed, vfs.ErrIO,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	is := vfs.ErrIO
	switch {
	case errors.Is(err, fs.ErrNotExist):
		is = vfs.ErrNotExist
	case errors.Is(err, fs.ErrExist):
		is = vfs.ErrExist
	case errors.Is(err, fs.ErrPermission):
		is = vfs.ErrAccess
	case errors.Is(err, errors.ErrUnsupported):
		is = vfs.ErrNotSupported
	case errors.Is(err, os.ErrInvalid):
		is = vfs.ErrInvalid
	default:
		if no := errno(err); no != nil {
			is = no
		}
	}
	return errors.Join(is, err)
}
