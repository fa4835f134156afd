package cases

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"urnic/conformance"
	"urnic/conformance/profile"
	"urnic/internal/test/leakcheck"
	"urnic/ulp/nfs"
	"urnic/ulp/nfs/nfsd"
	"urnic/ulp/nfs/vfs/memfs"
	"urnic/ulp/oncrpc"
)

// serveMount has a server of ours export /tree over TCP until the test ends. It returns the
// server's calls, and its address.
func serveMount(t *testing.T) (calls *oncrpc.Server, address string) {
	t.Helper()
	tree := memfs.New(memfs.Options{})
	files, err := nfsd.New(nfsd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	calls = oncrpc.NewServer(oncrpc.ServerConfig{})
	if err := errors.Join(files.AddExport(nfsd.Export{Path: "/tree", FS: tree, Squash: nfsd.SquashNone, Insecure: true}), files.Register(calls)); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		if err := errors.Join(calls.Close(), tree.Close()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	wg.Go(func() { _ = calls.ServeTCP(context.Background(), l) }) // until Close
	return calls, l.Addr().String()
}

// Our NFS client, which mounts again and again, breaks none of the rules for clients that
// its first calls show: the tester has no file system, and ends the mount with its first
// reply. The rest is seen of the transport alone, by TestOurRPCClientPasses.
func TestOurNFSClientPasses(t *testing.T) {
	leakcheck.Check(t)
	_, address := serveMount(t)
	_, mount, _ := net.SplitHostPort(address)
	l := listen(t)
	dev, beside := openDevice(t)
	beside(func(ctx context.Context) {
		cfg := nfs.Config{Device: dev, Retry: oncrpc.ClientConfig{Backoff: time.Millisecond, BackoffMost: 10 * time.Millisecond}}
		for ctx.Err() == nil {
			c, err := nfs.Dial(ctx, "nfs+rdma://"+l.Addr().String()+"/tree?mountport="+mount, cfg)
			if err == nil {
				_ = c.Close() // it was never asked for anything
			}
		}
	})
	// Some cases wait for a call that is not to come, so an answer has little time. Verdicts that
	// hang on it are no longer reached, or are wrong, on a slow machine; then it has more.
	for answer := 3 * time.Second; ; answer *= 4 {
		r := conformance.Runner{
			Groups: All(), Profile: profile.NewRPCRDMA("", l, answer, profile.Export{}),
			Options: conformance.Options{Strict: true, Timeout: answer, Quiet: quiet},
		}
		report, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := report.Totals
		seen := n.Pass > n.Inconclusive
		if seen && n.Fail == 0 {
			return
		}
		complain, last := t.Logf, answer >= time.Minute/2
		if last {
			complain = t.Errorf
		}
		for _, res := range report.Results {
			if res.Verdict == conformance.Fail {
				complain("%s: %s", res.Case, res.Reason)
			}
		}
		if !seen {
			complain("the client is hardly seen: %+v", n)
		}
		if last {
			return
		}
	}
}
