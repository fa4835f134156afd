package conformance

import (
	"strings"
	"testing"

	"urnic/conformance/service"
)

// Over RDP, cases that clauses of MPA name are not run, and those that need MPA are skipped with the reason; cases for RDP
// alone are not run over TCP. The clauses say why.
func TestCasesAreForTheirLowerLayers(t *testing.T) {
	nothing := func(*T) {}
	const mpa, order = "rfc5044-4.4-12", "rfc5041-5.3-4"
	all := []Case{
		{Clause: must, Name: "any", Roles: Responder, Run: nothing},
		{Clause: must, Name: "needs-mpa", Roles: Responder, MPA: "magic", Run: func(t *T) { t.Fail("nothing", "a run") }},
		{Clause: mpa, Name: "framing", Roles: Responder, Run: nothing},
		{Clause: order, Name: "order", Roles: Responder, Over: RDP, Run: nothing},
	}
	for _, tt := range []struct {
		llp    LLP
		totals Totals
		states map[string]ClauseState
	}{
		{RDP, Totals{Pass: 2, Skipped: 1}, map[string]ClauseState{
			must: {State: Kept}, order: {State: Kept}, mpa: {State: OtherLLP, Reason: "MPA over TCP"},
		}},
		{TCP, Totals{Pass: 2, Fail: 1}, map[string]ClauseState{
			must: {State: Broken}, mpa: {State: Kept}, order: {State: OtherLLP, Reason: "--llp rdp"},
		}},
	} {
		d := newDeaf(t)
		d.llp = tt.llp
		report := runCases(t, d, Options{}, all...)
		if report.LLP != tt.llp || report.Totals != tt.totals {
			t.Errorf("over %s: %s, %+v; want %+v", tt.llp, report.LLP, report.Totals, tt.totals)
		}
		for _, s := range report.Clauses {
			want, ok := tt.states[s.Clause]
			if ok && (s.State != want.State || !strings.Contains(s.Reason, want.Reason)) {
				t.Errorf("over %s: %s is %+v; want %+v", tt.llp, s.Clause, s, want)
			}
		}
		n := 0
		for _, c := range report.Coverage {
			n += c.Binding.OtherLLP + c.Advised.OtherLLP
		}
		if n != 1 {
			t.Errorf("over %s: %d clauses are for another lower layer", tt.llp, n)
		}
		for _, r := range report.Results {
			if r.Verdict == Skipped && !strings.Contains(r.Reason, "over RDP there is no magic") {
				t.Errorf("%s is skipped: %s", r.Case, r.Reason)
			}
		}
	}
}

// A case that asks for what only MPA over TCP has is skipped over RDP when it opens its connection.
func TestSetupsThatOnlyMPAHasAreSkippedOverRDP(t *testing.T) {
	for what, setup := range map[string]Setup{
		"markers":                {Markers: true},
		"choice of CRCs":         {Start: service.Start{CRC: "off"}},
		"start-up of revision 1": {Revision: 1},
		"ready-to-receive":       {Start: service.Start{RTR: []string{"write"}}},
		"segment size of TCP":    {MSS: 600},
	} {
		d := newDeaf(t)
		d.llp = RDP
		report := runCases(t, d, Options{}, Case{Clause: must, Name: "a", Roles: Responder, Run: func(t *T) { t.Dial(setup) }})
		if r := report.Results[0]; r.Verdict != Skipped || !strings.Contains(r.Reason, "over RDP there is no "+what) {
			t.Errorf("%s: %s, %s", what, r.Verdict, r.Reason)
		}
	}
}
