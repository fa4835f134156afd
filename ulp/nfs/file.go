package nfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"urnic/ulp/nfs/nfs3"
)

// A File is a file that is open. Its methods are those of *os.File, may be called from
// several goroutines, and may take as long as the server does: WithContext limits that.
type File struct {
	*opened
	ctx context.Context //nolint:containedctx // the interfaces of package io have none
}

// An opened is what all Files have in common that WithContext has made of one.
type opened struct {
	c    *Client
	in   *inode
	name string
	flag int
	dir  bool
	size uint64 // when it was opened

	closed atomic.Bool

	mu      sync.Mutex // of what follows
	at      int64
	listing *listing
}

func (c *Client) file(name string, n node, flag int) *File {
	o := &opened{c: c, in: c.acquire(n.handle), name: name, flag: flag, dir: n.attr.Type == nfs3.Directory, size: n.attr.Size}
	return &File{o, context.Background()}
}

// WithContext returns the same file, whose methods end when the context does.
func (f *File) WithContext(ctx context.Context) *File { return &File{f.opened, ctx} }

// Name returns the path that the file was opened by.
func (f *File) Name() string { return f.name }

// Handle returns the file's handle.
func (f *File) Handle() nfs3.Handle { return f.in.handle }

// usable finds what is wrong with a call.
func (f *File) usable(op string, writes bool) error {
	access := f.flag & accessFlags
	switch {
	case f.closed.Load():
		return pathError(op, f.name, fs.ErrClosed)
	case f.dir:
		return pathError(op, f.name, nfs3.ErrIsDir)
	case writes && access == os.O_RDONLY, !writes && access == os.O_WRONLY:
		return pathError(op, f.name, errBadMode)
	}
	return nil
}

var errBadMode = errors.New("nfs: the file was not opened for that")

// ReadAt reads len(p) bytes from off on. With less it returns io.EOF, or what is wrong.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	return f.readAt(p, off)
}

func (f *File) readAt(p []byte, off int64) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for again := true; again; {
		err = f.c.refresh(f.ctx, f.in)
		if err == nil {
			n, err = f.c.readAt(f.ctx, f.in.handle, p, uint64(off))
		}
		// A server that has restarted meanwhile has read what it has lost the rest of.
		again = (err == nil || isEnd(err)) && f.c.outdated(f.in)
	}
	if err != nil && !isEnd(err) {
		return n, pathError("read", f.name, err)
	}
	return n, err
}

// Read reads up to len(p) bytes.
func (f *File) Read(p []byte) (int, error) {
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.readAt(p, f.at)
	f.at += int64(n)
	if n > 0 && isEnd(err) {
		err = nil
	}
	return n, err
}

// WriteAt writes p at off. The server may have it in memory only until Sync or Close has
// returned.
func (f *File) WriteAt(p []byte, off int64) (int, error) {
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	if off < 0 || f.flag&os.O_APPEND != 0 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	return f.writeAt(p, off)
}

func (f *File) writeAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.c.put(f.ctx, f.in, p, uint64(off), f.flag&os.O_SYNC != 0)
	return n, pathError("write", f.name, err)
}

// Write writes p where the last one has ended, or at the end of the file with
// os.O_APPEND. What is safe is said at WriteAt.
func (f *File) Write(p []byte) (int, error) {
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flag&os.O_APPEND != 0 {
		n, err := f.node()
		if err != nil {
			return 0, pathError("write", f.name, err)
		}
		f.at = int64(n.attr.Size)
	}
	n, err := f.writeAt(p, f.at)
	f.at += int64(n)
	return n, err
}

// Seek says where Read and Write continue.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	if f.closed.Load() {
		return 0, pathError("seek", f.name, fs.ErrClosed)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		n, err := f.node()
		if err != nil {
			return 0, pathError("seek", f.name, err)
		}
		offset += int64(n.attr.Size)
	default:
		offset = -1
	}
	if offset < 0 {
		return 0, pathError("seek", f.name, fs.ErrInvalid)
	}
	f.at, f.listing = offset, nil
	return offset, nil
}

// node asks for the attributes.
func (f *File) node() (node, error) {
	if err := f.c.refresh(f.ctx, f.in); err != nil {
		return node{}, err
	}
	attr, err := f.c.getattr(f.ctx, f.in.handle)
	return node{f.in.handle, attr}, err
}

// Stat describes the file; the fs.FileInfo is a *FileInfo.
func (f *File) Stat() (fs.FileInfo, error) {
	if f.closed.Load() {
		return nil, pathError("stat", f.name, fs.ErrClosed)
	}
	n, err := f.node()
	if err != nil {
		return nil, pathError("stat", f.name, err)
	}
	return infoOf(f.name, n), nil
}

// Sync brings what was written to the server's stable storage: also by other Files of
// this client.
func (f *File) Sync() error {
	if f.closed.Load() {
		return pathError("sync", f.name, fs.ErrClosed)
	}
	return pathError("sync", f.name, f.c.commit(f.ctx, f.in))
}

// Truncate changes the length.
func (f *File) Truncate(size int64) error {
	if err := f.usable("truncate", true); err != nil {
		return err
	}
	if size < 0 {
		return pathError("truncate", f.name, fs.ErrInvalid)
	}
	return pathError("truncate", f.name, f.c.set(f.ctx, f.in.handle, nfs3.SetAttr{Size: new(uint64(size))}))
}

// Chmod changes the permissions.
func (f *File) Chmod(mode fs.FileMode) error {
	if f.closed.Load() {
		return pathError("chmod", f.name, fs.ErrClosed)
	}
	return pathError("chmod", f.name, f.c.set(f.ctx, f.in.handle, nfs3.SetAttr{Mode: bitsOf(mode)}))
}

// Close brings what was written to stable storage, as Sync does, and gives the file up,
// whatever it returns: if that is an error, what was written may be lost.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	err := f.c.commit(f.ctx, f.in)
	f.c.release(f.in)
	return pathError("close", f.name, err)
}

// A listing is a directory that ReadDir is in the middle of.
type listing struct {
	rest []fs.DirEntry
	err  error
}

// ReadDir lists up to n entries of a directory, or all that are left if n is 0 or less,
// as *os.File's does.
func (f *File) ReadDir(n int) ([]fs.DirEntry, error) {
	switch {
	case f.closed.Load():
		return nil, pathError("readdir", f.name, fs.ErrClosed)
	case !f.dir:
		return nil, pathError("readdir", f.name, nfs3.ErrNotDir)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listing == nil {
		entries, err := collect(f.c.list(f.ctx, f.in.handle, true), ListingMost)
		f.listing = &listing{entries, pathError("readdir", f.name, err)}
	}
	l := f.listing
	if n <= 0 {
		entries, err := l.rest, l.err
		l.rest, l.err = nil, nil
		return entries, err
	}
	if len(l.rest) == 0 {
		if l.err != nil {
			return nil, l.err
		}
		return nil, io.EOF
	}
	n = min(n, len(l.rest))
	entries := l.rest[:n:n]
	l.rest = l.rest[n:]
	return entries, nil
}
