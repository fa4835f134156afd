package dirfs

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/pathfs"
)

// newPortable serves a directory by what package os has on all systems.
func newPortable(dir string, o Options) (vfs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("dirfs: can't open the directory %s: %w", dir, err)
	}
	f, err := pathfs.New(&portable{root: root, opt: o})
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("dirfs: can't serve %s: %w", dir, err)
	}
	return f, nil
}

// portable is an os.Root, which nothing leads out of.
type portable struct {
	root *os.Root
	opt  Options
}

var _ pathfs.Tree = (*portable)(nil)

func (t *portable) Features() vfs.Features {
	windows := runtime.GOOS == "windows"
	return vfs.Features{
		MaxFileSize: math.MaxInt64,
		TimeDelta:   100 * time.Nanosecond, // that of NTFS, and a multiple of others'
		MaxName:     255,
		MaxLinks:    1000,
		ReadOnly:    t.opt.ReadOnly,
		HardLinks:   identities, // without them, a link would be another file
		Symlinks:    !windows,   // wants rights there that few have
		SetTime:     true,
		SetMode:     !windows,
		SetOwner:    os.Geteuid() == 0,
		FoldsCase:   windows || runtime.GOOS == "darwin",
	}
}

func (t *portable) info(i fs.FileInfo) pathfs.Info {
	info := pathfs.Info{Name: i.Name(), Attr: pathfs.AttrOf(i)}
	identify(i, &info)
	return info
}

func (t *portable) Lstat(path string) (pathfs.Info, error) {
	i, err := t.root.Lstat(path)
	if err != nil {
		return pathfs.Info{}, err
	}
	return t.info(i), nil
}

func (t *portable) ReadDir(path string) ([]pathfs.Info, error) {
	d, err := t.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	list, err := d.Readdir(-1)
	if err != nil {
		return nil, err
	}
	infos := make([]pathfs.Info, len(list))
	for i := range list {
		infos[i] = t.info(list[i])
	}
	return infos, nil
}

func (t *portable) Open(path string, write bool) (pathfs.File, error) {
	if write {
		return t.root.OpenFile(path, os.O_WRONLY, 0)
	}
	return t.root.Open(path)
}

// Create makes a file that we can write. Its mode is set next, as that of a directory is.
func (t *portable) Create(path string, _ uint32) (pathfs.File, error) {
	f, err := t.root.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = t.syncDir(path)
	}
	return f, err
}

// syncDir makes a change of a name stable, where directories can be synchronised.
func (t *portable) syncDir(path string) error {
	if t.opt.Async || runtime.GOOS == "windows" {
		return nil
	}
	d, err := t.root.Open(filepath.Dir(path))
	if err != nil {
		return nil // one that may not be read
	}
	err = d.Sync()
	if end := d.Close(); err == nil {
		err = end
	}
	return err
}

// changed is syncDir after what has not failed.
func (t *portable) changed(err error, path string) error {
	if err != nil {
		return err
	}
	return t.syncDir(path)
}

func (t *portable) Mkdir(path string, _ uint32) error {
	return t.changed(t.root.Mkdir(path, 0o700), path)
}

func (t *portable) Symlink(target, path string) error {
	return t.changed(t.root.Symlink(target, path), path)
}

func (t *portable) Link(from, to string) error { return t.changed(t.root.Link(from, to), to) }

func (t *portable) Remove(path string) error { return t.changed(t.root.Remove(path), path) }

func (t *portable) Rename(from, to string) error {
	err := t.changed(t.root.Rename(from, to), to)
	if filepath.Dir(from) != filepath.Dir(to) {
		err = t.changed(err, from)
	}
	return err
}

func (t *portable) ReadLink(path string) (string, error) { return t.root.Readlink(path) }

func (t *portable) Chmod(path string, mode uint32) error {
	return t.root.Chmod(path, pathfs.Mode(mode))
}

func (t *portable) Chown(path string, uid, gid int) error { return t.root.Lchown(path, uid, gid) }

func (t *portable) Chtimes(path string, atime, mtime time.Time) error {
	i, err := t.root.Lstat(path)
	if err != nil {
		return err
	}
	if i.Mode()&fs.ModeSymlink != 0 {
		return vfs.ErrNotSupported // it would be followed
	}
	return t.root.Chtimes(path, atime, mtime)
}

// Stat knows nothing: package os has no words for it.
func (t *portable) Stat() (vfs.Stat, error) { return vfs.Stat{}, nil }

// CheckName refuses names that mean something else to the system, such as NUL on Windows,
// or have several components there.
func (t *portable) CheckName(name string) error {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return vfs.ErrInvalid
	}
	return nil
}

func (t *portable) Close() error { return t.root.Close() }
