package pathfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"urnic/ulp/nfs/vfs"
)

func missing(err error) bool {
	return errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrNotDirectory)
}

// GetAttr asks the tree.
func (fs *FS) GetAttr(ctx context.Context, h vfs.Handle) (vfs.Attr, error) {
	fs.names.RLock()
	defer fs.names.RUnlock()
	_, _, info, err := fs.find(ctx, h)
	return info.Attr, err
}

// SetAttr changes what the tree can change.
func (fs *FS) SetAttr(ctx context.Context, h vfs.Handle, s vfs.SetAttr) (vfs.Attr, error) {
	if fs.can.ReadOnly {
		return vfs.Attr{}, vfs.ErrReadOnly
	}
	fs.names.RLock()
	defer fs.names.RUnlock()
	n, p, info, err := fs.find(ctx, h)
	if err == nil {
		err = fs.check(n.typ, s)
	}
	if err == nil {
		err = fs.apply(p, info.Attr, s)
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	_, _, info, err = fs.find(ctx, h)
	return info.Attr, err
}

// check returns an error if a file can't have what s asks for.
func (fs *FS) check(t vfs.Type, s vfs.SetAttr) error {
	if err := s.Check(t); err != nil {
		return err
	}
	if s.Size != nil && *s.Size > fs.can.MaxFileSize {
		return vfs.ErrTooBig
	}
	if (s.Atime != nil || s.Mtime != nil) && !fs.can.SetTime {
		return vfs.ErrNotSupported
	}
	return nil
}

// apply changes what differs from old.
func (fs *FS) apply(p string, old vfs.Attr, s vfs.SetAttr) error {
	uid, gid := -1, -1
	if s.UID != nil && *s.UID != old.UID {
		uid = int(*s.UID)
	}
	if s.GID != nil && *s.GID != old.GID {
		gid = int(*s.GID)
	}
	if uid >= 0 || gid >= 0 {
		if !fs.can.SetOwner {
			return vfs.ErrNotOwner
		}
		if err := fs.tree.Chown(p, uid, gid); err != nil {
			return Fail(err)
		}
	}
	if s.Size != nil {
		if err := fs.truncate(p, *s.Size); err != nil {
			return Fail(err)
		}
	}
	if s.Mode != nil && *s.Mode != old.Mode {
		if !fs.can.SetMode || old.Type == vfs.Symlink {
			return vfs.ErrNotSupported
		}
		if err := fs.tree.Chmod(p, *s.Mode); err != nil {
			return Fail(err)
		}
	}
	if s.Atime == nil && s.Mtime == nil {
		return nil
	}
	at := func(t *time.Time, old time.Time) time.Time {
		if t != nil {
			return *t
		}
		return old
	}
	return Fail(fs.tree.Chtimes(p, at(s.Atime, old.Atime), at(s.Mtime, old.Mtime)))
}

func (fs *FS) truncate(p string, size uint64) error {
	f, err := fs.tree.Open(p, true)
	if err != nil {
		return err
	}
	err = f.Truncate(int64(size))
	if err == nil {
		err = syncFile(f)
	}
	return errors.Join(err, f.Close())
}

// regular is find for regular files.
func (fs *FS) regular(ctx context.Context, h vfs.Handle) (string, uint64, error) {
	n, p, info, err := fs.find(ctx, h)
	if err == nil && n.typ != vfs.Regular {
		err = vfs.ErrInvalid
	}
	return p, info.Attr.Size, err
}

// Read opens the file, and reads.
func (fs *FS) Read(ctx context.Context, h vfs.Handle, p []byte, off uint64) (int, bool, error) {
	fs.names.RLock()
	defer fs.names.RUnlock()
	name, size, err := fs.regular(ctx, h)
	if err != nil {
		return 0, false, err
	}
	if off >= size {
		return 0, true, nil
	}
	p = p[:min(uint64(len(p)), size-off)]
	if len(p) == 0 {
		return 0, false, nil
	}
	f, err := fs.tree.Open(name, false)
	if err != nil {
		return 0, false, Fail(err)
	}
	defer func() { _ = f.Close() }()
	n, err := f.ReadAt(p, int64(off))
	if err == io.EOF { //nolint:errorlint // one that is wrapped is no end, but a source that was lost
		return n, true, nil // it has become shorter meanwhile, if it is not the end
	}
	if err != nil {
		return 0, false, Fail(err)
	}
	return n, off+uint64(n) >= size, nil
}

// Write opens the file, writes, and makes it stable if so.
func (fs *FS) Write(ctx context.Context, h vfs.Handle, p []byte, off uint64, sync bool) error {
	if fs.can.ReadOnly {
		return vfs.ErrReadOnly
	}
	fs.names.RLock()
	defer fs.names.RUnlock()
	name, _, err := fs.regular(ctx, h)
	if err != nil {
		return err
	}
	if off > fs.can.MaxFileSize || uint64(len(p)) > fs.can.MaxFileSize-off {
		return vfs.ErrTooBig
	}
	if len(p) == 0 {
		return nil
	}
	f, err := fs.tree.Open(name, true)
	if err != nil {
		return Fail(err)
	}
	_, err = f.WriteAt(p, int64(off))
	if err == nil && sync {
		err = syncFile(f)
	}
	if end := f.Close(); err == nil {
		err = end
	}
	return Fail(err)
}

// Commit makes the file stable, if the tree can.
func (fs *FS) Commit(ctx context.Context, h vfs.Handle, _, _ uint64) error {
	fs.names.RLock()
	defer fs.names.RUnlock()
	name, _, err := fs.regular(ctx, h)
	if err != nil || fs.can.ReadOnly {
		return err
	}
	f, err := fs.tree.Open(name, true)
	if err != nil {
		return Fail(err)
	}
	return Fail(errors.Join(syncFile(f), f.Close()))
}

// syncFile brings a file to stable storage. Whatever the tree says of a failure, data may be
// lost: it is an ErrIO.
func syncFile(f File) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%w: %w", vfs.ErrIO, err)
	}
	return nil
}

// ReadLink asks the tree.
func (fs *FS) ReadLink(ctx context.Context, h vfs.Handle) (string, error) {
	fs.names.RLock()
	defer fs.names.RUnlock()
	n, p, _, err := fs.find(ctx, h)
	if err != nil {
		return "", err
	}
	if n.typ != vfs.Symlink {
		return "", vfs.ErrInvalid
	}
	to, err := fs.tree.ReadLink(p)
	return to, Fail(err)
}

// Stat asks the tree.
func (fs *FS) Stat(ctx context.Context, h vfs.Handle) (vfs.Stat, error) {
	fs.names.RLock()
	defer fs.names.RUnlock()
	if _, _, _, err := fs.find(ctx, h); err != nil {
		return vfs.Stat{}, err
	}
	st, err := fs.tree.Stat()
	return st, Fail(err)
}
