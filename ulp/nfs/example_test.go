package nfs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
)

// A server of a tree in memory, and a client that writes a file and lists the tree.
func Example() {
	if err := example(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// . directory
	// dir directory
	// dir/file 5 bytes
}

func example() error {
	ctx := context.Background()
	server := oncrpc.NewServer(oncrpc.ServerConfig{})
	defer server.Close()
	program, err := nfsd.New(nfsd.Config{})
	if err != nil {
		return err
	}
	// Insecure: any user of this host may call, and claim to be any user.
	tree := nfsd.Export{Path: "/export", FS: memfs.New(memfs.Options{}), Squash: nfsd.SquashNone, Insecure: true}
	if err := program.AddExport(tree); err != nil {
		return err
	}
	if err := program.Register(server); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTCP(ctx, l) }()

	c, err := nfs.Dial(ctx, "nfs://"+l.Addr().String()+"/export", nfs.Config{Credential: &oncrpc.Sys{}})
	if err != nil {
		return err
	}
	if err := c.Mkdir(ctx, "dir", 0o755); err != nil {
		return err
	}
	if err := c.WriteFile(ctx, "dir/file", []byte("hello"), 0o644); err != nil {
		return err
	}
	err = fs.WalkDir(c.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			fmt.Println(name, "directory")
		} else {
			fmt.Println(name, info.Size(), "bytes")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(c.Close(), server.Close()); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, oncrpc.ErrClosed) {
		return err
	}
	return nil
}
