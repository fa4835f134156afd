//go:build !race

// With the race detector, 65,552 Read Requests over RDP take minutes; rdpllp and rnic run with it over RDP.

package cases

import (
	"strings"
	"testing"

	"urnic/conformance"
	"urnic/conformance/profile"
	"urnic/conformance/rdpconn"
	testserver "urnic/conformance/service/server"
	"urnic/internal/program/rping"
	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/ulp/rdp/rdpllp"
)

// Our own stack keeps what the cases demand over RDP too, in both roles. Those are skipped that need what only MPA has, and
// no others.
func TestOurStackPassesOverRDP(t *testing.T) {
	leakcheck.Check(t)
	address := serve(t, testserver.Options{Device: rnic.Config{LowerLayer: rdpllp.New(rdpllp.Config{})}})
	r := conformance.Runner{
		Groups: All(), Profile: profile.NewUrnic(address, "", patience).OverRDP(),
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
		skipped := res.Verdict == conformance.Skipped && strings.HasPrefix(res.Reason, "over RDP there is no ")
		if res.Verdict == conformance.Pass || skipped {
			continue
		}
		t.Errorf("%s as %s: %s: %s", res.Case, res.Role, res.Verdict, res.Reason)
		for _, e := range res.Exchange {
			t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
		}
	}
	if *only == "" && (report.Totals.Pass < 2000 || report.Totals.Skipped > 50) {
		t.Error("too few cases were tried")
	}
	t.Logf("%d results in %v: %+v", len(report.Results), report.Duration, report.Totals)
}

// The same holds with rping, and with nothing but a port.
func TestOurStackPassesWithRpingOverRDP(t *testing.T) {
	leakcheck.Check(t)
	l, address := rpingOverRDP(t)
	checkProfile(t, profile.NewRping(address, l, patience, 0).OverRDP())
}

func TestOurStackPassesWithAPortOnlyOverRDP(t *testing.T) {
	leakcheck.Check(t)
	l, address := rpingOverRDP(t)
	checkProfile(t, profile.NewRaw(address, l, patience).OverRDP())
}

// rpingOverRDP is startRping over RDP, with the listener that its client connects to.
func rpingOverRDP(t *testing.T) (l *rdpconn.Listener, address string) {
	t.Helper()
	l, err := rdpconn.Listen(t.Context(), "127.0.0.1:0", rdpconn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, startRping(t, l.Addr().String(), rping.DefaultSize, rnic.Config{LowerLayer: rdpllp.New(rdpllp.Config{})})
}
