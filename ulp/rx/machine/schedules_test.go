package machine

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
)

var (
	schedules = flag.Int("schedules", 0, "how many random schedules are played (100,000; a fiftieth with -short, the race detector or coverage)")
	seed      = flag.Int64("seed", -1, "play only the schedule of this `seed`, and tell what happens")
)

// The machines of a simulation are small and live for a millisecond: with the usual setting, the
// garbage collector would run all the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	m.Run()
}

// many returns how many schedules are played.
func many() int {
	const most = 100_000
	switch {
	case *schedules > 0:
		return *schedules
	case raceEnabled || testing.Short() || testing.CoverMode() != "":
		return most / 50
	}
	return most
}

// Programs, the network and restarts do what a seed says, in any order that is possible. Each
// call delivers exactly its bytes or fails with the right code, and nothing is left.
func TestSimulation(t *testing.T) {
	if *seed >= 0 {
		replayed(t, uint64(*seed), true)
		return
	}
	var next atomic.Int64
	for part := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1); i <= int64(many()); i = next.Add(1) {
				replayed(t, uint64(i), false)
			}
		})
	}
}

// replayed plays a schedule, and again with a log if something does not hold.
func replayed(t *testing.T, seed uint64, verbose bool) {
	t.Helper()
	failure, s := play(seed, verbose)
	if failure == "" {
		if verbose {
			s.tell(t)
		}
		return
	}
	again, s := play(seed, true)
	s.tell(t)
	if again != failure {
		t.Logf("the second time: %s", again)
	}
	t.Fatalf("-seed %d: %s", seed, failure)
}
