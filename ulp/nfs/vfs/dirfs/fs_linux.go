package dirfs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"urnic/ulp/nfs/vfs"
)

// MaxName is how many bytes a name may have.
const MaxName = 255

// linuxFS is a directory, by openat2 or what stands in for it.
type linuxFS struct {
	opt     Options
	dev     uint64 // of the root; other devices are not entered
	tag     uint64 // tells this tree's handles from those of others
	root    *node
	layered bool // overlayfs: its files may be on several devices
	byFH    bool // open_by_handle_at is permitted
	procFD  bool // /proc/self/fd is there
	openAt  opener

	self    *process // nil: it can't act for callers
	faccess bool     // faccessat2 is there

	// recheck, pause, idleFor and sync are the constants and the system calls, but in tests.
	recheck time.Duration
	pause   time.Duration
	idleFor time.Duration
	sync    func(fd int, data bool) error

	losses atomic.Uint64 // how often data may have been lost

	mu     sync.Mutex
	closed bool
	known  map[uint64]*node    // by inode number
	used   lru                 // of known
	open   lru                 // of nodes that have descriptors
	grants map[grant]time.Time // until when
	gone   expired
	walk   walkState

	dropped  []*desc        // to be closed when mu is given back
	flushing map[uint64]int // flushes in progress, by inode number
	flushEnd sync.Cond      // of mu: one has ended
	idle     *time.Timer    // closes what is not used; nil: nothing is open
}

