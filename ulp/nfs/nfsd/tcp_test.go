package nfsd_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"urnic/ulp/nfs/nfs3"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/oncrpc"
)

// overTCP makes calls go through a client and a server on loopback.
func (b *bed) overTCP() {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.rpc.ServeTCP(context.Background(), l) }()
	c := oncrpc.NewClient(oncrpc.OverTCP(l.Addr().String(), oncrpc.TCPConfig{}), oncrpc.ClientConfig{})
	b.Cleanup(func() {
		if err := errors.Join(c.Close(), b.rpc.Close()); err != nil {
			b.Error(err)
		}
		if err := <-served; !errors.Is(err, oncrpc.ErrClosed) {
			b.Errorf("serving ended with %v", err)
		}
	})
	b.send = c.Call
}

func TestServesOverTCP(t *testing.T) {
	b := on(t, nfsd.Config{}, nfsd.Export{Squash: nfsd.SquashNone, Insecure: true})
	b.overTCP()
	dir := b.mkdir(alice, b.mount("/tree"), "dir", 0o755)
	file := b.create(alice, dir, "file", 0o644)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	w := ok(b, do[nfs3.WriteRes](b, alice, nfs3.ProcWrite, &nfs3.WriteArgs{File: file, Stable: nfs3.Unstable, Data: data}))
	c := ok(b, do[nfs3.CommitRes](b, alice, nfs3.ProcCommit, &nfs3.CommitArgs{File: file}))
	if int(w.Count) != len(data) || w.Verifier != c.Verifier {
		t.Errorf("%d bytes written, verifier %x, committed with %x", w.Count, w.Verifier, c.Verifier)
	}
	r := ok(b, b.read(alice, b.lookup(alice, dir, "file").Object, 0, uint32(len(data))))
	if !bytes.Equal(r.Data, data) || !r.EOF {
		t.Errorf("%d bytes read, %t", len(r.Data), r.EOF)
	}
	ok(b, do[nfs3.RenameRes](b, alice, nfs3.ProcRename, &nfs3.RenameArgs{From: at(dir, "file"), To: at(b.root, "other")}))
	ok(b, do[nfs3.WccRes](b, alice, nfs3.ProcRmdir, new(at(b.root, "dir"))))
	var res nfs3.Void
	if err := b.call(nil, nfs3.Program, 3, 0, &nfs3.Void{}, &res, 0); err != nil {
		t.Errorf("NULL: %v", err)
	}
	if err := b.rpc.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
