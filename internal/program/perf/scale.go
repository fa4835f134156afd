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
		if err := c.calibrate(ctx, cases[i].setup); err != nil {
			return err
		}
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
	setup setup
	ours  tally
	bare  [2]tally
	idle  *idleCost // or nil
}

// scaleRound makes a round, and one over bare TCP.
func (c *client) scaleRound(ctx context.Context, s *scaleCase) (err error) {
	g, err := c.open(ctx, s.setup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.shutAfter(ctx, g, err)) }()
	streams, err := c.openStreams(ctx, s.setup, &s.bare)
	if err != nil {
		return err
	}
	t := newTransfer(g)
	warm := c.warmup()
	if _, _, err := c.transfer(ctx, t, warm); err != nil {
		return err
	}
	if err := streams.warm(ctx, warm); err != nil {
		return err
	}
	c.begin()
	messages, took, err := c.transfer(ctx, t, c.limits())
	if err != nil {
		return err
	}
	s.ours.add(messages, took)
	c.roundOver()
	if err := streams.rounds(ctx, c.limits(), c.roundOver); err != nil {
		return err
	}
	return c.closeBares(ctx)
}

func (s *scaleCase) result(c *client, to *scaleCase) Result {
	r := s.ours.result(s.setup, false)
	c.compareStreams(&r, s.setup, &s.bare)
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
