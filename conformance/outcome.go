package conformance

import "fmt"

// An Outcome is the verdict on a whole run.
type Outcome string

// The outcomes. If several hold, the first one that does is the run's.
const (
	// TargetLost: the target could not be reached any more, so that the run ended early.
	TargetLost Outcome = "target lost"
	// Interrupted: the run was stopped before its end.
	Interrupted Outcome = "interrupted"
	// Failed: a case failed.
	Failed Outcome = "fail"
	// Undecided: no case failed, but none passed either; or the run was strict, and a
	// case was inconclusive.
	Undecided Outcome = "inconclusive"
	// Passed: no case failed, and some passed.
	Passed Outcome = "pass"
)

// Outcome returns the verdict on the run. Only Passed is success.
func (r *Report) Outcome() Outcome {
	switch n := r.Totals; {
	case r.Lost != "":
		return TargetLost
	case r.Interrupted:
		return Interrupted
	case n.Fail > 0:
		return Failed
	case n.Pass == 0, r.Strict && n.Inconclusive > 0:
		return Undecided
	}
	return Passed
}

// Headline says in a sentence why the run has its outcome. It may quote what a target
// has sent.
func (r *Report) Headline() string {
	n := r.Totals
	switch r.Outcome() {
	case TargetLost:
		return r.Lost
	case Interrupted:
		return "the run was stopped before its end"
	case Failed:
		return fmt.Sprintf("%d of %d cases failed", n.Fail, n.All())
	case Undecided:
		if n.Pass == 0 {
			return "no case has passed: nothing is known of the target"
		}
		return fmt.Sprintf("%d of %d cases are inconclusive, which --strict does not take for success", n.Inconclusive, n.All())
	case Passed:
	}
	return fmt.Sprintf("none of %d cases failed", n.All())
}
