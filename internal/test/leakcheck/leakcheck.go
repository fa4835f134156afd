package leakcheck

import (
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a goroutine may take to end.
const patience = 5 * time.Second

// Main runs the tests of a package and exits. It turns success into failure,
// and shows the stacks, if goroutines are still running that were not before.
func Main(m *testing.M) {
	os.Exit(run(m.Run, patience, os.Stderr))
}

func run(tests func() int, patience time.Duration, w io.Writer) (code int) {
	before := running()
	if code = tests(); code != 0 {
		return code // what failed may well have left something behind
	}
	if left := remaining(before, patience); len(left) > 0 {
		fmt.Fprintln(w, report(left))
		return 1
	}
	return 0
}

// Check makes t fail if goroutines that are started from now on are still
// running when t and its other cleanups are over. It can't tell whose they are:
// t must not run beside other tests.
func Check(t testing.TB) { check(t, patience) }

func check(t testing.TB, patience time.Duration) {
	t.Helper()
	before := running()
	t.Cleanup(func() {
		if left := remaining(before, patience); len(left) > 0 {
			t.Error(report(left))
		}
	})
}

func report(left map[string]string) string {
	stacks := slices.Sorted(maps.Values(left))
	return fmt.Sprintf("leakcheck: %d goroutines were left behind:\n\n%s", len(left), strings.Join(stacks, "\n\n"))
}

// remaining returns the goroutines that were not there before, once there are
// none or patience is over.
func remaining(before map[string]string, patience time.Duration) map[string]string {
	pause := 50 * time.Microsecond
	for deadline := time.Now().Add(patience); ; {
		left := since(before)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pause) // nothing tells when a goroutine is gone
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// since returns the stacks of the goroutines that were not there before.
func since(before map[string]string) map[string]string {
	left := running()
	for id := range before {
		delete(left, id)
	}
	return left
}

// running returns the stacks of all goroutines but this one, by their id.
func running() map[string]string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := make(map[string]string)
	for i, stack := range strings.Split(strings.TrimSpace(string(buf)), "\n\n") {
		// The first one is this goroutine; that of os/signal never ends.
		if i > 0 && !strings.Contains(stack, "os/signal.signal_recv") {
			stacks[id(stack)] = stack
		}
	}
	return stacks
}

// id returns N of "goroutine N [running]:".
func id(stack string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
	return id
}
