package conformance

import (
	"strings"
	"testing"
)

// What the cases test is counted by clause; a clause is kept if all of its cases
// pass, and broken if one fails.
func TestCoverage(t *testing.T) {
	pass := Case{Clause: must, Name: "a", Roles: Responder, Run: func(*T) {}}
	fail := Case{Clause: "rfc5041-7.1-8", Name: "b", Also: []string{must}, Roles: Responder, Run: func(t *T) { t.Fail("a", "b") }}
	report := runCases(t, newDeaf(t), Options{}, pass, fail)
	for _, c := range report.Coverage {
		if c.RFC != "RFC 5041" {
			continue
		}
		if c.Binding.Tested != 2 || c.Binding.Broken != 2 || c.Binding.Kept != 0 || c.Totals != (Totals{Pass: 1, Fail: 1}) {
			t.Errorf("%+v", c)
		}
		if c.Binding.Open == 0 || c.Binding.Untestable == 0 {
			t.Errorf("%+v", c)
		}
		return
	}
	t.Error("RFC 5041 is missing")
}

// A run counts what it exercised, and says of each other clause why it did not.
func TestARunTellsOfTheClausesThatItDidNotExercise(t *testing.T) {
	nothing := func(*T) {}
	const elsewhere, unselected, spared, service, rpc = "rfc5041-7.1-8", "rfc5041-7.1-4", "rfc5041-4.1-9", "rfc5041-5.2-9", "rfc8166-3.3.1-1"
	report := runCases(t, newDeaf(t), Options{Spare: true, Only: []string{must, elsewhere, spared, service, rpc}},
		Case{Clause: must, Name: "a", Roles: Responder, Run: nothing},
		Case{Clause: must, Name: "needy", Roles: Responder, Needs: NeedService, Run: nothing},
		Case{Clause: elsewhere, Name: "b", Roles: Responder, Needs: NeedBuffer, Run: nothing},
		Case{Clause: unselected, Name: "c", Roles: Responder, Run: nothing},
		Case{Clause: spared, Name: "d", Roles: Responder, Harm: "it crashes", Run: nothing},
		Case{Clause: service, Name: "e", Roles: Responder, Needs: NeedService, Run: nothing},
		Case{Clause: rpc, Name: "f", Roles: Responder, Needs: NeedRPC, Run: nothing},
	)
	states := map[string]ClauseState{}
	for _, s := range report.Clauses {
		states[s.Clause] = s
	}
	for id, want := range map[string]ClauseState{
		must:       {State: Kept},
		elsewhere:  {State: OtherProfile, Reason: "profiles rping and urnic: they need a buffer"},
		unselected: {State: NotSelected, Reason: "--only"},
		spared:     {State: NotTried, Reason: "it crashes"},
		service:    {State: OtherProfile, Reason: "the profile urnic"},
		rpc:        {State: OtherProfile, Reason: "the profile rpcrdma"},
		should:     {State: Open, Reason: "no case"},
	} {
		if got := states[id]; got.State != want.State || !strings.Contains(got.Reason, want.Reason) {
			t.Errorf("%s: %+v; want %+v", id, got, want)
		}
	}
	var sum Clauses
	for _, c := range report.Coverage {
		sum = sum.Plus(c.Binding).Plus(c.Advised)
	}
	if sum.Run != 1 || sum.Kept != 1 || sum.Unknown != 0 || sum.OtherProfile != 3 || sum.NotSelected != 1 || sum.NotTried != 1 || sum.Tested != 6 {
		t.Errorf("%+v", sum)
	}
}
