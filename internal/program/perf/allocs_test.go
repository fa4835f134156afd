//go:build !race

package perf

import (
	"testing"

	"urnic/rnic"
)

// The tool itself allocates nothing for a message: what it tells as allocs_per_op
// is that of the engine. With the race detector, a sync.Pool forgets on purpose;
// hence the build tag.
func TestRoundsAllocateNothingForAMessage(t *testing.T) {
	address := serve(t, &Server{})
	dev := open(t, rnic.Config{})
	for _, o := range []Options{
		{Op: OpSend, Test: TestRate, Iterations: 50_000},
		{Op: OpWrite, Test: TestRate, SignalEvery: 7, Iterations: 50_000},
		{Op: OpRead, Test: TestBandwidth, Sizes: []int{64}, Iterations: 20_000},
		{Op: OpSend, Test: TestLatency, Iterations: 2_000},
		{Op: OpAtomic, Test: TestLatency, Iterations: 2_000},
	} {
		const few = 0.2 // goroutines that wait in the engine, and the like
		// Where the scheduler keeps the program from polling, its connections change hands, which
		// allocates; what a message allocates, it does each time.
		least := few + 1
		for tries := 0; least > few && tries < 10; tries++ {
			r, err := Run(t.Context(), dev, nil, address, o)
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, *r.Results[0].AllocsPerOp)
		}
		if least > few {
			t.Errorf("%s %s: %.3f objects for a message", o.Op, o.Test, least)
		}
	}
}
