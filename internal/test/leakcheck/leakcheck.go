package leakcheck

import (
	"flag"
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

// patience is how long a goroutine may take to end. It is a limit for what never ends: nobody
// waits longer than the goroutines run.
const patience = time.Minute

// name is that of the test that fails if the tests of a package leave goroutines behind.
const name = "TestMain"

// Main runs the tests of a package and exits. If goroutines are still running that were not
// before, it turns success into failure, shows the stacks, and reports it as test2json expects
// it of a test named TestMain. A program that runs failed tests again, as gotestsum does, then
// asks for the tests that match ^TestMain$. There are none, which would count as success, so Main
// fails when it is asked for them.
func Main(m *testing.M) {
	flag.Parse()
	r := runner{tests: m.Run, patience: patience, out: os.Stdout}
	// A run that tells test2json what it does marks its lines.
	if v := flag.Lookup("test.v"); v != nil && v.Value.String() == "test2json" {
		r.mark = "\x16"
	}
	if only := flag.Lookup("test.run"); only != nil && only.Value.String() == "^"+name+"$" {
		os.Exit(r.fail("leakcheck: whether tests leave goroutines behind is seen only when all of the package are run"))
	}
	os.Exit(r.run())
}

// A runner runs the tests of a package.
type runner struct {
	tests    func() int // returns the exit code
	patience time.Duration
	out      io.Writer
	mark     string // precedes each line that is not the output of a test
}

func (r runner) run() (code int) {
	before := running()
	if code = r.tests(); code != 0 {
		return code // what failed may well have left something behind
	}
	if left := remaining(before, r.patience); len(left) > 0 {
		return r.fail(report(left))
	}
	return 0
}

// fail reports that the tests of the package have failed together. It returns the exit code.
func (r runner) fail(why string) int {
	fmt.Fprintf(r.out, "%[1]s=== RUN   %[2]s\n%[3]s\n%[1]s--- FAIL: %[2]s (0.00s)\n%[1]sFAIL\n", r.mark, name, why)
	return 1
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

// remaining returns the goroutines that were not there before, once there are none or patience
// is over. Only the pauses between two looks count: while the machine holds the process, nothing
// can end, so there is a look and another pause after that.
func remaining(before map[string]string, patience time.Duration) map[string]string {
	const longest = 50 * time.Millisecond
	pause := 50 * time.Microsecond
	for waited := time.Duration(0); ; waited += pause {
		left := since(before)
		if len(left) == 0 || waited >= patience {
			return left
		}
		pause = min(2*pause, longest)
		time.Sleep(pause) // nothing tells when a goroutine is gone
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
