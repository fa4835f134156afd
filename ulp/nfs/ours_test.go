package nfs_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/nfstest"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/dirfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// A server is one of ours, over TCP and RDMA, that can be killed.
type server struct {
	t    testing.TB
	open func() vfs.FS // what is served: the same files, each time
	tree vfs.FS

	tcp, rdma string // addresses
	device    *rnic.Device
	listener  *rnic.Listener
	rpc       *oncrpc.Server
	responder *rpcrdma.Server
	serving   chan error
}

// serve serves a tree as /export until the test ends.
func serve(t testing.TB, open func() vfs.FS) *server {
	t.Helper()
	return serveAt(t, "127.0.0.1:0", open)
}

// serveAt is serve at another address.
func serveAt(t testing.TB, address string, open func() vfs.FS) *server {
	t.Helper()
	s := &server{t: t, open: open, tcp: address}
	var err error
	if s.device, err = rnic.Open(rnic.Config{Name: "server"}); err != nil {
		t.Fatal(err)
	}
	if s.listener, err = s.device.Listen(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	s.rdma = s.listener.Addr().String()
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.kill(), s.listener.Close(), s.device.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) start(ctx context.Context) error {
	program, err := nfsd.New(nfsd.Config{Key: []byte("the same when it starts again")})
	if err != nil {
		return err
	}
	s.tree = s.open()
	s.rpc = oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := errors.Join(program.AddExport(nfsd.Export{Path: "/export", FS: s.tree, Squash: nfsd.SquashNone, Insecure: true}), program.Register(s.rpc)); err != nil {
		return err
	}
	if s.responder, err = rpcrdma.NewServer(s.rpc, rpcrdma.Config{}); err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.tcp)
	if err != nil {
		return err
	}
	s.tcp = l.Addr().String()
	s.serving = make(chan error, 2)
	go func() { s.serving <- s.rpc.ServeTCP(context.Background(), l) }()
	go func() { s.serving <- s.responder.Serve(context.Background(), s.listener) }()
	return nil
}

// kill ends the server at once, with the calls that it has.
func (s *server) kill() error {
	err := errors.Join(s.rpc.Close(), s.responder.Close())
	for range 2 {
		if e := <-s.serving; e != nil && !errors.Is(e, oncrpc.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, s.tree.Close())
}

func (s *server) restart(ctx context.Context) error { return errors.Join(s.kill(), s.start(ctx)) }

// url returns the address of the tree.
func (s *server) url(t nfs.Transport) string {
	if t == nfs.TCP {
		return "nfs://" + s.tcp + "/export"
	}
	_, port, _ := net.SplitHostPort(s.tcp)
	return "nfs+rdma://" + s.rdma + "/export?mountport=" + port
}

// config is what clients of a test have: they are sure to try again soon.
func (s *server) config(device *rnic.Device) nfs.Config {
	return nfs.Config{
		Device: device,
		Retry:  oncrpc.ClientConfig{Backoff: time.Millisecond, BackoffMost: 10 * time.Millisecond},
	}
}

// openDevice opens an RNIC for clients.
func openDevice(t testing.TB) *rnic.Device {
	t.Helper()
	d, err := rnic.Open(rnic.Config{Name: "client"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// A kept is a tree that outlives who serves it.
type kept struct{ *memfs.FS }

func (kept) Close() error { return nil }

// inMemory returns a tree in memory.
func inMemory(testing.TB) func() vfs.FS {
	tree := kept{memfs.New(memfs.Options{Mode: 0o777})}
	return func() vfs.FS { return tree }
}

// inDirectory returns a tree in a directory of this machine.
func inDirectory(t testing.TB) func() vfs.FS {
	dir := t.TempDir()
	return func() vfs.FS {
		tree, err := dirfs.New(dir, dirfs.Options{Async: true})
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
}

// The workload passes with our server, over both transports.
func TestOurs(t *testing.T) {
	for name, backend := range map[string]func(testing.TB) func() vfs.FS{"memory": inMemory, "directory": inDirectory} {
		for _, transport := range []nfs.Transport{nfs.TCP, nfs.RDMA} {
			t.Run(name+" over "+string(transport), func(t *testing.T) {
				s := serve(t, backend(t))
				device := openDevice(t)
				nfstest.Run(t, nfstest.Mount{
					Dial: func(ctx context.Context) (*nfs.Client, error) {
						return nfs.Dial(ctx, s.url(transport), s.config(device))
					},
					Restart:  s.restart,
					FileSize: fileSize,
					Names:    names,
				})
			})
		}
	}
}

// And over IPv6, with a server that falls silent and comes back.
func TestOursOverIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("this machine has no IPv6: %v", err)
		}
		t.Skipf("this machine has no IPv6: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, transport := range []nfs.Transport{nfs.TCP, nfs.RDMA} {
		t.Run(string(transport), func(t *testing.T) {
			s := serveAt(t, "[::1]:0", inMemory(t))
			device := openDevice(t)
			nfstest.Run(t, nfstest.Mount{
				Dial: func(ctx context.Context) (*nfs.Client, error) {
					return nfs.Dial(ctx, s.url(transport), s.config(device))
				},
				Restart:  s.restart,
				FileSize: 1 << 20,
				Names:    20,
			})
		})
	}
}

// A URL of a file mounts the export that it is in.
func TestDialFile(t *testing.T) {
	s := serve(t, inMemory(t))
	for _, transport := range []nfs.Transport{nfs.TCP, nfs.RDMA} {
		target, err := nfs.ParseURL(s.url(transport))
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"/export": ".", "/export/a/b": "a/b", "/export/": "."} {
			target.Path = path
			c, rest, err := nfs.DialFile(t.Context(), target.String(), s.config(openDevice(t)))
			if err != nil {
				t.Fatal(err)
			}
			if rest != want || c.Target().Path != "/export" {
				t.Errorf("%s is %s in %s", path, rest, c.Target().Path)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		target.Path = "/elsewhere"
		if _, _, err := nfs.DialFile(t.Context(), target.String(), s.config(openDevice(t))); !errors.Is(err, nfs3.MountErrNoEnt) && !errors.Is(err, nfs3.MountErrAcces) || !strings.Contains(err.Error(), target.String()+" ") {
			t.Errorf("what is not exported: %v", err)
		}
	}
}

// A server that is not there is told of at once, however patient calls are.
func TestDialTellsAtOnce(t *testing.T) {
	port := fmt.Sprint(loopback.Port(t))
	address := net.JoinHostPort("127.0.0.1", port)
	for _, scheme := range []string{"nfs", "nfs+rdma"} {
		_, err := nfs.Dial(t.Context(), scheme+"://"+address+"/x?mountport="+port, nfs.Config{Device: openDevice(t)})
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
