package nfs_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// An unreduced server leaves all that is eligible in the stream.
type unreduced struct {
	oncrpc.Service
	calls atomic.Int64
}

func (s *unreduced) Serve(ctx context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	s.calls.Add(1)
	var e xdr.Encoder
	if err := s.Service.Serve(ctx, x, &e); err != nil {
		return err
	}
	reply.Fixed(e.AppendTo(nil))
	return nil
}

// RFC 8166 §6.1: READ and READLINK of a server that does not use the Write chunks for their
// data fail for good. Whatever has none continues.
func TestDataThatTheServerDoesNotPlaceIsRefused(t *testing.T) {
	s := serve(t, inMemory(t))
	device := openDevice(t)
	fine, err := nfs.Dial(t.Context(), s.url(nfs.RDMA), s.config(device))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fine.Close() }()
	if err := errors.Join(
		fine.WriteFile(t.Context(), "file", []byte("some data"), 0o644),
		fine.Symlink(t.Context(), "file", "link"),
	); err != nil {
		t.Fatal(err)
	}

	l, err := s.device.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := &unreduced{Service: s.rpc}
	responder, err := rpcrdma.NewServer(service, rpcrdma.Config{})
	if err != nil {
		t.Fatal(err)
	}
	serving := make(chan error, 1)
	go func() { serving <- responder.Serve(context.Background(), l) }()
	defer func() {
		if err := errors.Join(responder.Close(), <-serving, l.Close()); err != nil {
			t.Error(err)
		}
	}()
	_, port, _ := net.SplitHostPort(s.rdma)
	_, other, _ := net.SplitHostPort(l.Addr().String())
	c, err := nfs.Dial(t.Context(), strings.Replace(s.url(nfs.RDMA), ":"+port, ":"+other, 1), s.config(device))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	f, err := c.Open(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	peers, calls := responder.Peers(), service.calls.Load()
	if n, err := f.ReadAt(make([]byte, 10_000), 0); n != 0 || !errors.Is(err, xdr.ErrUnmoved) {
		t.Errorf("%d bytes are read: %v", n, err)
	}
	if n := service.calls.Load() - calls; n != 1 {
		t.Errorf("%d calls are made for one READ", n)
	}
	if p, err := c.ReadFile(t.Context(), "file"); err != nil || string(p) != "some data" {
		t.Errorf("a READ of so little that it needs no Write chunk: %q, %v", p, err)
	}
	if target, err := c.Readlink(t.Context(), "link"); !errors.Is(err, xdr.ErrUnmoved) || target != "" {
		t.Errorf("a symbolic link: %q, %v", target, err)
	}
	if n, err := f.ReadAt(make([]byte, 10_000), 100); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %d bytes, %v", n, err)
	}
	if err := c.Remove(t.Context(), "file"); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadAt(make([]byte, 10_000), 0); !errors.Is(err, nfs3.ErrStale) {
		t.Errorf("a file that is gone: %v", err)
	}
	if got := responder.Peers(); len(peers) != 1 || len(got) != 1 || got[0] != peers[0] {
		t.Error("the connection was made anew")
	}
}
