package memfs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"urnic/ulp/nfs/vfs"
)

// Limits of what Options leaves open, and of what it does not say.
const (
	DefaultMaxBytes = 1 << 30
	DefaultMaxFiles = 1 << 20
	MaxName         = 255
	MaxLinks        = 65000
	MaxTarget       = 4095 // bytes of a symbolic link
)

// Options says how much an FS may hold. The zero value stands for the defaults.
type Options struct {
	MaxBytes    uint64 // bytes of memory that files and names take, as cost.go counts it; DefaultMaxBytes
	MaxFiles    uint64 // names, so that a file with two of them counts twice; DefaultMaxFiles
	MaxFileSize uint64 // bytes; 1<<63 - 1, because holes are free
	Mode        uint32 // of the root; 0755
	UID, GID    uint32 // of the root, and of what is made without saying whose it is
}

// shards is how many parts the table of files has, each with its own lock.
const shards = 64

type shard struct {
	mu    sync.RWMutex
	nodes map[uint64]*node
}

// An FS is a tree of files in memory.
type FS struct {
	opt    Options
	root   *node
	nextID atomic.Uint64
	bytes  atomic.Int64
	names  atomic.Int64
	closed atomic.Bool
	links  uint32 // MaxLinks, but in tests

	// move is held while something moves from one directory to another, so that whoever is
	// whose ancestor does not change meanwhile. See rename.go for the order of locks.
	move sync.Mutex

	table [shards]shard
}

var _ vfs.FS = (*FS)(nil)

// New makes an empty tree.
func New(o Options) *FS {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.MaxFileSize == 0 || o.MaxFileSize > math.MaxInt64 {
		o.MaxFileSize = math.MaxInt64
	}
	if o.Mode == 0 {
		o.Mode = 0o755
	}
	o.MaxBytes, o.MaxFiles = min(o.MaxBytes, math.MaxInt64), min(o.MaxFiles, math.MaxInt64)
	fs := &FS{opt: o, links: MaxLinks}
	for i := range fs.table {
		fs.table[i].nodes = make(map[uint64]*node)
	}
	fs.root = fs.newNode(vfs.Directory, vfs.SetAttr{Mode: &o.Mode})
	fs.root.dir.parent.Store(fs.root)
	fs.enter(fs.root)
	return fs
}

// Features says what the FS can do.
func (fs *FS) Features() vfs.Features {
	return vfs.Features{
		MaxFileSize: fs.opt.MaxFileSize,
		TimeDelta:   time.Nanosecond,
		MaxName:     MaxName,
		MaxLinks:    fs.links,
		HardLinks:   true,
		Symlinks:    true,
		SetTime:     true,
		SetMode:     true,
		SetOwner:    true,
	}
}

// Root returns the root's handle.
func (fs *FS) Root() vfs.Handle { return fs.root.handle }

// Close gives the memory back.
func (fs *FS) Close() error {
	if fs.closed.Swap(true) {
		return nil
	}
	for i := range fs.table {
		s := &fs.table[i]
		s.mu.Lock()
		s.nodes = nil
		s.mu.Unlock()
	}
	return nil
}

// Stat says how much room there is.
func (fs *FS) Stat(ctx context.Context, h vfs.Handle) (vfs.Stat, error) {
	if _, err := fs.node(ctx, h); err != nil {
		return vfs.Stat{}, err
	}
	bytes, files := fs.opt.MaxBytes-uint64(fs.bytes.Load()), fs.opt.MaxFiles-uint64(fs.names.Load())
	return vfs.Stat{
		TotalBytes: fs.opt.MaxBytes, FreeBytes: bytes, AvailBytes: bytes,
		TotalFiles: fs.opt.MaxFiles, FreeFiles: files, AvailFiles: files,
	}, nil
}

// take counts n more of what there may be limit of, or returns ErrNoSpace.
func take(count *atomic.Int64, n int64, limit uint64) error {
	for {
		old := count.Load()
		if uint64(old)+uint64(n) > limit {
			return vfs.ErrNoSpace
		}
		if count.CompareAndSwap(old, old+n) {
			return nil
		}
	}
}

func (fs *FS) takeBytes(n int) error { return take(&fs.bytes, int64(n), fs.opt.MaxBytes) }
func (fs *FS) giveBytes(n int)       { fs.bytes.Add(-int64(n)) }

// takeName counts a name, and what it costs with something more.
func (fs *FS) takeName(name string, more int) error {
	if err := take(&fs.names, 1, fs.opt.MaxFiles); err != nil {
		return err
	}
	err := fs.takeBytes(nameCost(name) + more)
	if err != nil {
		fs.names.Add(-1)
	}
	return err
}

// giveName gives back what takeName has counted for a name.
func (fs *FS) giveName(name string) {
	fs.names.Add(-1)
	fs.giveBytes(nameCost(name))
}

// A handle is a file's number, which no other file ever gets, and a random number, so that
// neither a client's invention nor a handle of an earlier FS names anything.
const handleLen = 16

func makeHandle(id uint64) vfs.Handle {
	var b [handleLen]byte
	binary.BigEndian.PutUint64(b[:], id)
	_, _ = rand.Read(b[8:]) // never fails
	return vfs.Handle(b[:])
}

func idOf(h vfs.Handle) uint64 {
	return uint64(h[0])<<56 | uint64(h[1])<<48 | uint64(h[2])<<40 | uint64(h[3])<<32 |
		uint64(h[4])<<24 | uint64(h[5])<<16 | uint64(h[6])<<8 | uint64(h[7])
}

// node returns what a handle names.
func (fs *FS) node(ctx context.Context, h vfs.Handle) (*node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(h) == handleLen {
		id := idOf(h)
		s := &fs.table[id%shards]
		s.mu.RLock()
		n := s.nodes[id]
		s.mu.RUnlock()
		if n != nil && n.handle == h {
			return n, nil
		}
	}
	if fs.closed.Load() {
		return nil, vfs.ErrClosed
	}
	return nil, vfs.ErrStale
}

// directory returns the directory that a handle names.
func (fs *FS) directory(ctx context.Context, h vfs.Handle) (*node, error) {
	n, err := fs.node(ctx, h)
	if err == nil && n.dir == nil {
		return nil, vfs.ErrNotDirectory
	}
	return n, err
}

// regular returns the regular file that a handle names.
func (fs *FS) regular(ctx context.Context, h vfs.Handle) (*node, error) {
	n, err := fs.node(ctx, h)
	if err == nil && n.file == nil {
		return nil, vfs.ErrInvalid
	}
	return n, err
}

// enter makes a node's handle valid.
func (fs *FS) enter(n *node) {
	s := &fs.table[n.id%shards]
	s.mu.Lock()
	if s.nodes != nil { // nil: closed
		s.nodes[n.id] = n
	}
	s.mu.Unlock()
}

// drop makes the handle of a node without names stale, and frees what it holds.
func (fs *FS) drop(n *node) {
	s := &fs.table[n.id%shards]
	s.mu.Lock()
	delete(s.nodes, n.id)
	s.mu.Unlock()
	if n.file != nil {
		n.file.free(fs)
	}
	fs.giveBytes(n.cost())
}
