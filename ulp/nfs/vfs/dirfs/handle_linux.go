package dirfs

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// A handle is, in this order and big-endian:
//
//	1 byte   version
//	8 bytes  tag of the tree
//	8 bytes  inode number
//	8 bytes  generation: a hash of the filesystem's own handle and the time of birth
//	1 byte   type of the filesystem's own handle, and
//	up to 22  its bytes, if they are no more: what open_by_handle_at takes
//
// Inode numbers are used again soon, within the tick of the clock that the time of birth
// is taken from; the filesystem's own handle tells such files apart.
const (
	version   = 1
	fixedLen  = 25
	maxOwnLen = vfs.MaxHandle - fixedLen - 1
)

// A found is what the system says of a file.
type found struct {
	st     unix.Statx_t
	fh     unix.FileHandle
	fhType byte // 0: there is none, or it is too long
	hash   uint64
}

const statxMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// statAt asks for the attributes of name in a directory; "" is the directory itself.
func (f *found) statAt(fd int, name string) error {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return again0(func() error { return unix.Statx(fd, name, flags, statxMask, &f.st) })
}

// nameFH asks for the filesystem's own handle. Not all filesystems have one.
func (f *found) nameFH(fd int) {
	f.fhType, f.hash = 0, 0
	fh, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return
	}
	f.fh = fh
	sum := fnv.New64a()
	_, _ = sum.Write(fh.Bytes())
	f.hash = sum.Sum64() ^ uint64(fh.Type())
	if t := fh.Type(); t > 0 && t <= 0xff && fh.Size() <= maxOwnLen {
		f.fhType = byte(t)
	}
}

// generation tells the file from others that have had its inode number.
func (f *found) generation() uint64 {
	var b [24]byte
	binary.BigEndian.PutUint64(b[:], f.hash)
	if f.st.Mask&unix.STATX_BTIME != 0 {
		binary.BigEndian.PutUint64(b[8:], uint64(f.st.Btime.Sec))
		binary.BigEndian.PutUint32(b[16:], f.st.Btime.Nsec)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:])
	return sum.Sum64()
}

// statAt is that of found, for files of this tree. It returns EXDEV for those on another
// device. The files of overlayfs may be on the devices of its layers, which have the same
// inode numbers as others: then the device is made part of the number. What opens files has
// made sure that they are in the same mount.
func (fs *linuxFS) statAt(f *found, fd int, name string) error {
	if err := f.statAt(fd, name); err != nil {
		return err
	}
	dev := unix.Mkdev(f.st.Dev_major, f.st.Dev_minor)
	switch {
	case dev == fs.dev:
	case !fs.layered:
		return unix.EXDEV
	default:
		f.st.Ino ^= dev<<40 | 1<<63
	}
	return nil
}

// identify says which file fd is. It returns EXDEV if it is on another device.
func (fs *linuxFS) identify(fd int) (*found, vfs.Handle, error) {
	f := new(found)
	if err := fs.statAt(f, fd, ""); err != nil {
		return nil, "", err
	}
	f.nameFH(fd)
	return f, fs.handle(f), nil
}

func (fs *linuxFS) handle(f *found) vfs.Handle {
	b := make([]byte, fixedLen, vfs.MaxHandle)
	b[0] = version
	binary.BigEndian.PutUint64(b[1:], fs.tag)
	binary.BigEndian.PutUint64(b[9:], f.st.Ino)
	binary.BigEndian.PutUint64(b[17:], f.generation())
	if f.fhType != 0 {
		b = append(b, f.fhType)
		b = append(b, f.fh.Bytes()...)
	}
	return vfs.Handle(b)
}

// inode returns the inode number in a handle, if it can be one of ours.
func (fs *linuxFS) inode(h vfs.Handle) (uint64, bool) {
	if len(h) < fixedLen || len(h) > vfs.MaxHandle || h[0] != version {
		return 0, false
	}
	b := []byte(h[1:17])
	return binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b) == fs.tag
}

// own returns the filesystem's own handle in a handle.
func own(h vfs.Handle) (unix.FileHandle, bool) {
	if len(h) <= fixedLen+1 {
		return unix.FileHandle{}, false
	}
	return unix.NewFileHandle(int32(h[fixedLen]), []byte(h[fixedLen+1:])), true
}

var types = map[uint16]vfs.Type{
	unix.S_IFREG: vfs.Regular, unix.S_IFDIR: vfs.Directory, unix.S_IFLNK: vfs.Symlink,
	unix.S_IFBLK: vfs.BlockDevice, unix.S_IFCHR: vfs.CharDevice,
	unix.S_IFSOCK: vfs.Socket, unix.S_IFIFO: vfs.FIFO,
}

func typeOf(st *unix.Statx_t) vfs.Type { return types[st.Mode&unix.S_IFMT] }

func attrOf(st *unix.Statx_t) vfs.Attr {
	at := func(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }
	return vfs.Attr{
		Type: typeOf(st), Mode: uint32(st.Mode) & 0o7777, Links: st.Nlink, UID: st.Uid, GID: st.Gid,
		Size: st.Size, Used: st.Blocks * 512, Major: st.Rdev_major, Minor: st.Rdev_minor,
		FileID: st.Ino, Atime: at(st.Atime), Mtime: at(st.Mtime), Ctime: at(st.Ctime),
	}
}
