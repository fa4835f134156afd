package rpcflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"urnic/internal/program/dissect"
	"urnic/rnic"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// bench serves a tree in memory over RDMA, and over TCP for MOUNT, until the test ends.
func bench(t *testing.T, device *rnic.Device, cfg rpcrdma.Config) (url string) {
	t.Helper()
	tree := memfs.New(memfs.Options{Mode: 0o777})
	program, err := nfsd.New(nfsd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rpc := oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := errors.Join(program.AddExport(nfsd.Export{Path: "/export", FS: tree, Squash: nfsd.SquashNone, Insecure: true}), program.Register(rpc)); err != nil {
		t.Fatal(err)
	}
	responder, err := rpcrdma.NewServer(rpc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	fast, err := device.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slow, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan error, 2)
	go func() { serving <- rpc.ServeTCP(context.Background(), slow) }()
	go func() { serving <- responder.Serve(context.Background(), fast) }()
	t.Cleanup(func() {
		err := errors.Join(rpc.Close(), responder.Close())
		for range 2 {
			if e := <-serving; e != nil && !errors.Is(e, oncrpc.ErrClosed) {
				err = errors.Join(err, e)
			}
		}
		if err := errors.Join(err, fast.Close(), tree.Close()); err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(slow.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "nfs+rdma://" + fast.Addr().String() + "/export?mountport=" + port
}

// work does with a tree what needs chunks of all kinds, and much at a time.
func work(t *testing.T, url string, cfg nfs.Config) {
	t.Helper()
	ctx := t.Context()
	c, err := nfs.Dial(ctx, url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	const workers = 6
	over := make(chan error, workers)
	for i := range workers {
		go func() {
			over <- func() error {
				dir := fmt.Sprintf("worker %d", i)
				if err := c.Mkdir(ctx, dir, 0o755); err != nil {
					return err
				}
				for n, size := range []int{0, 1, 5, 1000, 3000, 4095, 65536, 200001} {
					name := fmt.Sprintf("%s/%d", dir, n)
					if err := c.WriteFile(ctx, name, octets(size), 0o644); err != nil {
						return err
					}
					switch b, err := c.ReadFile(ctx, name); {
					case err != nil:
						return err
					case !bytes.Equal(b, octets(size)):
						return fmt.Errorf("%s: other bytes are read than were written", name)
					}
				}
				for n := range 20 {
					if err := c.Symlink(ctx, strings.Repeat("x", 50*n+1), fmt.Sprintf("%s/a link with a long name, number %d", dir, n)); err != nil {
						return err
					}
				}
				_, err1 := c.Readlink(ctx, dir+"/a link with a long name, number 19")
				_, err2 := c.ReadDir(ctx, dir)
				return errors.Join(err1, err2, c.Rename(ctx, dir+"/1", dir+"/2"), c.RemoveAll(ctx, dir))
			}()
		}()
	}
	for range workers {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
}

// What our client and our server do to each other breaks no rule, whichever side looks.
func TestOurNFSBreaksNoRule(t *testing.T) {
	for name, tc := range map[string]struct{ client, server rpcrdma.Config }{
		"as it is":             {},
		"without private data": {rpcrdma.Config{NoPrivate: true}, rpcrdma.Config{NoPrivate: true}},
		"small segments":       {rpcrdma.Config{MaxSegment: 10000, Roundup: true}, rpcrdma.Config{Credits: 3}},
		"no invalidation":      {rpcrdma.Config{NoInvalidate: true}, rpcrdma.Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen [2]bytes.Buffer
			t.Run("work", func(t *testing.T) {
				var devices [2]*rnic.Device
				for i := range devices {
					var err error
					if devices[i], err = rnic.Open(rnic.Config{Name: dissect.Side(i).String(), Record: &seen[i]}); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := devices[i].Close(); err != nil {
							t.Error(err)
						}
					})
				}
				work(t, bench(t, devices[server], tc.server), nfs.Config{Device: devices[client], RDMA: tc.client, ReadSize: 64 << 10, WriteSize: 64 << 10})
			})
			for i := range seen {
				f := analyze(t, seen[i].Bytes(), &Analyzer{All: true})
				f.want(t)
				calls, replies, chunks := 0, 0, 0
				for _, c := range f.Connections {
					s, ok := c.Upper.(*Summary)
					if !ok {
						t.Fatalf("connection %d carries no RPC-over-RDMA", c.Number)
					}
					calls += s.Calls
					replies += s.Replies
					for _, p := range s.Procedures() {
						chunks += p.ReadChunks + p.WriteChunks + p.LongCalls + p.LongReplies
					}
				}
				if calls < 500 || calls != replies || chunks < 60 || len(f.notes) > 0 {
					t.Errorf("seen by the %v: %d calls, %d replies, %d chunks; notes %q", dissect.Side(i), calls, replies, chunks, f.notes)
				}
			}
		})
	}
}
