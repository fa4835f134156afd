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
	"urnic/internal/leakcheck"
	"urnic/rnic"
	"urnic/ulp/rpcrdma"
)

// startServer runs a server on our transport, and returns its address.
func startServer(t *testing.T) string {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := dev.Listen(t.Context(), "127.0.0.1:0")
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
	wg.Go(func() {
		if err := rpcrdma.Serve(ctx, l, rpcpeer.NewService(), rpcrdma.Config{}); !errors.Is(err, context.Canceled) {
			t.Errorf("the server: %v", err)
		}
	})
	return l.Addr().String()
}

// Our own transport keeps what the cases demand of servers.
func TestOurRPCServerPasses(t *testing.T) {
	leakcheck.Check(t)
	report := tryServer(t, startServer(t))
	for _, res := range report.Results {
		if res.Role != conformance.Responder.String() {
			continue
		}
		t.Run(res.Case, func(t *testing.T) {
			if res.Verdict == conformance.Fail || res.Verdict == conformance.Inconclusive {
				t.Errorf("%s: %s", res.Verdict, res.Reason)
				for _, e := range res.Exchange {
					t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
				}
			}
		})
	}
	t.Logf("%d results in %v: %+v", len(report.Results), report.Duration, report.Totals)
}

// startClient runs a client on our transport, of several callers, that connects again and
// again.
func startClient(t *testing.T, address string) {
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
	wg.Go(func() { rpcpeer.Call(ctx, dev, address) })
}

// So it does of clients.
func TestOurRPCClientPasses(t *testing.T) {
	leakcheck.Check(t)
	l := listen(t)
	startClient(t, l.Addr().String())
	r := conformance.Runner{
		Groups:  All(),
		Profile: profile.NewRPCRDMA("", l, patience, profile.Export{}),
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
	for _, res := range report.Results {
		if res.Role != conformance.Initiator.String() {
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
	t.Logf("%d results in %v: %+v", tried, report.Duration, report.Totals)
}
