package cases

import (
	"context"
	"errors"
	"flag"
	"net"
	"strings"
	"testing"
	"time"

	"urnic/conformance"
	"urnic/conformance/profile"
	testserver "urnic/conformance/service/server"
	"urnic/internal/test/leakcheck"
)

var (
	only  = flag.String("only", "", "the cases to run, by ID, clause or group, with commas between them")
	times = flag.Int("times", 1, "how often to run them")
)

// Our own stack keeps what the cases demand, in both roles: each passes, none is
// skipped. They are run as often as -times says, with the same verdicts.
func TestOurStackPasses(t *testing.T) {
	leakcheck.Check(t)
	address := serve(t, testserver.Options{})
	for range *times {
		r := conformance.Runner{
			Groups: All(), Profile: profile.NewUrnic(address, "", patience),
			Options: conformance.Options{Strict: true, Timeout: patience, Quiet: quiet, Jobs: jobs},
		}
		if *only != "" {
			r.Options.Only = strings.Split(*only, ",")
		}
		report, err := r.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range report.Results {
			t.Run(res.Case+"/"+res.Role, func(t *testing.T) {
				if res.Verdict != conformance.Pass {
					t.Errorf("%s: %s", res.Verdict, res.Reason)
					for _, e := range res.Exchange {
						t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
					}
				}
			})
		}
		t.Logf("%d results in %v: %+v", len(report.Results), report.Duration.Round(time.Millisecond), report.Totals)
	}
}

// An answer may take long on a loaded machine; where none may come, that is not
// waited for as long.
const (
	patience = time.Minute
	quiet    = 250 * time.Millisecond
	// jobs keeps processors busy, though many cases wait for what may not come.
	jobs = 2 * conformance.DefaultJobs
)

// serve runs the test service on our stack, and returns its address.
func serve(t *testing.T, o testserver.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- testserver.Serve(ctx, l, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the service: %v", err)
		}
	})
	return l.Addr().String()
}
