package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"urnic/conformance"
	"urnic/conformance/cases"
	"urnic/conformance/mutants"
)

func result(name, role string, v conformance.Verdict, clauses ...string) conformance.Result {
	return conformance.Result{Case: name, Role: role, Verdict: v, Clauses: clauses}
}

func TestMutantIsCaughtByAFailureOfAClauseThatItBreaks(t *testing.T) {
	m := &mutants.Mutant{Name: "m", Fault: "It is wrong.", Clauses: []string{"c-1-1", "c-1-2"}}
	passed := map[string]bool{"c-1-2/x as responder": true, "c-1-1/y as responder": true, "d-1-1/z as initiator": true}
	for _, test := range []struct {
		name    string
		results []conformance.Result
		verdict verdict
		clause  string
		by      []string
		others  int
	}{
		{name: "nothing ran", verdict: missed},
		{name: "passed", verdict: missed, results: []conformance.Result{
			result("c-1-1/y", "responder", conformance.Pass, "c-1-1"),
		}},
		{name: "inconclusive", verdict: missed, results: []conformance.Result{
			result("c-1-1/y", "responder", conformance.Inconclusive, "c-1-1"),
		}},
		{name: "failed", verdict: caught, clause: "c-1-2", by: []string{"c-1-2/x as responder"}, results: []conformance.Result{
			result("c-1-1/y", "responder", conformance.Pass, "c-1-1"),
			result("c-1-2/x", "responder", conformance.Fail, "c-1-2"),
		}},
		{name: "failed, named by another clause", verdict: caught, clause: "c-1-2", by: []string{"d-1-1/z as initiator"}, results: []conformance.Result{
			result("d-1-1/z", "initiator", conformance.Fail, "d-1-1", "c-1-2"),
		}},
		{name: "failed by another clause only", verdict: missed, others: 1, results: []conformance.Result{
			result("d-1-1/z", "initiator", conformance.Fail, "d-1-1"),
		}},
		{name: "failed, as the stack without a fault does", verdict: missed, results: []conformance.Result{
			result("c-1-2/x", "initiator", conformance.Fail, "c-1-2"),
		}},
		{
			name: "failed twice", verdict: caught, clause: "c-1-1",
			by: []string{"c-1-2/x as responder", "c-1-1/y as responder"}, results: []conformance.Result{
				result("c-1-2/x", "responder", conformance.Fail, "c-1-2"),
				result("c-1-1/y", "responder", conformance.Fail, "c-1-1"),
			},
		},
	} {
		o := judge(m, test.results, passed, nil)
		if o.verdict != test.verdict || o.clause != test.clause || !slices.Equal(o.by, test.by) || o.others != test.others {
			t.Errorf("%s: %s by %q of %q, %d others; want %s by %q of %q, %d others",
				test.name, o.verdict, o.by, o.clause, o.others, test.verdict, test.by, test.clause, test.others)
		}
	}
}

