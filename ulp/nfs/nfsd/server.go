package nfsd

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc/xdr"
)

// A Config says how a server works. Its zero value is ready for use.
type Config struct {
	// ReadMax and WriteMax are how many bytes one READ or WRITE moves at most; 0
	// stands for 1 MiB, and nfs3.MaxData is the most.
	ReadMax, WriteMax int

	// Mounts is how many mounts are remembered, for DUMP; 0 stands for 1024. The
	// oldest are forgotten.
	Mounts int

	// Key signs file handles, so that nobody can make one up who does not know it. For
	// handles to outlive the server, give the next one the same: at least 16 random
	// bytes that nobody else can read. Without a key the server makes one of its own,
	// and its handles end with it.
	Key []byte

	// Identify finds out who has made a connection, which is open; see Server.Admit. An
	// error says that nobody can know, and nothing is believed then. nil stands for
	// peers of which only the port is known.
	Identify func(local, remote net.Addr) (Peer, error)

	// Log gets what goes wrong on the server; nil stands for nowhere.
	Log *slog.Logger

	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

const (
	defaultTransfer = 1 << 20
	defaultMounts   = 1024
)

// A Server carries out the procedures of NFS and of MOUNT. Its methods may be called by
// many goroutines at once.
type Server struct {
	readMax, writeMax uint32
	macs              sync.Pool // of *mac
	log               *slog.Logger
	now               func() time.Time
	identify          func(local, remote net.Addr) (Peer, error)
	verifier          atomic.Uint64 // of unstable writes
	changes           changes
	mounts            mounts

	mu      sync.Mutex // held to add and to remove exports
	exports atomic.Pointer[exports]
}

// ErrConfig says that there can't be such a server.
var ErrConfig = errors.New("nfsd: no such server is possible")

// New returns a server without exports. It returns ErrConfig.
func New(cfg Config) (*Server, error) {
	key := slices.Clone(cfg.Key)
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
	}
	s := &Server{log: cfg.Log, now: cfg.Now, identify: cfg.Identify}
	s.macs.New = func() any { return &mac{hash: hmac.New(sha256.New, key)} }
	s.changes.seed = maphash.MakeSeed()
	for _, v := range []struct {
		name string
		n    int
		to   *uint32
	}{{"ReadMax", cfg.ReadMax, &s.readMax}, {"WriteMax", cfg.WriteMax, &s.writeMax}} {
		switch {
		case v.n == 0:
			*v.to = defaultTransfer
		case v.n < 512 || v.n > nfs3.MaxData:
			return nil, fmt.Errorf("%w: %s is %d bytes: it must be 512 to %d", ErrConfig, v.name, v.n, nfs3.MaxData)
		default:
			*v.to = uint32(v.n)
		}
	}
	if cfg.Mounts < 0 {
		return nil, fmt.Errorf("%w: it can't remember %d mounts", ErrConfig, cfg.Mounts)
	}
	s.mounts.most = cfg.Mounts
	if cfg.Mounts == 0 {
		s.mounts.most = defaultMounts
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.exports.Store(&exports{paths: map[string]*export{}, numbers: map[uint32]*export{}})
	s.forget()
	return s, nil
}

// A procedure decodes arguments, carries itself out, and encodes results. Its error is
// that of arguments that can't be decoded.
type procedure func(ctx context.Context, c call, args *xdr.Decoder, res *xdr.Encoder) error

// result is a pointer to results.
type result[R any] interface {
	*R
	nfs3.Result
}

// arguments is a pointer to arguments.
type arguments[A any] interface {
	*A
	nfs3.Codec
}

// of makes a procedure of a function that returns what is wrong, with the results that
// come along filled in.
func of[A, R any, PA arguments[A], PR result[R]](s *Server, p nfs3.Proc, do func(context.Context, *call, *A, *R) error) procedure {
	type frame struct { // kept, so that no call allocates it
		call call
		args A
		res  R
	}
	frames := sync.Pool{New: func() any { return new(frame) }}
	return func(ctx context.Context, c call, args *xdr.Decoder, res *xdr.Encoder) error {
		f, _ := frames.Get().(*frame)
		defer func() {
			*f = frame{} // holds no memory of others
			frames.Put(f)
		}()
		if err := PA(&f.args).Decode(args); err != nil {
			return err
		}
		if err := args.End(); err != nil {
			return err
		}
		f.call = c
		err := do(ctx, &f.call, &f.args, &f.res)
		st := status(err)
		if st == nfs3.ErrIO || st == nfs3.ErrServerFault {
			s.log.Error("nfsd: a call failed", "procedure", p.String(), "client", c.remote.String(), "error", err.Error())
		}
		*PR(&f.res).Stat() = st
		PR(&f.res).Encode(res)
		return nil
	}
}

// procedures returns those of NFS, but NULL.
func (s *Server) procedures() map[nfs3.Proc]procedure {
	return map[nfs3.Proc]procedure{
		nfs3.ProcGetAttr:     of(s, nfs3.ProcGetAttr, s.getAttr),
		nfs3.ProcSetAttr:     of(s, nfs3.ProcSetAttr, s.setAttr),
		nfs3.ProcLookup:      of(s, nfs3.ProcLookup, s.lookup),
		nfs3.ProcAccess:      of(s, nfs3.ProcAccess, s.access),
		nfs3.ProcReadLink:    of(s, nfs3.ProcReadLink, s.readLink),
		nfs3.ProcRead:        of(s, nfs3.ProcRead, s.read),
		nfs3.ProcWrite:       of(s, nfs3.ProcWrite, s.write),
		nfs3.ProcCreate:      of(s, nfs3.ProcCreate, s.create),
		nfs3.ProcMkdir:       of(s, nfs3.ProcMkdir, s.mkdir),
		nfs3.ProcSymlink:     of(s, nfs3.ProcSymlink, s.symlink),
		nfs3.ProcMknod:       of(s, nfs3.ProcMknod, s.mknod),
		nfs3.ProcRemove:      of(s, nfs3.ProcRemove, s.remove),
		nfs3.ProcRmdir:       of(s, nfs3.ProcRmdir, s.rmdir),
		nfs3.ProcRename:      of(s, nfs3.ProcRename, s.rename),
		nfs3.ProcLink:        of(s, nfs3.ProcLink, s.link),
		nfs3.ProcReadDir:     of(s, nfs3.ProcReadDir, s.readDir),
		nfs3.ProcReadDirPlus: of(s, nfs3.ProcReadDirPlus, s.readDirPlus),
		nfs3.ProcFSStat:      of(s, nfs3.ProcFSStat, s.fsStat),
		nfs3.ProcFSInfo:      of(s, nfs3.ProcFSInfo, s.fsInfo),
		nfs3.ProcPathConf:    of(s, nfs3.ProcPathConf, s.pathConf),
		nfs3.ProcCommit:      of(s, nfs3.ProcCommit, s.commit),
	}
}
