package machine

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

var schedules = flag.Int("schedules", 0, "how many random schedules each world has (5,000; a twentieth with -short, the race detector or coverage)")

// The machines of a simulation are small and live for a millisecond: with the usual setting, the garbage
// collector would run all the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	m.Run()
}

// many returns how many random schedules each world has. Those with faults at every step
// are more than 160,000 in all, which their tests check.
func many() int {
	const most = 5000
	switch {
	case *schedules > 0:
		return *schedules
	case raceEnabled || testing.Short() || testing.CoverMode() != "":
		return most / 20
	}
	return most
}

// A tally counts the schedules of a test, of all worlds.
type tally struct {
	mu   sync.Mutex
	runs int
}

func (n *tally) add(runs int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs += runs
}

// wants has the test fail at its end if there were fewer. With less than all its worlds, or a
// stride, there may be.
func (n *tally) wants(t *testing.T, least int) {
	t.Helper()
	t.Cleanup(func() {
		if got := n.runs; got < least && stride == 1 && !t.Failed() && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			t.Errorf("there were %d schedules; want %d", got, least)
		}
	})
}

// Programs, the network and faults do what a seed says, in any order that is possible.
func TestSimulation(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(many()) {
				replayed(t, fmt.Sprintf("%s, seed %d", w.name, seed), func(made func(*sim)) { play(w, seed, made) })
			}
		})
	}
}
