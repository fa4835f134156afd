package nfsd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/oncrpc"
)

// tool returns a program that others wrote: where there is none the test is left out, but
// not where it has to be.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: install libnfs-utils", err)
		}
		t.Skipf("%v: install libnfs-utils to test against libnfs", err)
	}
	return path
}

// libnfs is a client that others wrote.
func TestLibNFS(t *testing.T) {
	ls, cat, cp := tool(t, "nfs-ls"), tool(t, "nfs-cat"), tool(t, "nfs-cp")
	b := on(t, nfsd.Config{}, nfsd.Export{Squash: nfsd.SquashNone})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.rpc.ServeTCP(context.Background(), l) }()
	t.Cleanup(func() {
		_ = b.rpc.Close()
		if err := <-served; !errors.Is(err, oncrpc.ErrClosed) {
			t.Errorf("serving ended with %v", err)
		}
	})
	dir := b.mkdir(root, b.root, "dir", 0o777)
	for i := range 300 {
		b.create(root, dir, fmt.Sprintf("file %d %s", i, strings.Repeat("x", i%100)), 0o644)
	}
	port := l.Addr().(*net.TCPAddr).Port
	url := func(path string) string {
		return fmt.Sprintf("nfs://127.0.0.1/tree%s?nfsport=%d&mountport=%d", path, port, port)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v: %s%s", args, err, out.String(), errs.String())
		}
		return out.String()
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 200000)
	local := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(local, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run(cp, local, url("/dir/copy"))
	if got := run(cat, url("/dir/copy")); got != string(data) {
		t.Errorf("%d octets come back of %d", len(got), len(data))
	}
	if r := ok(b, b.lookup(root, dir, "copy")); r.Attr.Attr.Size != uint64(len(data)) {
		t.Errorf("the copy is %+v", r.Attr)
	}
	list := run(ls, "-R", url(""))
	for _, e := range b.list(root, dir, 1<<16) {
		if e.Name != "." && e.Name != ".." && !strings.Contains(list, e.Name+"\n") {
			t.Errorf("%q is not listed", e.Name)
		}
	}
	if out, err := exec.CommandContext(t.Context(), ls, url("/none")).CombinedOutput(); err == nil {
		t.Errorf("what is not there is listed: %s", out)
	}
}
