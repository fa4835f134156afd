package perf

import (
	"context"
	"runtime"
	"time"
)

// leastIdle is from how many queue pairs on it makes sense to divide by them
// what the process has grown by.
const leastIdle = 16

// An idleCost is what the process has grown by for each idle queue pair and
// side, and how long it took to connect all.
type idleCost struct{ octets, goroutines, seconds float64 }

// tell enters what is known into a result.
func (c *idleCost) tell(r *Result) {
	if c.octets > 0 {
		r.BytesPerQP = c.octets
	}
	r.GoroutinesPerQP = &c.goroutines
}

// idle measures what queue pairs cost that are connected and never used.
func (c *client) idle(ctx context.Context, s setup) (*idleCost, error) {
	s.Idle = true
	memory, told := resident()
	goroutines := runtime.NumGoroutine()
	start := time.Now()
	g, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	cost := &idleCost{seconds: time.Since(start).Seconds()}
	share := float64(s.QPs)
	if c.BothSides {
		share *= 2
	}
	grown, _ := resident()
	cost.goroutines = float64(runtime.NumGoroutine()-goroutines) / share
	if told {
		cost.octets = (float64(grown) - float64(memory)) / share
	}
	return cost, c.shut(ctx, g)
}

// idleOnly measures nothing else, for each number of queue pairs.
func (c *client) idleOnly(ctx context.Context) error {
	for _, n := range c.QPs {
		var octets, goroutines, seconds []float64
		for range c.Rounds {
			cost, err := c.idle(ctx, c.setup(c.Sizes[0], n))
			if err != nil {
				return err
			}
			c.begin()
			octets, goroutines, seconds = append(octets, cost.octets), append(goroutines, cost.goroutines), append(seconds, cost.seconds)
			c.roundOver()
		}
		r := Result{QPs: n, Iterations: uint64(n * c.Rounds), Seconds: sum(seconds), Samples: octets}
		(&idleCost{octets: median(octets), goroutines: median(goroutines)}).tell(&r)
		c.add(r)
	}
	return nil
}
