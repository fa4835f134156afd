package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urnic/internal/host/plural"
)

// What an operation that the other side answers by itself puts on the wire, in
// bytes: the headers of RDMAP there, and back, with no data.
const (
	readRequest    = 28 // RFC 5040 §4.4
	atomicRequest  = 52 // RFC 7306 §5.2.1
	atomicResponse = 12 // RFC 7306 §5.2.2
)

// latency measures how long a message takes.
func (c *client) latency(ctx context.Context, s setup) (result Result, err error) {
	g, err := c.open(ctx, s)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.shutAfter(ctx, g, err)) }()
	var set *bareSet
	if c.Baseline {
		if set, err = c.openBare(ctx, pingPongSetup(s)); err != nil {
			return result, err
		}
	}
	p := newPlayer(g)
	warm := c.warmup()
	if _, err := c.play(ctx, p, warm, newHistogram(), newHistogram()); err != nil {
		return result, err
	}
	if c.Baseline {
		if _, err := set.play(ctx, warm, newHistogram()); err != nil {
			return result, err
		}
	}
	c.begin()
	ours, bare := newTrips(s), newTrips(s)
	service := newHistogram()
	for range c.Rounds {
		h := newHistogram()
		took, err := c.play(ctx, p, c.limits(), h, service)
		if err != nil {
			return result, err
		}
		ours.add(h, took)
		c.roundOver()
		if !c.Baseline {
			continue
		}
		h = newHistogram()
		if took, err = set.play(ctx, c.limits(), h); err != nil {
			return result, err
		}
		bare.add(h, took)
		c.roundOver()
	}
	result = ours.result(s)
	if c.Rate > 0 {
		result.Service = service.percentiles(1)
	}
	if c.Baseline {
		result.compare(baselineOf(kindPingPong, bare.result(s)))
	}
	return result, c.closeBares(ctx)
}

// play makes a round of ping-pong and checks what has arrived.
func (c *client) play(ctx context.Context, p *player, r round, h, service *histogram) (took timed, err error) {
	var made uint64
	took, got, err := c.round(ctx, p.g, r, func() (_ uint64, err error) {
		if c.Rate > 0 {
			made, err = p.playRated(ctx, r, c.Rate, h, service)
		} else {
			made, err = p.play(ctx, r, h)
		}
		return made, err
	})
	if err != nil {
		return took, err
	}
	came := got.Messages
	if p.g.Op == OpRead {
		came = p.came
	}
	if came != made {
		return took, errCame(came, made)
	}
	return took, p.g.verify(0, p.place, p.came)
}

// pingPongSetup returns a connection over bare TCP for what is compared with a case.
func pingPongSetup(s setup) rawSetup {
	r := rawSetup{Kind: rawPingPong, Conns: 1, Request: s.Size, Response: s.Size, Poll: s.Poll}
	switch s.Op {
	case OpRead:
		r.Request = readRequest
	case OpAtomic:
		r.Request, r.Response = atomicRequest, atomicResponse
	default: // as much there as back
	}
	return r
}

// play makes a round over bare TCP, and compares how many requests were made with how
// many the server has answered.
func (s *bareSet) play(ctx context.Context, r round, h *histogram) (took timed, err error) {
	var made uint64
	var end time.Time
	start := time.Now()
	took, got, err := s.round(ctx, rawRound{}, func(*rawRound) (err error) {
		start = time.Now()
		if made, err = s.conns[0].play(ctx, r.Iterations, r.Duration, h); err != nil {
			return err
		}
		end = time.Now()
		return s.conns[0].done(ctx)
	})
	if err != nil {
		return took, err
	}
	if got.Messages != made {
		return took, fmt.Errorf("the baseline: the client made %s, and the server has answered %d", plural.Count(made, "request"), got.Messages)
	}
	took.seconds = end.Sub(start).Seconds() // without the word that it is over
	return took, nil
}

// Trips are the times of the rounds of a case.
type trips struct {
	all     *histogram
	parts   float64 // of a round trip, in what is called the latency
	medians []float64
	seconds []float64
	allocs  []float64
}

func newTrips(s setup) *trips {
	t := &trips{all: newHistogram(), parts: 1}
	if s.pingPong() && !s.Rated {
		t.parts = 2
	}
	return t
}

func (t *trips) add(h *histogram, took timed) {
	t.all.Merge(h.Histogram)
	t.medians = append(t.medians, float64(h.ValueAtPercentile(50))/t.parts)
	t.seconds = append(t.seconds, took.seconds)
	t.allocs = append(t.allocs, float64(took.mallocs)/max(1, float64(h.TotalCount())))
}

// result returns the percentiles of all rounds together.
func (t *trips) result(s setup) Result {
	n := uint64(t.all.TotalCount())
	seconds := sum(t.seconds)
	return Result{
		Size: s.Size, QPs: s.QPs, Iterations: n, Seconds: seconds, MessagesPerSecond: float64(n) * t.parts / seconds,
		Latency: t.all.percentiles(t.parts), RoundTrip: t.all.percentiles(1),
		AllocsPerOp: new(median(t.allocs)), Samples: t.medians, curve: t.all.curve(t.parts),
	}
}
