package machine

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
)

var (
	schedules = flag.Int("schedules", 0, "how many random schedules there are in all (100,000; fewer with -short, the race detector or coverage)")
	first     = flag.Uint64("first", 1, "the seed of the first schedule of each world, to run a range of them in pieces")
	only      = flag.Uint64("seed", 0, "the only schedule to run of each world, with its whole log if it fails")
)

// The machines of a simulation are small and live for a millisecond: with the usual setting, the
// garbage collector would run all the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	m.Run()
}

// many returns how many random schedules there are in all.
func many() int {
	const most = 100_000
	switch {
	case *schedules > 0:
		return *schedules
	case raceEnabled || testing.CoverMode() != "":
		return most / 40
	case testing.Short():
		return most / 10
	}
	return most
}

// Programs, the network and its faults do what a seed says, in any order that is possible; the
// invariants hold.
func TestSimulation(t *testing.T) {
	each := (many() + len(worlds) - 1) / len(worlds)
	var runs atomic.Int64
	t.Cleanup(func() {
		if want := int64(many()); !t.Failed() && runs.Load() < want && *only == 0 && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			t.Errorf("there were %d schedules; want %d", runs.Load(), want)
		}
	})
	for i := range worlds {
		w := &worlds[i]
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			if *only != 0 {
				replay(t, w, *only)
				return
			}
			for n := range uint64(each) {
				replay(t, w, *first+n)
				runs.Add(1)
			}
		})
	}
}

// replay runs a schedule, and again with a log if an invariant does not hold.
func replay(t *testing.T, w *world, seed uint64) {
	t.Helper()
	attempt := func(verbose bool) (failure simFailure, s *sim) {
		s = newSim(w, seed)
		s.verbose = verbose
		defer func() {
			r := recover()
			if f, ok := r.(simFailure); ok {
				failure = f
			} else if r != nil {
				panic(fmt.Sprintf("world %s, seed %d: %v", w.name, seed, r))
			}
		}()
		s.play()
		return "", s
	}
	failure, _ := attempt(false)
	if failure == "" {
		return
	}
	again, s := attempt(true)
	lines := 200
	if *only != 0 {
		lines = len(s.said)
	}
	t.Log(strings.Join(s.said[max(0, len(s.said)-lines):], "\n"))
	if again != failure {
		t.Errorf("the second time: %s", again)
	}
	t.Fatalf("%s (again with: go test -run 'TestSimulation/%s$' -seed %d)", failure, w.name, seed)
}
