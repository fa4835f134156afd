package cases

import (
	"slices"
	"testing"

	"urnic/conformance"
	"urnic/conformance/profile"
	"urnic/internal/test/leakcheck"
)

// tryServer runs the cases for servers, or some of them, and returns the report.
func tryServer(t *testing.T, address string, only ...string) *conformance.Report {
	t.Helper()
	r := conformance.Runner{
		Groups:  All(),
		Profile: profile.NewRPCRDMA(address, nil, patience, profile.Export{Handle: scriptRoot}),
		Options: conformance.Options{Strict: true, Timeout: patience, Quiet: 8 * quiet, Only: only},
	}
	report, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The cases for servers pass on one that does all as the RFCs say.
func TestServerByTheTestersCodecPasses(t *testing.T) {
	leakcheck.Check(t)
	report := tryServer(t, startScript(t, ""))
	for _, res := range report.Results {
		if res.Role != conformance.Responder.String() {
			continue
		}
		if res.Verdict == conformance.Pass || res.Verdict == conformance.Skipped {
			continue
		}
		t.Errorf("%s: %s: %s", res.Case, res.Verdict, res.Reason)
		for _, e := range res.Exchange {
			t.Logf("%v %s %d: %s; %s", e.At, e.By, e.Conn, e.What, e.Wrong)
		}
	}
	t.Logf("%d results in %v: %+v", len(report.Results), report.Duration, report.Totals)
}

// Each fault of a server is found by a case of the clause that it breaks.
func TestFaultsOfAServerAreFound(t *testing.T) {
	leakcheck.Check(t)
	for fault, clause := range map[string]string{
		"no-credits":               "rfc8166-3.3.1-2",
		"credits-without-receives": "rfc8166-3.3.1-3/as-many-calls-as-granted",
		"threshold-of-8192":        "rfc8166-3.3.3-4",
		"error-with-version-1":     "rfc8166-4.5-5",
		"error-without-xid":        "rfc8166-4.5-4",
		"error-chunk-always":       "rfc8166-4.5.1-1",
		"range-from-2":             "rfc8166-4.5.1-1",
		"any-version":              "rfc8166-4.5.1-1",
		"answers-short-messages":   "rfc8166-4.5-1",
		"answers-errors":           "rfc8166-4.2.4-4",
		"answers-done":             "rfc8166-4.6.2-2",
		"all-is-eligible":          "rfc8166-6.1-2",
		"roundup-in-chunk":         "rfc8166-3.4.6.2-2",
		"roundup-in-stream":        "rfc8166-3.4.4.4-2",
		"data-inline-too":          "rfc8166-4.3.2-1",
		"chunk-lengths-unchanged":  "rfc8166-3.4.6-2",
		"no-write-list-back":       "rfc8166-4.3.2.2-3",
		"no-reply-chunk-back":      "rfc8166-4.3.3-2",
		"read-list-back":           "rfc8166-4.3.1-1",
		"always-invalidates":       "rfc8797-4.1-2",
		"invalidates-any":          "rfc8797-4.1-1",
		"reserved-bits":            "rfc8797-4-2",
		"sink-open-to-all":         "rfc8166-8.1-1",
	} {
		t.Run(fault, func(t *testing.T) {
			report := tryServer(t, startScript(t, fault), clause)
			found := slices.ContainsFunc(report.Results, func(res conformance.Result) bool { return res.Verdict == conformance.Fail })
			if !found {
				for _, res := range report.Results {
					t.Errorf("%s: %s: %s", res.Case, res.Verdict, res.Reason)
				}
			}
		})
	}
}
