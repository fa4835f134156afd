package interop

import (
	"strings"
	"testing"

	"urnic/internal/program/dissect"
)

// aFault is what a run leaves in which siw is at fault, and noFault one in which it is not.
var (
	aFault  = &evidence{siw: client, conns: []*recorded{{Connection: &dissect.Connection{Number: 1}, badCRC: "a wrong CRC"}}}
	noFault = &evidence{}
)

// run runs a test that fails in the first runs, and leaves what each of them has. It returns what has
// become of the test, and how many runs there were.
func runFailing(t *testing.T, left ...*evidence) (outcome *trial, n int) {
	t.Helper()
	outcome = &trial{TB: t}
	runs(outcome, func(*trial) func() *evidence {
		n++
		return func() *evidence { return left[n-1] }
	}, func(t testing.TB) {
		if n <= len(left) {
			t.Fatalf("failure %d", n)
		}
	})
	return outcome, n
}

func TestRunsEndWhereSIWIsNotAtFault(t *testing.T) {
	for name, test := range map[string]struct {
		left   []*evidence
		failed bool
		runs   int
	}{
		"no failure":            {nil, false, 1},
		"not recognised":        {[]*evidence{noFault}, true, 1},
		"a fault":               {[]*evidence{aFault}, false, 2},
		"two faults":            {[]*evidence{aFault, aFault}, false, 3},
		"a fault, and another":  {[]*evidence{aFault, noFault}, true, 2},
		"a fault in each of it": {[]*evidence{aFault, aFault, aFault}, true, mostRuns},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, n := runFailing(t, test.left...)
			if outcome.Failed() != test.failed || n != test.runs {
				t.Errorf("failed: %v, after %d runs; want %v, %d", outcome.Failed(), n, test.failed, test.runs)
			}
			if test.failed && !strings.Contains(strings.Join(outcome.failures, "\n"), "trial_runs_test.go:") {
				t.Errorf("nothing says where it has failed: %q", outcome.failures)
			}
		})
	}
}

// A run cleans up before what it has left is looked at, and failures of that are the run's.
func TestRunCleansUp(t *testing.T) {
	var order []string
	outcome := &trial{TB: t}
	runs(outcome, func(*trial) func() *evidence {
		return func() *evidence {
			order = append(order, "look")
			return noFault
		}
	}, func(t testing.TB) {
		t.Cleanup(func() {
			order = append(order, "first")
			t.Fatal("a failure")
		})
		t.Cleanup(func() {
			order = append(order, "second")
			if t.Context().Err() == nil {
				t.Error("the run's context is not over")
			}
		})
	})
	if got := strings.Join(order, " "); got != "second first look" {
		t.Errorf("done in this order: %s", got)
	}
	if !outcome.Failed() {
		t.Error("the failure is lost")
	}
}
