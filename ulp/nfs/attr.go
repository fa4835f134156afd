package nfs

import (
	"context"
	"io/fs"
	"path"
	"time"

	"urnic/ulp/nfs/nfs3"
)

// A FileInfo describes a file; it is an fs.FileInfo. Sys returns the *nfs3.Attr.
type FileInfo struct {
	name   string
	attr   nfs3.Attr
	handle nfs3.Handle
}

func infoOf(name string, n node) *FileInfo {
	if name != "" {
		name = path.Base(name)
	}
	return &FileInfo{name, n.attr, n.handle}
}

// Name returns the last component of the path.
func (i *FileInfo) Name() string { return i.name }

// Size returns the length in bytes.
func (i *FileInfo) Size() int64 { return int64(min(i.attr.Size, 1<<63-1)) }

// Mode returns type and permissions.
func (i *FileInfo) Mode() fs.FileMode { return typeOf(i.attr.Type) | modeOf(i.attr.Mode) }

// ModTime returns when the content was changed last.
func (i *FileInfo) ModTime() time.Time { return i.attr.Mtime.Time() }

// IsDir reports whether it is a directory.
func (i *FileInfo) IsDir() bool { return i.attr.Type == nfs3.Directory }

// Sys returns the *nfs3.Attr.
func (i *FileInfo) Sys() any { return &i.attr }

// Attr returns the attributes as the server has them.
func (i *FileInfo) Attr() nfs3.Attr { return i.attr }

// Handle returns the handle, by which OpenHandle opens the file.
func (i *FileInfo) Handle() nfs3.Handle { return i.handle }

func (i *FileInfo) String() string { return fs.FormatFileInfo(i) }

func typeOf(t nfs3.FileType) fs.FileMode {
	switch t {
	case nfs3.Regular:
		return 0
	case nfs3.Directory:
		return fs.ModeDir
	case nfs3.Symlink:
		return fs.ModeSymlink
	case nfs3.BlockDevice:
		return fs.ModeDevice
	case nfs3.CharDevice:
		return fs.ModeDevice | fs.ModeCharDevice
	case nfs3.Socket:
		return fs.ModeSocket
	case nfs3.FIFO:
		return fs.ModeNamedPipe
	}
	return fs.ModeIrregular
}

// The bits of RFC 1813 §2.5 above the permissions.
const (
	bitSetUID = 0o4000
	bitSetGID = 0o2000
	bitSticky = 0o1000
)

func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	if m&bitSetUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&bitSetGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&bitSticky != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

func bitsOf(mode fs.FileMode) *uint32 {
	m := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		m |= bitSetUID
	}
	if mode&fs.ModeSetgid != 0 {
		m |= bitSetGID
	}
	if mode&fs.ModeSticky != 0 {
		m |= bitSticky
	}
	return &m
}

// Stat describes the file at a path. It follows symbolic links.
func (c *Client) Stat(ctx context.Context, name string) (*FileInfo, error) {
	return c.stat(ctx, "stat", name, true)
}

// Lstat describes the file at a path: a symbolic link itself, if it is one.
func (c *Client) Lstat(ctx context.Context, name string) (*FileInfo, error) {
	return c.stat(ctx, "lstat", name, false)
}

func (c *Client) stat(ctx context.Context, op, name string, follow bool) (*FileInfo, error) {
	n, err := c.find(ctx, name, follow)
	if err == nil {
		n, err = c.current(ctx, n)
	}
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return infoOf(name, n), nil
}

// current returns a file with its attributes, after what the server may have lost of it
// was written again.
func (c *Client) current(ctx context.Context, n node) (node, error) {
	in := c.opened(n.handle)
	if in == nil {
		return n, nil
	}
	defer c.release(in)
	if !c.outdated(in) {
		return n, nil
	}
	if err := c.refresh(ctx, in); err != nil {
		return n, err
	}
	attr, err := c.getattr(ctx, n.handle)
	return node{n.handle, attr}, err
}

// Access asks what the caller may do with a file, of the nfs3.Access bits in mask.
func (c *Client) Access(ctx context.Context, name string, mask uint32) (uint32, error) {
	n, err := c.find(ctx, name, true)
	if err != nil {
		return 0, pathError("access", name, err)
	}
	var res nfs3.AccessRes
	err = c.call(ctx, nfs3.ProcAccess, &nfs3.AccessArgs{Object: n.handle, Access: mask}, &res, &res.Status)
	return res.Access & mask, pathError("access", name, err)
}

// setattr changes attributes of the file at a path.
func (c *Client) setattr(ctx context.Context, op, name string, follow bool, s nfs3.SetAttr) error {
	n, err := c.find(ctx, name, follow)
	if err == nil {
		err = c.set(ctx, n.handle, s)
	}
	return pathError(op, name, err)
}

// set changes attributes. What was written before is committed if the size changes: it
// would make the file longer again if it was written again.
func (c *Client) set(ctx context.Context, h nfs3.Handle, s nfs3.SetAttr) error {
	if s.Size != nil {
		if in := c.opened(h); in != nil {
			defer c.release(in)
			if err := c.commit(ctx, in); err != nil {
				return err
			}
		}
	}
	var res nfs3.WccRes
	return c.call(ctx, nfs3.ProcSetAttr, &nfs3.SetAttrArgs{Object: h, Attr: s}, &res, &res.Status)
}

// Chmod changes the permissions of a file.
func (c *Client) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return c.setattr(ctx, "chmod", name, true, nfs3.SetAttr{Mode: bitsOf(mode)})
}

// Chown changes owner and group of a file. -1 leaves one as it is.
func (c *Client) Chown(ctx context.Context, name string, uid, gid int) error {
	return c.setattr(ctx, "chown", name, true, owner(uid, gid))
}

// Lchown is Chown that does not follow a symbolic link.
func (c *Client) Lchown(ctx context.Context, name string, uid, gid int) error {
	return c.setattr(ctx, "lchown", name, false, owner(uid, gid))
}

func owner(uid, gid int) (s nfs3.SetAttr) {
	if uid != -1 {
		s.UID = new(uint32(uid))
	}
	if gid != -1 {
		s.GID = new(uint32(gid))
	}
	return s
}

// Chtimes changes the times of a file. A zero time leaves one as it is.
func (c *Client) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	return c.setattr(ctx, "chtimes", name, true, nfs3.SetAttr{Atime: setTime(atime), Mtime: setTime(mtime)})
}

func setTime(t time.Time) nfs3.SetTime {
	if t.IsZero() {
		return nfs3.SetTime{}
	}
	return nfs3.SetTime{How: nfs3.SetToClientTime, Time: nfs3.TimeOf(t)}
}

// Truncate changes the length of a file.
func (c *Client) Truncate(ctx context.Context, name string, size int64) error {
	if size < 0 {
		return pathError("truncate", name, fs.ErrInvalid)
	}
	return c.setattr(ctx, "truncate", name, true, nfs3.SetAttr{Size: new(uint64(size))})
}
