package leakcheck

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

const brief = 20 * time.Millisecond

// stray is a goroutine that the reports below must name.
func stray(stop <-chan struct{}) { <-stop }

func TestGoroutineLeftByTestsFailsTheRun(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	var out bytes.Buffer
	code := runner{tests: func() int {
		go stray(stop)
		return 0
	}, patience: brief, out: &out, mark: "> "}.run()
	if code != 1 || !strings.Contains(out.String(), "leakcheck.stray") || !strings.Contains(out.String(), "1 goroutines") {
		t.Errorf("exit code %d, report:\n%s", code, out.String())
	}
	first, end := "> === RUN   TestMain\n", "\n> --- FAIL: TestMain (0.00s)\n> FAIL\n"
	if !strings.HasPrefix(out.String(), first) || !strings.HasSuffix(out.String(), end) {
		t.Errorf("report:\n%s\nwant it between %q and %q", out.String(), first, end)
	}
}

func TestGoroutineThatWasThereBeforeIsNoLeak(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	go stray(stop)
	var out bytes.Buffer
	if code := (runner{tests: func() int { return 0 }, patience: brief, out: &out}).run(); code != 0 || out.Len() != 0 {
		t.Errorf("exit code %d, report:\n%s", code, out.String())
	}
}

func TestGoroutineGetsTimeToEnd(t *testing.T) {
	stop := make(chan struct{})
	var out bytes.Buffer
	code := runner{tests: func() int {
		go stray(stop)
		time.AfterFunc(brief, func() { close(stop) })
		return 0
	}, patience: patience, out: &out}.run()
	if code != 0 {
		t.Errorf("exit code %d, report:\n%s", code, out.String())
	}
}

func TestFailureOfTheTestsIsPassedOn(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	var out bytes.Buffer
	if code := (runner{tests: func() int { go stray(stop); return 3 }, patience: brief, out: &out}).run(); code != 3 || out.Len() != 0 {
		t.Errorf("exit code %d, report:\n%s; want 3 and none", code, out.String())
	}
}

// A recorder stands for a test that Check watches.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }

func TestCheckFailsATestThatLeavesAGoroutine(t *testing.T) {
	for _, leave := range []bool{false, true} {
		stop := make(chan struct{})
		r := &recorder{TB: t}
		check(r, brief)
		go stray(stop)
		if !leave {
			close(stop)
		}
		for _, f := range r.cleanups {
			f()
		}
		if leave {
			close(stop)
		}
		if got := len(r.errors) == 1 && strings.Contains(r.errors[0], "leakcheck.stray"); got != leave {
			t.Errorf("goroutine left: %v; errors: %q", leave, r.errors)
		}
	}
}

func TestCheckPassesATestThatLeavesNothing(t *testing.T) {
	Check(t)
	stop := make(chan struct{})
	go stray(stop)
	close(stop)
}

func TestManyGoroutinesAreAllSeen(t *testing.T) {
	const many = 2000 // their stacks exceed the first buffer
	before := running()
	stop := make(chan struct{})
	for range many {
		go stray(stop)
	}
	if n := len(since(before)); n != many {
		t.Errorf("%d goroutines seen; want %d", n, many)
	}
	close(stop)
	if left := remaining(before, patience); len(left) != 0 {
		t.Error(report(left))
	}
}
