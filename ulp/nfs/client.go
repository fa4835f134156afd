package nfs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// A Client is a tree of a server that is mounted. Its methods may be called from several
// goroutines.
type Client struct {
	target  Target
	cfg     Config
	cred    oncrpc.Auth
	rpc     *oncrpc.Client
	connect oncrpc.Dial
	first   first         // the connection that Dial has made
	epoch   atomic.Uint64 // how many there were since
	mounted bool

	root                nfs3.Handle
	info                nfs3.FSInfoRes
	rsize, wsize, dsize int

	held    atomic.Int64 // bytes that are kept of all files
	entries int          // entriesMost, but in tests

	mu     sync.Mutex
	inodes map[nfs3.Handle]*inode // files that are open
}

// Target returns what was mounted.
func (c *Client) Target() Target { return c.target }

// Root returns the handle of the tree's root.
func (c *Client) Root() nfs3.Handle { return c.root }

// Sizes returns how many bytes one READ and one WRITE have at most.
func (c *Client) Sizes() (read, write int) { return c.rsize, c.wsize }

// Close ends the connection. What was not committed may be lost: close the files before.
func (c *Client) Close() error {
	if c.mounted { // the server's list of who has mounted what is for people: RFC 1813 §5.2.3
		ctx, cancel := context.WithTimeout(context.Background(), bindPatience)
		_ = c.callMount(ctx, nfs3.MountProcUmnt, &nfs3.MountArgs{Path: c.target.Path}, new(nfs3.Void))
		cancel()
	}
	err := c.rpc.Close()
	if conn := c.first.Swap(nil); conn != nil {
		err = errors.Join(err, (*conn).Close())
	}
	return err
}

// Null asks the server to do nothing.
func (c *Client) Null(ctx context.Context) error {
	return c.rpc.Call(ctx, &oncrpc.Invocation{Program: nfs3.Program, Version: nfs3.Version, Procedure: uint32(nfs3.ProcNull), Cred: c.cred})
}

// How long to wait before a call is made again that the server could not carry out yet.
const (
	jukeboxFirst = 100 * time.Millisecond
	jukeboxMost  = 5 * time.Second
)

// call makes a call. It returns the Status of its results, which res has at status.
func (c *Client) call(ctx context.Context, p nfs3.Proc, args, res nfs3.Codec, status *nfs3.Status, sinks ...[]byte) error {
	return c.invoke(ctx, &oncrpc.Invocation{
		Program: nfs3.Program, Version: nfs3.Version, Procedure: uint32(p),
		Cred:        c.cred,
		Args:        args.Encode,
		Results:     res.Decode,
		ResultsMost: longest(p, args),
		Sinks:       sinks,
	}, status)
}

// beyond is by how many bytes listings may be longer than the call allows. Linux's server
// counts the entries alone, without the attributes of the directory, the verifier and the
// end (RFC 1813 §3.3.16, §3.3.17): 104 bytes. Over RDMA, a reply that is longer than the
// memory for it fails.
const beyond = 128

// longest returns how long the results of a call may be, in bytes.
func longest(p nfs3.Proc, args nfs3.Codec) int {
	n := p.MaxReply(args)
	if p == nfs3.ProcReadDir || p == nfs3.ProcReadDirPlus {
		n += beyond
	}
	return n
}

// invoke makes a call until the server carries it out or refuses it.
func (c *Client) invoke(ctx context.Context, v *oncrpc.Invocation, status *nfs3.Status) error {
	for wait := jukeboxFirst; ; wait = min(2*wait, jukeboxMost) {
		if err := c.rpc.Call(ctx, v); err != nil {
			return err
		}
		if *status != nfs3.ErrJukebox {
			return status.Err()
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return errors.Join(*status, ctx.Err())
		}
	}
}

// fsinfo asks what the server can do.
func (c *Client) fsinfo(ctx context.Context) error {
	if err := c.call(ctx, nfs3.ProcFSInfo, &nfs3.HandleArgs{Handle: c.root}, &c.info, &c.info.Status); err != nil {
		return err
	}
	c.rsize = sizeOf(c.cfg.ReadSize, c.info.ReadMax)
	c.wsize = sizeOf(c.cfg.WriteSize, c.info.WriteMax)
	c.dsize = min(max(int(min(c.info.DirPref, 1<<20)), 32<<10), 64<<10)
	return nil
}

// sizeOf returns the size of transfers that both sides take: the server's may be made up.
func sizeOf(own int, server uint32) int {
	return max(min(own, int(min(server, nfs3.MaxData))), minSize)
}

// A Statfs is what is known of a filesystem, in bytes and files.
type Statfs struct {
	TotalBytes, FreeBytes, AvailBytes uint64
	TotalFiles, FreeFiles, AvailFiles uint64
}

// Statfs says how full the filesystem is that has the tree's root.
func (c *Client) Statfs(ctx context.Context) (Statfs, error) {
	var res nfs3.FSStatRes
	if err := c.call(ctx, nfs3.ProcFSStat, &nfs3.HandleArgs{Handle: c.root}, &res, &res.Status); err != nil {
		return Statfs{}, pathError("statfs", "/", err)
	}
	return Statfs{res.TotalBytes, res.FreeBytes, res.AvailBytes, res.TotalFiles, res.FreeFiles, res.AvailFiles}, nil
}

// PathConf says what names the filesystem takes that has the tree's root.
func (c *Client) PathConf(ctx context.Context) (nfs3.PathConfRes, error) {
	var res nfs3.PathConfRes
	if err := c.call(ctx, nfs3.ProcPathConf, &nfs3.HandleArgs{Handle: c.root}, &res, &res.Status); err != nil {
		return res, pathError("pathconf", "/", err)
	}
	return res, nil
}
