package conformance

import (
	"context"
	"strings"
	"testing"
)

func TestOutcomeOfARun(t *testing.T) {
	for name, c := range map[string]struct {
		report   Report
		want     Outcome
		headline string
	}{
		"all passed":            {Report{Totals: Totals{Pass: 3, Skipped: 1}}, Passed, "none of 4 cases failed"},
		"one failed":            {Report{Totals: Totals{Pass: 3, Fail: 1}}, Failed, "1 of 4 cases failed"},
		"none passed":           {Report{Totals: Totals{Inconclusive: 2, Skipped: 1}}, Undecided, "nothing is known"},
		"nothing run":           {Report{}, Undecided, "nothing is known"},
		"inconclusive":          {Report{Totals: Totals{Pass: 3, Inconclusive: 1}}, Passed, "none of 4"},
		"inconclusive, strict":  {Report{Strict: true, Totals: Totals{Pass: 3, Inconclusive: 1}}, Undecided, "1 of 4 cases are inconclusive"},
		"interrupted":           {Report{Interrupted: true, Totals: Totals{Pass: 3}}, Interrupted, "stopped before its end"},
		"lost, after a failure": {Report{Lost: "the target has gone", Totals: Totals{Pass: 3, Fail: 1}}, TargetLost, "the target has gone"},
	} {
		if got, why := c.report.Outcome(), c.report.Headline(); got != c.want || !strings.Contains(why, c.headline) {
			t.Errorf("%s: %s, %q; want %s, %q", name, got, why, c.want, c.headline)
		}
	}
}

func TestARunThatIsStoppedHasNotPassed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := Runner{Profile: newDeaf(t), Groups: []Group{{Cases: []Case{
		{Clause: must, Name: "a", Roles: Responder, Run: func(*T) { cancel() }},
	}}}}
	report, err := r.Run(ctx)
	if err != nil || report.Outcome() != Interrupted {
		t.Errorf("%s, %v", report.Outcome(), err)
	}
}
