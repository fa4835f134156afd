package nfs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
)

// Dial mounts the tree that a URL names; see ParseURL and DialTarget.
func Dial(ctx context.Context, address string, cfg Config) (*Client, error) {
	t, err := ParseURL(address)
	if err != nil {
		return nil, err
	}
	return DialTarget(ctx, t, cfg)
}

// DialTarget connects to a server and mounts the tree at the target's path.
//
// MOUNT, which goes over TCP always (RFC 8267 §5.1), is asked at Target.MountPort. If that
// is 0, at the port that the host's rpcbind knows, or else at that of NFS over TCP, as of
// servers without rpcbind. Where Target.Port is a port of TCP other than 2049, that is
// tried before rpcbind, which would report another server.
func DialTarget(ctx context.Context, t Target, cfg Config) (*Client, error) {
	c, err := newClient(t, cfg)
	if err != nil {
		return nil, err
	}
	if err := c.mount(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("nfs: %v can't be mounted: %w", t, err), c.Close())
	}
	return c, nil
}

// DialFile connects to the server of a URL that names a file or directory somewhere in an
// export, and mounts what contains it: the longest export that the server lists, or the
// nearest directory above that it lets be mounted. It returns the rest of the path.
func DialFile(ctx context.Context, address string, cfg Config) (*Client, string, error) {
	t, err := ParseURL(address)
	if err != nil {
		return nil, "", err
	}
	full := t.Path
	exports, err := Exports(ctx, t, cfg)
	if err != nil && !errors.As(err, new(*oncrpc.AcceptedError)) {
		return nil, "", err
	}
	if dir, ok := containing(exports, full); ok {
		t.Path = dir
		c, err := DialTarget(ctx, t, cfg)
		return c, below(full, dir), err
	}
	var first error // which speaks of the path that was given
	for {
		c, err := DialTarget(ctx, t, cfg)
		if err == nil {
			return c, below(full, t.Path), nil
		}
		if !errors.As(err, new(nfs3.MountStatus)) {
			return nil, "", err
		}
		if first == nil {
			first = err
		}
		if t.Path == "/" {
			return nil, "", first
		}
		t.Path = path.Dir(t.Path)
	}
}

// containing returns the longest export that a path is in.
func containing(exports []nfs3.Export, name string) (dir string, ok bool) {
	for _, e := range exports {
		d := path.Clean("/" + e.Dir)
		if (d == "/" || d == name || strings.HasPrefix(name, d+"/")) && len(d) > len(dir) {
			dir, ok = d, true
		}
	}
	return dir, ok
}

func below(name, dir string) string {
	if rest := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/"); rest != "" {
		return rest
	}
	return "."
}

// Exports asks a server for what it exports. The target's path does not matter.
func Exports(ctx context.Context, t Target, cfg Config) ([]nfs3.Export, error) {
	c, err := newClient(t, cfg)
	if err != nil {
		return nil, err
	}
	var res nfs3.ExportRes
	err = c.callMount(ctx, nfs3.MountProcExport, new(nfs3.Void), &res)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nfs: the exports of %s can't be listed: %w", t.Host, err), c.Close())
	}
	return res.Exports, c.Close()
}

// newClient returns a client that has mounted nothing.
func newClient(t Target, cfg Config) (*Client, error) {
	if err := errors.Join(t.check(), cfg.fill()); err != nil {
		return nil, err
	}
	cred, err := cfg.Credential.Auth()
	if err != nil {
		return nil, err
	}
	c := &Client{target: t, cfg: cfg, cred: cred, entries: entriesMost, inodes: make(map[nfs3.Handle]*inode)}
	dial := cfg.Connect
	switch {
	case dial != nil:
	case t.Transport == RDMA:
		if dial, err = overRDMA(t.address(t.port()), &cfg); err != nil {
			return nil, err
		}
	default:
		dial = c.overTCP(t.port())
	}
	c.rpc = oncrpc.NewClient(c.counted(dial), cfg.Retry)
	return c, nil
}

// counted returns a dial that counts connections, and has one that was made before.
func (c *Client) counted(dial oncrpc.Dial) oncrpc.Dial {
	c.connect = dial
	return func(ctx context.Context) (oncrpc.Conn, error) {
		if conn := c.first.Swap(nil); conn != nil {
			return *conn, nil
		}
		conn, err := dial(ctx)
		if err == nil {
			c.epoch.Add(1)
		}
		return conn, err
	}
}

// mount finds the root of the tree, and what the server can do.
func (c *Client) mount(ctx context.Context) error {
	// Who calls learns at once that there is no server, however hard it tries later.
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	c.first.Store(&conn)
	if c.cfg.Root != nil {
		c.root = *c.cfg.Root
	} else if err := c.mnt(ctx); err != nil {
		return err
	}
	return c.fsinfo(ctx)
}

