package dirfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// direntBuf is how much of a directory is read at once.
const direntBuf = 32 << 10

// A dirent is what getdents64 says. The name is valid until the next one.
type dirent struct {
	ino  uint64
	next uint64 // where the directory continues behind it
	typ  byte
	name []byte
}

// eachDirent calls do for all entries but "." and ".." until it returns false.
func eachDirent(fd int, buf []byte, do func(*dirent) bool) error {
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, buf) })
		if err != nil || n == 0 {
			return err
		}
		for b := buf[:n]; len(b) > 19; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < 19 || size > len(b) {
				return unix.EIO
			}
			name, _, _ := bytes.Cut(b[19:size], []byte{0})
			e := dirent{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:]), b[18], name}
			b = b[size:]
			if string(name) != "." && string(name) != ".." && !do(&e) {
				return nil
			}
		}
	}
}

// isDir says whether it is a directory; not all filesystems have that in the entry.
func (e *dirent) isDir(fd int) bool {
	if e.typ != unix.DT_UNKNOWN {
		return e.typ == unix.DT_DIR
	}
	var f found
	return f.statAt(fd, string(e.name)) == nil && f.st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// A cookie is the filesystem's own position. Those that mean something else in NFS are
// moved to where no filesystem has any.
const movedCookie = 1 << 62

func toCookie(pos uint64) uint64 {
	if pos < 3 {
		return pos | movedCookie
	}
	return pos
}

func toPosition(cookie uint64) uint64 {
	if cookie >= movedCookie && cookie < movedCookie+3 {
		return cookie - movedCookie
	}
	return cookie
}

func (fs *linuxFS) ReadDir(ctx context.Context, h vfs.Handle, cookie uint64, plus bool, add func(vfs.Entry) bool) (bool, error) {
	dir, d, err := fs.directory(ctx, h)
	if err != nil {
		return false, err
	}
	defer d.done()
	if err := fs.permit(ctx, dir, d, wantList); err != nil {
		return false, err
	}
	// Without the right to search it, names are all there is to see.
	plus = plus && fs.permit(ctx, dir, d, wantSearch) == nil
	pos := toPosition(cookie)
	if pos > math.MaxInt64 {
		return false, vfs.ErrBadCookie
	}
	fd, err := fs.openFD(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return false, fail(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if pos != 0 {
		if _, err := unix.Seek(fd, int64(pos), unix.SEEK_SET); err != nil {
			return false, vfs.ErrBadCookie
		}
	}
	end := true
	var failed error
	err = eachDirent(fd, make([]byte, direntBuf), func(e *dirent) bool {
		item := vfs.Entry{Name: string(e.name), FileID: e.ino, Cookie: toCookie(e.next)}
		var f found
		if fs.layered && !plus && fs.statAt(&f, fd, item.Name) == nil {
			item.FileID = f.st.Ino
		}
		if plus {
			skip, err := fs.describe(dir, fd, &item)
			if failed = errors.Join(err, ctx.Err()); failed != nil {
				return false
			}
			if skip {
				return true
			}
		}
		end = add(item)
		return end
	})
	if err = errors.Join(fail(err), failed); err != nil {
		return false, err
	}
	return end, nil
}

// describe adds handle and attributes, if they can be had. skip says that the name is gone.
func (fs *linuxFS) describe(dir *node, fd int, item *vfs.Entry) (skip bool, err error) {
	child, err := fs.openFD(fd, item.Name, unix.O_PATH, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return true, nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EXDEV):
		return false, nil
	case err != nil:
		return false, fail(err)
	}
	defer func() { _ = unix.Close(child) }()
	f, h, err := fs.identify(child)
	if err != nil {
		return false, nil
	}
	fs.learn(dir, item.Name, f, h)
	a := fs.attrOf(child, f)
	item.Handle, item.Attr, item.FileID = h, &a, a.FileID
	return false, nil
}
