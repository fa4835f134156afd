package cases

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"urnic/conformance"
	"urnic/conformance/mutants/rpcpeer"
	"urnic/conformance/profile"
	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// openDevice opens an RNIC. What is run beside the test has a context that ends with it.
func openDevice(t *testing.T) (dev *rnic.Device, beside func(run func(ctx context.Context))) {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev, func(run func(ctx context.Context)) { wg.Go(func() { run(ctx) }) }
}

// startServer serves calls on our transport, and returns where.
func startServer(t *testing.T, service oncrpc.Service) string {
	t.Helper()
	dev, beside := openDevice(t)
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	beside(func(ctx context.Context) {
		if err := rpcrdma.Serve(ctx, l, service, rpcrdma.Config{}); !errors.Is(err, context.Canceled) {
			t.Errorf("the server: %v", err)
		}
	})
	return l.Addr().String()
}

// Our own transport keeps what the cases demand of servers.
func TestOurRPCServerPasses(t *testing.T) {
	leakcheck.Check(t)
	address := startServer(t, rpcpeer.NewService())
	checkRPC(t, profile.NewRPCRDMA(address, nil, patience, profile.Export{Handle: []byte(rpcpeer.Root)}))
}

// So does our NFS server on it, whose file handle comes by MOUNT, over TCP.
func TestOurNFSServerPasses(t *testing.T) {
	leakcheck.Check(t)
	calls, mount := serveMount(t)
	export := profile.Export{Path: "/tree", Mount: mount}
	checkRPC(t, profile.NewRPCRDMA(startServer(t, calls), nil, patience, export))
}

// checkRPC runs the cases of RPC-over-RDMA that the profile is for. Each has to pass, but
// for one that is for targets without remote invalidation.
func checkRPC(t *testing.T, p conformance.Profile) {
	t.Helper()
	r := conformance.Runner{
		Groups: All(), Profile: p,
		Options: conformance.Options{Strict: true, Timeout: patience, Quiet: quiet},
	}
	if *only != "" {
		r.Options.Only = strings.Split(*only, ",")
	}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	_, roles := p.Offers()
	for _, res := range report.Results {
		if res.Role != roles.String() || res.Case == "rfc8797-4.1-2/target-without-r" {
			continue
		}
		tried++
		t.Run(res.Case, func(t *testing.T) {
			if res.Verdict != conformance.Pass {
				t.Errorf("%s: %s", res.Verdict, res.Reason)
				for _, e := range res.Exchange {
					t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
				}
			}
		})
	}
	t.Logf("%d of %d results in %v", tried, len(report.Results), report.Duration)
}

// startClient runs a client on our transport, of several callers, that connects again and
// again.
func startClient(t *testing.T, address string) {
	t.Helper()
	dev, beside := openDevice(t)
	beside(func(ctx context.Context) { rpcpeer.Call(ctx, dev, address) })
}

// So it does of clients.
func TestOurRPCClientPasses(t *testing.T) {
	leakcheck.Check(t)
	l := listen(t)
	startClient(t, l.Addr().String())
	checkRPC(t, profile.NewRPCRDMA("", l, patience, profile.Export{Handle: []byte(rpcpeer.Root)}))
}
