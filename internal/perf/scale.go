package perf

import (
	"context"
	"errors"
)

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
		s.idle.tell(&r)
	}
	return r
}
