package perf

import (
	"context"
	"errors"
	"fmt"
)

// bandwidth measures how many octets and messages go in a second.
func (c *client) bandwidth(ctx context.Context, s setup) (result Result, err error) {
	g, err := c.open(ctx, s)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.shutAfter(ctx, g, err)) }()
	t := newTransfer(g)
	if _, _, err := c.transfer(ctx, t, c.warmup()); err != nil {
		return result, err
	}
	c.begin()
	var ours, bare tally
	for range c.Rounds {
		messages, took, err := c.transfer(ctx, t, c.limits())
		if err != nil {
			return result, err
		}
		ours.add(messages, took)
		c.roundOver()
		if !c.Baseline {
			continue
		}
		messages, took, err = c.bareStream(ctx, s)
		if err != nil {
			return result, err
		}
		bare.add(messages, took)
		c.roundOver()
	}
	result = ours.result(s, c.perMessage())
	if c.Baseline {
		w, r := c.calls.of(s.Size, c.BaselineBest)
		result.compare(bare.result(s, c.perMessage()), w, r)
	}
	return result, nil
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
// many messages went, in both directions.
func (c *client) transfer(ctx context.Context, t *transfer, r round) (messages float64, took timed, err error) {
	took, err = c.round(ctx, t.group, r, func() (uint64, error) {
		err := t.run(ctx, r)
		return t.sent(), err
	})
	if err != nil {
		return 0, took, err
	}
	return float64(t.sent() + t.received()), took, t.group.verify(r, t.totals())
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

// errShort says that octets of the baseline got lost.
func errShort(sent, received uint64) error {
	return fmt.Errorf("the baseline has sent %d octets, and %d arrived", sent, received)
}
