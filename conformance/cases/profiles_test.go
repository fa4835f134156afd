package cases

import (
	"context"
	"net"
	"sync"
	"testing"

	"urnic/conformance"
	"urnic/conformance/profile"
	"urnic/internal/leakcheck"
	"urnic/internal/rping"
	"urnic/rnic"
)

// The cases that need no test service pass on our stack with rping too, and with
// nothing but a port.
func TestOurStackPassesWithRping(t *testing.T) {
	leakcheck.Check(t)
	l := listen(t)
	checkProfile(t, profile.NewRping(startRping(t, l.Addr().String()), l, patience))
}

func TestOurStackPassesWithAPortOnly(t *testing.T) {
	leakcheck.Check(t)
	l := listen(t)
	checkProfile(t, profile.NewRaw(startRping(t, l.Addr().String()), l, patience))
}

func checkProfile(t *testing.T, p conformance.Profile) {
	t.Helper()
	r := conformance.Runner{
		Groups: All(), Profile: p,
		Options: conformance.Options{Strict: true, Timeout: patience, Quiet: quiet},
	}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range report.Results {
		if res.Verdict == conformance.Fail || res.Verdict == conformance.Inconclusive {
			t.Errorf("%s as %s: %s: %s", res.Case, res.Role, res.Verdict, res.Reason)
			for _, e := range res.Exchange {
				t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
			}
		}
	}
	t.Logf("%d results in %v: %+v", len(report.Results), report.Duration, report.Totals)
	if report.Totals.Pass == 0 {
		t.Error("nothing was tried")
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// startRping runs what a person would run on the target: rping -s -P, whose address
// it returns, and rping -c again and again to the tester.
func startRping(t *testing.T, tester string) string {
	t.Helper()
	dev, err := rnic.Open(rnic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pd, err := dev.AllocPD()
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
		dev.Close()
		wg.Wait()
	})
	depths := rnic.ConnParam{IRD: 1, ORD: 1}
	wg.Go(func() {
		for {
			req, err := l.Accept(ctx)
			if err != nil {
				return
			}
			wg.Go(func() {
				e, err := rping.NewEnd(pd, rping.Options{Size: rping.DefaultSize})
				if err != nil {
					req.Close()
					return
				}
				defer e.Close()
				if req.Accept(ctx, e.QP, depths) == nil {
					_ = e.Server(ctx) // how it fares, the tester tells
				}
			})
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			e, err := rping.NewEnd(pd, rping.Options{Size: rping.DefaultSize, Count: 1})
			if err != nil {
				return
			}
			if e.QP.Connect(ctx, tester, depths) == nil {
				_ = e.Client(ctx)
			}
			e.Close()
		}
	})
	return l.Addr().String()
}
