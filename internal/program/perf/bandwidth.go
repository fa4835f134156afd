package perf

import (
	"context"
	"errors"
)

// bandwidth measures how many bytes and messages go in a second.
func (c *client) bandwidth(ctx context.Context, s setup) (result Result, err error) {
	if err := c.calibrate(ctx, s); err != nil {
		return result, err
	}
	g, err := c.open(ctx, s)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.shutAfter(ctx, g, err)) }()
	var ours tally
	var bare [2]tally
	streams, err := c.openStreams(ctx, s, &bare)
	if err != nil {
		return result, err
	}
	t := newTransfer(g)
	warm := c.warmup()
	if _, _, err := c.transfer(ctx, t, warm); err != nil {
		return result, err
	}
	if err := streams.warm(ctx, warm); err != nil {
		return result, err
	}
	c.begin()
	for range c.Rounds {
		messages, took, err := c.transfer(ctx, t, c.limits())
		if err != nil {
			return result, err
		}
		ours.add(messages, took)
		c.roundOver()
		if err := streams.rounds(ctx, c.limits(), c.roundOver); err != nil {
			return result, err
		}
	}
	result = ours.result(s, c.perMessage())
	c.compareStreams(&result, s, &bare)
	return result, c.closeBares(ctx)
}

// perMessage reports whether the message rate is what the test is about.
func (o *Options) perMessage() bool { return o.Test == TestRate }

// shutAfter gives the queue pairs up in the way that fits to what went before.
func (c *client) shutAfter(ctx context.Context, g *group, err error) error {
	if err != nil {
		return g.close()
	}
	return c.shut(ctx, g)
}

// transfer makes a round of requests and checks what has arrived. It returns how
// many messages were seen to arrive, in both directions.
func (c *client) transfer(ctx context.Context, t *transfer, r round) (messages float64, took timed, err error) {
	took, got, err := c.round(ctx, t.group, r, func() (uint64, error) {
		err := t.run(ctx, r)
		return t.sent(), err
	})
	if err != nil {
		return 0, took, err
	}
	here, there := got.Sent, t.sent() // which the one side has sent, and the other one sees
	if t.group.Op == OpRead {
		here, there = there, here
	}
	if came := t.came(); came != here || got.Messages != there {
		return 0, took, errCame(came+got.Messages, here+there)
	}
	return float64(t.came() + got.Messages), took, t.verify()
}

// A tally is what rounds of one case came to.
type tally struct {
	messages, seconds, allocs []float64
}

func (t *tally) add(n float64, took timed) {
	t.messages = append(t.messages, n)
	t.seconds = append(t.seconds, took.seconds)
	t.allocs = append(t.allocs, float64(took.mallocs)/max(n, 1))
}

// result returns the medians.
func (t *tally) result(s setup, perMessage bool) Result {
	rates := make([]float64, len(t.messages))
	var messages float64
	for i, n := range t.messages {
		rates[i] = n / t.seconds[i]
		messages += n
	}
	rate := median(rates)
	r := Result{
		Size: s.Size, QPs: s.QPs, Iterations: uint64(messages), Seconds: sum(t.seconds),
		MessagesPerSecond: rate, BytesPerSecond: rate * float64(s.Size), AllocsPerOp: new(median(t.allocs)), Samples: rates,
	}
	if !perMessage {
		for i := range rates {
			rates[i] *= float64(s.Size)
		}
	}
	return r
}
