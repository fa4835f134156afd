package main

import (
	"context"
	"fmt"
	"time"
)

// startTest measures how long a program lasts that lists the RDMA devices and ends:
// with liburnic and without it, in turns. Without it, it finds none, and says so by
// its status.
func startTest(name, program string) *contest {
	c := &contest{
		name: name, by: rdmacore, dropIn: program,
		argv: func(setting) []string { return nil },
	}
	c.measure = func(ctx context.Context, at setting) ([]reading, error) {
		_, with := c.commands(at)
		without := command{argv: []string{program}}
		var ours, bare []float64
		for begun := time.Now(); len(ours) < leastStarts || time.Since(begun) < at.duration; {
			t := time.Now()
			if _, err := with.run(ctx); err != nil {
				return nil, err
			}
			ours = append(ours, float64(time.Since(t)))
			t = time.Now()
			cmd, _, _, err := without.start(ctx)
			if err != nil {
				return nil, failure(ctx, program, err)
			}
			_ = cmd.Wait() // its status is not 0 where there is no device
			bare = append(bare, float64(time.Since(t)))
		}
		return []reading{{StartNS: median(ours), Baseline: &reading{StartNS: median(bare)}}}, nil
	}
	return c
}

// leastStarts is how many starts a median is made of at least.
const leastStarts = 5

// startCost takes by how much longer a program lasts.
func startCost(name string) func(round) (sample, error) {
	return func(r round) (sample, error) {
		with, err := r.figure(name, startTime)
		if err != nil {
			return sample{}, err
		}
		b := r[name].Readings[0].Baseline
		if b == nil || b.StartNS <= 0 {
			return sample{}, fmt.Errorf("%s: the run does not say how long it takes without", name)
		}
		return sample{with - b.StartNS, with, b.StartNS, startTime.text, startTime.text}, nil
	}
}