// New serves a directory. It fails if dir is none.
func New(dir string, o Options) (vfs.FS, error) {
	o.setDefaults()
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err == nil && lim.Cur/4 < uint64(o.MaxOpen) {
		o.MaxOpen = max(int(lim.Cur/4), 4)
	}
	fd, err := again(func() (int, error) {
		return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("dirfs: can't open the directory %s: %w", dir, err)
	}
	fs := &linuxFS{
		opt: o, known: make(map[uint64]*node), flushing: make(map[uint64]int), grants: make(map[grant]time.Time),
		recheck: recheck, pause: pause, idleFor: idleFor, sync: syncFD,
	}
	fs.flushEnd.L = &fs.mu
	fs.used.init(func(n *node) *link { return &n.used })
	fs.open.init(func(n *node) *link { return &n.open })
	fs.root = newNode(0)
	fs.root.rd, fs.root.known = newDesc(fd), true
	if err := fs.start(); err != nil {
		fs.root.rd.done()
		return nil, fmt.Errorf("dirfs: can't serve %s: %w", dir, err)
	}
	return fs, nil
}

// start learns what the root is and what the system can do.
func (fs *linuxFS) start() error {
	fd := fs.root.rd.fd
	var err error
	if fs.openAt, err = newOpener(fd); err != nil {
		return err
	}
	var f found
	if err := f.statAt(fd, ""); err != nil {
		return err
	}
	fs.dev = unix.Mkdev(f.st.Dev_major, f.st.Dev_minor)
	f.nameFH(fd)
	fs.tag = f.generation() ^ f.st.Ino
	fs.root.ino, fs.root.typ = f.st.Ino, vfs.Directory
	fs.root.handle = fs.handle(&f)
	fs.known[fs.root.ino] = fs.root
	var st unix.Statfs_t
	fs.layered = unix.Fstatfs(fd, &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC
	if f.fhType != 0 && f.fh.Size() > 0 { // or else there is no fh
		if probe, err := unix.OpenByHandleAt(fd, f.fh, unix.O_PATH|unix.O_CLOEXEC); err == nil {
			fs.byFH = true
			_ = unix.Close(probe)
		}
	}
	_, err = unix.Readlink(procPath(fd), make([]byte, 1))
	fs.procFD = err == nil
	fs.self, fs.faccess = newProcess(), canAccess(fd)
	return nil
}

func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// Close closes all descriptors; those in use when they no longer are.
func (fs *linuxFS) Close() error {
	fs.mu.Lock()
	defer fs.unlock()
	if fs.closed {
		return nil
	}
	fs.closed = true
	if fs.idle != nil {
		fs.idle.Stop()
	}
	for n := fs.open.oldest(); n != nil; n = fs.open.oldest() {
		fs.closeDescs(n)
	}
	fs.dropped = append(fs.dropped, fs.root.rd)
	fs.known = nil
	return nil
}

func (fs *linuxFS) Root() vfs.Handle { return fs.root.handle }

func (fs *linuxFS) Features() vfs.Features {
	return vfs.Features{
		MaxFileSize: math.MaxInt64,
		TimeDelta:   time.Nanosecond,
		MaxName:     MaxName,
		MaxLinks:    32000, // ext4's is 65000, others' more; nobody tells
		ReadOnly:    fs.opt.ReadOnly,
		HardLinks:   true,
		Symlinks:    true,
		SetTime:     true,
		SetMode:     true,
		SetOwner:    fs.self != nil, // in a namespace of one user, root can't either
		Callers:     fs.self != nil,
	}
}

func (fs *linuxFS) Stat(ctx context.Context, h vfs.Handle) (vfs.Stat, error) {
	n, err := fs.resolve(ctx, h)
	if err != nil {
		return vfs.Stat{}, err
	}
	d, err := fs.acquire(ctx, n, anyDesc)
	if err != nil {
		return vfs.Stat{}, err
	}
	defer d.done()
	var st unix.Statfs_t
	if err := unix.Fstatfs(d.fd, &st); err != nil {
		return vfs.Stat{}, fail(err)
	}
	size := uint64(st.Frsize)
	return vfs.Stat{
		TotalBytes: st.Blocks * size, FreeBytes: st.Bfree * size, AvailBytes: st.Bavail * size,
		TotalFiles: st.Files, FreeFiles: st.Ffree, AvailFiles: st.Ffree,
	}, nil
}

// writable returns ErrReadOnly if nothing may be changed.
func (fs *linuxFS) writable() error {
	if fs.opt.ReadOnly {
		return vfs.ErrReadOnly
	}
	return nil
}

// syncFD brings a file to stable storage; data leaves out what nobody needs to find it again, as its times.
func syncFD(fd int, data bool) error {
	return again0(func() error {
		if data {
			return unix.Fdatasync(fd)
		}
		return unix.Fsync(fd)
	})
}

// again repeats what a signal has interrupted, or a rename has disturbed.
func again[T any](do func() (T, error)) (T, error) {
	for range 100 {
		v, err := do()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return v, err
		}
	}
	return do()
}

func again0(do func() error) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// fail says in vfs's words what the system has said.
func fail(err error) error {
	var no unix.Errno
	if err == nil || !errors.As(err, &no) {
		return err
	}
	known, ok := errnos[no]
	if !ok {
		known = vfs.ErrIO
	}
	return fmt.Errorf("%w (%w)", known, err)
}

var errnos = map[unix.Errno]error{
	unix.ENOENT:       vfs.ErrNotExist,
	unix.EEXIST:       vfs.ErrExist,
	unix.EPERM:        vfs.ErrNotOwner,
	unix.EACCES:       vfs.ErrAccess,
	unix.ENOTDIR:      vfs.ErrNotDirectory,
	unix.ELOOP:        vfs.ErrNotDirectory, // a symbolic link where a directory was
	unix.EISDIR:       vfs.ErrIsDirectory,
	unix.ENOTEMPTY:    vfs.ErrNotEmpty,
	unix.EINVAL:       vfs.ErrInvalid,
	unix.ENAMETOOLONG: vfs.ErrNameTooLong,
	unix.EFBIG:        vfs.ErrTooBig,
	unix.EOVERFLOW:    vfs.ErrTooBig,
	unix.ENOSPC:       vfs.ErrNoSpace,
	unix.EDQUOT:       vfs.ErrQuota,
	unix.EROFS:        vfs.ErrReadOnly,
	unix.ETXTBSY:      vfs.ErrAccess,
	unix.EBUSY:        vfs.ErrAccess,
	unix.EMLINK:       vfs.ErrTooManyLinks,
	unix.EXDEV:        vfs.ErrAccess, // another filesystem is mounted there
	unix.EOPNOTSUPP:   vfs.ErrNotSupported,
	unix.ENOSYS:       vfs.ErrNotSupported,
	unix.ENXIO:        vfs.ErrNoDevice,
	unix.ENODEV:       vfs.ErrNoDevice,
	unix.ESTALE:       vfs.ErrStale,
}