// mnt asks MOUNT for the root.
func (c *Client) mnt(ctx context.Context) error {
	var res nfs3.MountRes
	if err := c.callMount(ctx, nfs3.MountProcMnt, &nfs3.MountArgs{Path: c.target.Path}, &res); err != nil {
		return err
	}
	if err := res.Status.Err(); err != nil {
		return err
	}
	// Servers that don't care who calls may say AUTH_NONE only.
	switch sys, none := uint32(oncrpc.AuthSys), uint32(oncrpc.AuthNone); {
	case len(res.Flavors) == 0, slices.Contains(res.Flavors, sys):
	case slices.Contains(res.Flavors, none):
		c.cred = oncrpc.Auth{}
	default:
		return fmt.Errorf("nfs: the server takes credentials of the flavors %v, and neither AUTH_SYS nor AUTH_NONE", res.Flavors)
	}
	c.root, c.mounted = res.Handle, true
	return nil
}

// How long MOUNT and rpcbind may take to answer.
const (
	mountPatience = 20 * time.Second
	bindPatience  = 3 * time.Second
)

// callMount makes a call to MOUNT, wherever it is.
func (c *Client) callMount(ctx context.Context, p nfs3.MountProc, args, res nfs3.Codec) error {
	ctx, cancel := context.WithTimeout(ctx, mountPatience)
	defer cancel()
	call := func(port int) error {
		return c.callOnce(ctx, port, &oncrpc.Invocation{
			Program: nfs3.MountProgram, Version: nfs3.MountVersion, Procedure: uint32(p),
			Cred:        c.cred,
			Args:        args.Encode,
			Results:     res.Decode,
			ResultsMost: p.MaxReply(),
		})
	}
	if c.target.MountPort != 0 {
		return call(c.target.MountPort)
	}
	tcp := PortTCP
	if c.target.Transport == TCP {
		tcp = c.target.port()
	}
	failed := new(MountServiceError)
	try := func(port int) bool {
		err := call(port)
		if err == nil {
			return true
		}
		failed.Tries = append(failed.Tries, MountTry{port, err})
		return false
	}
	if tcp != PortTCP && try(tcp) {
		return nil
	}
	port, err := c.bound(ctx)
	switch {
	case err != nil:
		failed.Tries = append(failed.Tries, MountTry{0, err})
	case port == tcp && tcp != PortTCP: // tried
	case try(port):
		return nil
	}
	if tcp == PortTCP && port != tcp && try(tcp) {
		return nil
	}
	return failed
}

// callOnce makes one call over a TCP connection of its own.
func (c *Client) callOnce(ctx context.Context, port int, v *oncrpc.Invocation) error {
	rpc := oncrpc.NewClient(c.overTCP(port), oncrpc.ClientConfig{Dials: 1, Sends: 2})
	err := rpc.Call(ctx, v)
	return errors.Join(err, rpc.Close())
}

// overTCP returns what connects to a port of the server.
func (c *Client) overTCP(port int) oncrpc.Dial {
	address := c.target.address(port)
	cfg := oncrpc.TCPConfig{Dialer: c.cfg.Dialer, RecordMost: max(oncrpc.DefaultRecordMost, c.cfg.ReadSize+replyOverhead)}
	if cfg.Dialer != nil {
		return oncrpc.OverTCP(address, cfg)
	}
	return func(ctx context.Context) (oncrpc.Conn, error) {
		conn, err := DialReserved(ctx, address)
		if err != nil {
			return nil, err
		}
		return oncrpc.NewTCPConn(conn, cfg), nil
	}
}

// replyOverhead is how many bytes the longest reply has besides the data, and more.
const replyOverhead = 64 << 10

// DialReserved connects to host:port over TCP, from a privileged port if this process may
// use one: servers of NFS believe what calls say that come from there. It is for the
// rnic.Network of a device whose connections they should believe.
func DialReserved(ctx context.Context, address string) (net.Conn, error) {
	if runtime.GOOS != "windows" { // which has none
		conn, err := dialReserved(ctx, address)
		if err == nil || !inTheWay(err) {
			return conn, err
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func dialReserved(ctx context.Context, address string) (conn net.Conn, err error) {
	for range reservedTries {
		d := net.Dialer{LocalAddr: &net.TCPAddr{Port: reservedLow + rand.IntN(reservedHigh-reservedLow+1)}}
		conn, err = d.DialContext(ctx, "tcp", address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			break
		}
	}
	return conn, err
}

// inTheWay reports whether another local port may do.
func inTheWay(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) ||
		errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// The privileged ports that clients take, and how many of them are tried.
const (
	reservedLow   = 665
	reservedHigh  = 1023
	reservedTries = 16
)

// first is a connection that waits to be used.
type first = atomic.Pointer[oncrpc.Conn]
