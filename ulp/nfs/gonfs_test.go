package nfs_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	gonfs "github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfstest"
)

// A killer is a listener whose connections end with it, as others' servers have no end.
type killer struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (k *killer) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if err == nil {
		k.mu.Lock()
		k.conns = append(k.conns, c)
		k.mu.Unlock()
	}
	return c, err
}

func (k *killer) kill() {
	_ = k.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		_ = c.Close()
	}
}

// An osTree is a directory of this machine, with attributes that can be changed.
type osTree struct {
	billy.Filesystem
	dir string
}

func (o osTree) path(name string) string { return filepath.Join(o.dir, name) }

func (o osTree) Chmod(name string, mode os.FileMode) error { return os.Chmod(o.path(name), mode) }
func (o osTree) Chown(name string, uid, gid int) error     { return os.Chown(o.path(name), uid, gid) }

func (o osTree) Lchown(name string, uid, gid int) error { return os.Lchown(o.path(name), uid, gid) }

func (o osTree) Chtimes(name string, atime, mtime time.Time) error {
	return os.Chtimes(o.path(name), atime, mtime)
}

// A handler lets go-nfs change attributes.
type handler struct{ gonfs.Handler }

func (handler) Change(fs billy.Filesystem) billy.Change { return fs.(osTree) }

// The workload passes with another server's NFSv3, as far as that goes: that of go-nfs,
// over a directory.
func TestGoNFS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tree := osTree{osfs.New(dir), dir}
	k := &killer{Listener: l}
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = gonfs.Serve(k, helpers.NewCachingHandler(handler{helpers.NewNullAuthHandler(tree)}, 1<<16))
	})
	t.Cleanup(func() {
		k.kill()
		serving.Wait()
	})
	nfstest.Run(t, nfstest.Mount{
		Dial: func(ctx context.Context) (*nfs.Client, error) {
			return nfs.Dial(ctx, "nfs://"+l.Addr().String()+"/mount", nfs.Config{})
		},
		FileSize: 8 << 20,
		Names:    500,
		Lacks:    nfstest.HardLinks | nfstest.FIFOs | nfstest.Identity | nfstest.AccessTimes | nfstest.Statuses | nfstest.Statistics,
	})
}