func TestTableShowsFirstWhatIsNotCaught(t *testing.T) {
	mutant := func(name string) *mutants.Mutant {
		return &mutants.Mutant{Name: name, Fault: "It is " + name + ".", Clauses: []string{"rfc1-1-1", "rfc1-1-2"}}
	}
	var b strings.Builder
	err := printTable(&b, []outcome{
		{mutant: mutant("good"), verdict: caught, clause: "rfc1-1-2", by: []string{"rfc1-1-2/a as responder", "rfc1-1-2/a as initiator", "rfc1-1-2/b as responder"}},
		{mutant: mutant("bad"), verdict: missed, totals: conformance.Totals{Pass: 2, Skipped: 1}, others: 3},
		{mutant: mutant("bare"), verdict: untested},
		{mutant: mutant("dead"), verdict: broken, err: errors.New("no binary\nfor a reason")},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `MUTANT  VERDICT   CLAUSE             BY
dead    NO START  rfc1-1-1 rfc1-1-2  no binary
bare    NO CASE   rfc1-1-1 rfc1-1-2  no case tests what it breaks; It is bare.
bad     MISSED    rfc1-1-1 rfc1-1-2  2 pass, 0 fail, 0 inconclusive, 1 skipped; It is bad.; 3 results of other clauses fail too
good    caught    rfc1-1-2           rfc1-1-2/a as responder, rfc1-1-2/a as initiator and 1 more
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

func TestOnlyTheCaseThatIsNamedCatchesAMutant(t *testing.T) {
	m := &mutants.Mutant{Name: "m", Fault: "It is wrong.", Clauses: []string{"c-1-1"}, Case: "c-1-1/x"}
	passed := map[string]bool{"c-1-1/x as responder": true, "c-1-1/y as responder": true}
	y, x := result("c-1-1/y", "responder", conformance.Fail, "c-1-1"), result("c-1-1/x", "responder", conformance.Fail, "c-1-1")
	if catches(m, y, passed) {
		t.Error("another case of the clause catches it")
	}
	if o := judge(m, []conformance.Result{y}, passed, nil); o.verdict != missed || o.others != 1 {
		t.Errorf("by another case of the clause, it is %s, with %d others", o.verdict, o.others)
	}
	if !catches(m, x, passed) {
		t.Error("its case does not catch it")
	}
	if o := judge(m, []conformance.Result{y, x}, passed, nil); o.verdict != caught || !slices.Equal(o.by, []string{"c-1-1/x as responder"}) {
		t.Errorf("by its case, it is %s by %q", o.verdict, o.by)
	}
}

func TestCasesThatMutantsNameExist(t *testing.T) {
	there := map[string]conformance.Case{}
	for _, g := range cases.All() {
		for _, c := range g.Cases {
			there[c.ID()] = c
		}
	}
	for _, m := range mutants.All() {
		if m.Case == "" {
			continue
		}
		if c, ok := there[m.Case]; !ok {
			t.Errorf("%s is to be found by %s, and there is no such case", m.Name, m.Case)
		} else if !slices.ContainsFunc(m.Clauses, func(id string) bool { return slices.Contains(c.Clauses(), id) }) {
			t.Errorf("%s is to be found by %s, which tests none of its clauses", m.Name, m.Case)
		}
	}
}

func TestLossIsCaughtByTheVerdictOnTheRun(t *testing.T) {
	died := errors.New("it has crashed")
	lost := conformance.Report{Lost: "the target may have crashed"}
	failed := conformance.Report{Totals: conformance.Totals{Fail: 1}}
	for _, test := range []struct {
		name   string
		loss   mutants.Loss
		report conformance.Report
		crash  error
		want   verdict
	}{
		{"crash, and lost", mutants.Crash, lost, died, caught},
		{"crash, and a failure", mutants.Crash, failed, died, missed},
		{"crash that has not happened", mutants.Crash, lost, nil, missed},
		{"hang, and lost", mutants.Hang, lost, nil, caught},
		{"hang, and a failure", mutants.Hang, failed, nil, missed},
		{"hang that was a crash", mutants.Hang, lost, died, missed},
	} {
		m := &mutants.Mutant{Name: "m", Fault: "It ends.", Clauses: []string{"c-1-1"}, Loss: test.loss}
		if o := judgeLoss(m, &test.report, test.crash); o.verdict != test.want {
			t.Errorf("%s: %s, want %s", test.name, o.verdict, test.want)
		}
	}
}

// A mutant whose fault begins later shows that the cases are wanted which try rules later.
// It does so only if the others pass.
func TestMutantThatBeginsLaterIsCaughtByLaterCasesAlone(t *testing.T) {
	m := &mutants.Mutant{Name: "m", Fault: "It is wrong at last.", Clauses: []string{"c-1-1"}, Later: true}
	passed := map[string]bool{"c-1-1/x as responder": true, "c-1-1/x-later as responder": true, "d-1-1/y as responder": true}
	later := map[string]bool{"c-1-1/x-later": true}
	failed := func(name, clause string) conformance.Result {
		return result(name, "responder", conformance.Fail, clause)
	}
	for _, test := range []struct {
		name    string
		results []conformance.Result
		want    verdict
		early   []string
	}{
		{"later only", []conformance.Result{failed("c-1-1/x-later", "c-1-1")}, caught, nil},
		{"at first only", []conformance.Result{failed("c-1-1/x", "c-1-1")}, early, []string{"c-1-1/x as responder"}},
		{"both", []conformance.Result{failed("c-1-1/x-later", "c-1-1"), failed("c-1-1/x", "c-1-1")}, early, []string{"c-1-1/x as responder"}},
		{"at first, of another clause", []conformance.Result{failed("c-1-1/x-later", "c-1-1"), failed("d-1-1/y", "d-1-1")}, early, []string{"d-1-1/y as responder"}},
		{"one that the stack fails", []conformance.Result{failed("c-1-1/x-later", "c-1-1"), failed("c-1-1/z", "c-1-1")}, caught, nil},
		{"nothing", nil, missed, nil},
	} {
		o := judge(m, test.results, passed, later)
		if o.verdict != test.want || !slices.Equal(o.early, test.early) || (o.clause != "") != (test.want == caught) {
			t.Errorf("%s: %s of %q, early %q; want %s, %q", test.name, o.verdict, o.clause, o.early, test.want, test.early)
		}
	}
	if why := (&outcome{mutant: m, verdict: early, early: []string{"c-1-1/x as responder"}}).explain(); why != "also by c-1-1/x as responder" {
		t.Errorf("it says %q", why)
	}
}

// What failed once by chance, with a mutant that begins later, does not count.
func TestEarlyFailuresAreSettledAnew(t *testing.T) {
	m := &mutants.Mutant{Name: "m", Clauses: []string{"c-1-1"}, Later: true}
	for _, test := range []struct {
		by, early []string
		want      verdict
	}{
		{[]string{"c-1-1/x-later as responder"}, nil, caught},
		{[]string{"c-1-1/x-later as responder"}, []string{"c-1-1/x as responder"}, early},
		{nil, nil, missed},
	} {
		o := outcome{mutant: m, verdict: early, by: test.by, early: test.early}
		if o.settle(); o.verdict != test.want {
			t.Errorf("by %q, early %q: %s, want %s", test.by, test.early, o.verdict, test.want)
		}
	}
}

func TestLaterCaseWithoutAMutantIsTold(t *testing.T) {
	later := map[string]bool{"c-1-1/a-later": true, "c-1-1/b-later": true, "c-1-1/c-later": true, "c-1-1/skipped-later": true}
	passed := map[string]bool{"c-1-1/a-later as responder": true, "c-1-1/b-later as responder": true, "c-1-1/b-later as initiator": true, "c-1-1/c-later as initiator": true, "c-1-1/x as responder": true}
	got := idle(later, passed, []outcome{
		{mutant: &mutants.Mutant{Name: "m", Later: true}, verdict: caught, by: []string{"c-1-1/a-later as responder"}},
		{mutant: &mutants.Mutant{Name: "n"}, verdict: caught, by: []string{"c-1-1/b-later as responder"}},
	})
	if want := []string{"c-1-1/b-later", "c-1-1/c-later"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
