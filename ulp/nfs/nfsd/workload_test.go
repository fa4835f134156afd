package nfsd_test

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/nfstest"
	"urnic/ulp/nfs/vfs"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
)

// An instance is a server that can be killed, and another one put in its place.
type instance struct {
	t      *testing.T
	export nfsd.Export
	addr   string // the same for all
	rpc    *oncrpc.Server
	served sync.WaitGroup
}

func (i *instance) start() error {
	s, err := nfsd.New(nfsd.Config{Key: []byte("key")})
	if err != nil {
		return err
	}
	if err := s.AddExport(i.export); err != nil {
		return err
	}
	i.rpc = oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := s.Register(i.rpc); err != nil {
		return err
	}
	l, err := net.Listen("tcp", i.addr)
	if err != nil {
		return err
	}
	i.addr = l.Addr().String()
	rpc := i.rpc
	i.served.Go(func() { _ = rpc.ServeTCP(context.Background(), l) })
	return nil
}

func (i *instance) kill() {
	if err := i.rpc.Close(); err != nil {
		i.t.Error(err)
	}
	i.served.Wait()
}

// workload does what programs do with files of fs, over TCP.
func workload(t *testing.T, fs vfs.FS) {
	i := &instance{t: t, export: nfsd.Export{Path: "/tree", FS: fs, Squash: nfsd.SquashNone}, addr: "127.0.0.1:0"}
	if uid := os.Geteuid(); uid > 0 {
		i.export.Squash, i.export.AnonUID, i.export.AnonGID = nfsd.SquashAll, uint32(uid), uint32(os.Getegid())
	}
	if err := i.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.kill() })
	addr := i.addr
	nfstest.Run(t, nfstest.Mount{
		Dial: func(ctx context.Context) (*nfs.Client, error) {
			return nfs.Dial(ctx, "nfs://"+addr+"/tree", nfs.Config{Retry: oncrpc.ClientConfig{Backoff: time.Millisecond}})
		},
		Restart: func(context.Context) error {
			i.kill()
			return i.start()
		},
		FileSize: 4 << 20,
		Names:    300,
	})
}

func TestWorkloadInMemory(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	defer fs.Close()
	workload(t, fs)
}
