package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"urnic/conformance"
	"urnic/conformance/mutants"
)

// A verdict says how a mutant has fared.
type verdict string

const (
	caught   verdict = "caught"    // a case of a clause that it breaks has failed
	missed   verdict = "MISSED"    // none has
	untested verdict = "NO CASE"   // there is none
	broken   verdict = "NO START"  // it can't be built or started
	early    verdict = "NOT LATER" // its fault begins later, and a case that tries nothing later has failed
)

// An outcome is what has come of one mutant.
type outcome struct {
	mutant  *mutants.Mutant
	verdict verdict
	clause  string             // of those that it breaks, the first that it was caught by
	at      int                // which of its clauses that is
	by      []string           // the cases that have caught it
	others  int                // results of other clauses that were not what they should be
	early   []string           // of a mutant that begins later: the cases that try nothing later, and have failed
	totals  conformance.Totals // of the results of its clauses
	err     error
}

// label names a result.
func label(r conformance.Result) string { return r.Case + " as " + r.Role }

// judge says how a mutant has fared by its results. passed holds those of the stack
// without a fault: a case that this does not pass proves nothing. later holds the cases that
// may find a fault that begins later.
func judge(m *mutants.Mutant, results []conformance.Result, passed, later map[string]bool) outcome {
	o := outcome{mutant: m, at: len(m.Clauses)}
	for _, r := range results {
		failed := r.Verdict == conformance.Fail && passed[label(r)]
		if m.Later && failed && !later[r.Case] {
			o.early = append(o.early, label(r))
			continue
		}
		first := firstClause(m, r)
		if first < 0 {
			if failed {
				o.others++
			}
			continue
		}
		o.totals.Add(r.Verdict)
		if failed {
			o.by = append(o.by, label(r))
			o.at = min(o.at, first)
		}
	}
	o.settle()
	return o
}

// settle draws the verdict from the cases that have failed.
func (o *outcome) settle() {
	switch {
	case len(o.early) > 0:
		o.verdict, o.clause = early, ""
	case len(o.by) > 0:
		o.verdict, o.clause = caught, o.mutant.Clauses[o.at]
	default:
		o.verdict = missed
	}
}

// idle returns those of the cases that try rules later, and that the stack without a fault
// passes, by which no mutant that begins later was caught.
func idle(later, passed map[string]bool, outcomes []outcome) []string {
	works, there := map[string]bool{}, map[string]bool{}
	name := func(label string) string { name, _, _ := strings.Cut(label, " as "); return name }
	for _, o := range outcomes {
		if o.mutant.Later {
			for _, by := range o.by {
				works[name(by)] = true
			}
		}
	}
	for l := range passed {
		if n := name(l); later[n] && !works[n] {
			there[n] = true
		}
	}
	return slices.Sorted(maps.Keys(there))
}

// firstClause returns which of the clauses that a mutant breaks is the first that a result
// is about; -1 if none is, or another case has to find the mutant.
func firstClause(m *mutants.Mutant, r conformance.Result) int {
	if m.Case != "" && r.Case != m.Case {
		return -1
	}
	return slices.IndexFunc(m.Clauses, func(id string) bool { return slices.Contains(r.Clauses, id) })
}

// catches reports whether a mutant is caught by a result.
func catches(m *mutants.Mutant, r conformance.Result, passed map[string]bool) bool {
	return r.Verdict == conformance.Fail && passed[label(r)] && firstClause(m, r) >= 0
}

// judgeLoss says how a mutant has fared that is lost: crash is the error of a target that
// has ended by itself. It is caught if the report says that the target was lost, as it
// was: by the end of its process, or not.
func judgeLoss(m *mutants.Mutant, report *conformance.Report, crash error) outcome {
	o := outcome{mutant: m, verdict: missed, totals: report.Totals}
	switch crashed := crash != nil; {
	case crashed != (m.Loss == mutants.Crash):
		o.err = cmp.Or(crash, errors.New("its process has not ended"))
	case report.Outcome() == conformance.TargetLost:
		o.verdict, o.clause, o.by = caught, m.Clauses[0], []string{report.Headline()}
	}
	return o
}

// printTable prints what has come of each mutant, those first that were not caught.
func printTable(w io.Writer, outcomes []outcome) error {
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b outcome) int {
		return cmp.Compare(rank(a.verdict), rank(b.verdict))
	})
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "MUTANT\tVERDICT\tCLAUSE\tBY")
	for _, o := range sorted {
		clause := cmp.Or(o.clause, strings.Join(o.mutant.Clauses, " "))
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", o.mutant.Name, o.verdict, clause, o.explain())
	}
	return t.Flush()
}

func rank(v verdict) int {
	return slices.Index([]verdict{broken, untested, missed, early, caught}, v)
}

// explain says by what a mutant was caught, or why it was not.
func (o *outcome) explain() string {
	var s []string
	switch o.verdict {
	case caught:
		const most = 2 // that are named
		by := strings.Join(o.by[:min(len(o.by), most)], ", ")
		if n := len(o.by) - most; n > 0 {
			by += fmt.Sprintf(" and %d more", n)
		}
		s = append(s, by)
	case missed:
		s = append(s, fmt.Sprintf("%d pass, %d fail, %d inconclusive, %d skipped",
			o.totals.Pass, o.totals.Fail, o.totals.Inconclusive, o.totals.Skipped), o.mutant.Fault)
	case untested:
		s = append(s, "no case tests what it breaks", o.mutant.Fault)
	case early:
		s = append(s, "also by "+strings.Join(o.early, ", "))
	case broken:
	}
	if o.others > 0 {
		s = append(s, fmt.Sprintf("%d results of other clauses fail too", o.others))
	}
	if o.err != nil {
		first, _, _ := strings.Cut(o.err.Error(), "\n") // the progress has had it all
		s = append(s, first)
	}
	return strings.Join(s, "; ")
}

// list prints the mutants with what they do and break.
func list(w io.Writer, chosen []mutants.Mutant) error {
	for _, m := range chosen {
		if _, err := fmt.Fprintf(w, "%s\n\t%s\n\t%s\n", m.Name, m.Fault, strings.Join(m.Clauses, " ")); err != nil {
			return err
		}
	}
	return nil
}
