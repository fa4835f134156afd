package perf

import (
	"context"
	"errors"
	"runtime"
)

// leastIdle is from how many queue pairs on it makes sense to divide by them
// what the process has grown by.
const leastIdle = 16

// scale measures what many queue pairs cost that are idle, and what they carry
// together. Rounds of the various numbers alternate.
func (c *client) scale(ctx context.Context) error {
	size := c.Sizes[0]
	cases := make([]scaleCase, len(c.QPs))
	for i, n := range c.QPs {
		cases[i].setup = c.setup(size, n)
		if n < leastIdle {
			continue
		}
		var err error
		if cases[i].idle, err = c.idle(ctx, cases[i].setup); err != nil {
			return err
		}
	}
	for range c.Rounds {
		for i := range cases {
			if err := c.scaleRound(ctx, &cases[i]); err != nil {
				return err
			}
		}
	}
	for i := range cases {
		c.add(cases[i].result(c, &cases[0]))
	}
	return nil
}

// A scaleCase is what one number of queue pairs came to.
type scaleCase struct {
	setup      setup
	ours, bare tally
	idle       *idleCost // or nil
}

// An idleCost is what the process has grown by for each idle queue pair and
// side.
type idleCost struct{ octets, goroutines float64 }

// scaleRound makes a round, and one over bare TCP.
func (c *client) scaleRound(ctx context.Context, s *scaleCase) (err error) {
	g, err := c.open(ctx, s.setup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.shutAfter(ctx, g, err)) }()
	t := newTransfer(g)
	if _, _, err := c.transfer(ctx, t, c.warmup()); err != nil {
		return err
	}
	c.begin()
	messages, took, err := c.transfer(ctx, t, c.limits())
	if err != nil {
		return err
	}
	s.ours.add(messages, took)
	c.roundOver()
	if !c.Baseline {
		return nil
	}
	messages, took, err = c.bareStream(ctx, s.setup)
	if err != nil {
		return err
	}
	s.bare.add(messages, took)
	c.roundOver()
	return nil
}

func (s *scaleCase) result(c *client, to *scaleCase) Result {
	r := s.ours.result(s.setup, false)
	if c.Baseline {
		w, read := c.calls.of(s.setup.Size, c.BaselineBest)
		r.compare(s.bare.result(s.setup, false), w, read)
	}
	first := to.ours.result(to.setup, false).Samples
	ratios := make([]float64, len(r.Samples))
	for i := range ratios {
		ratios[i] = r.Samples[i] / first[i]
	}
	r.Scaling = median(ratios)
	if s.idle != nil {
		if s.idle.octets > 0 {
			r.BytesPerQP = s.idle.octets
		}
		r.GoroutinesPerQP = &s.idle.goroutines
	}
	return r
}

// idle measures what queue pairs cost that are connected and never used.
func (c *client) idle(ctx context.Context, s setup) (*idleCost, error) {
	s.Idle = true
	memory, told := resident()
	goroutines := runtime.NumGoroutine()
	g, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	share := float64(s.QPs)
	if c.BothSides {
		share *= 2
	}
	grown, _ := resident()
	cost := &idleCost{goroutines: float64(runtime.NumGoroutine()-goroutines) / share}
	if told {
		cost.octets = (float64(grown) - float64(memory)) / share
	}
	return cost, c.shut(ctx, g)
}
