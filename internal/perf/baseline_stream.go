package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// warmOctets go over each connection of the baseline before its clock runs, so
// that TCP has found its pace.
const warmOctets = 4 << 20

// fullCall is from which size of messages on the baseline does not move a
// message in each call, but what suits a stream best. Messages of just that size
// go in calls of it.
const fullCall = 64 << 10

// calls are the sizes of calls with which a stream is fastest.
type calls struct{ write, read int }

// of returns the sizes of calls that messages of some size are compared with.
func (c *calls) of(size int, best bool) (write, read int) {
	if best || size > fullCall {
		return c.write, c.read
	}
	return size, fullCall
}

// bareStream makes a round over bare TCP that moves as much as one of requests
// would.
func (c *client) bareStream(ctx context.Context, s setup) (messages float64, took timed, err error) {
	if err := c.calibrate(ctx, s); err != nil {
		return 0, took, err
	}
	w, r := c.calls.of(s.Size, c.BaselineBest)
	raw := c.streamRound(s, w, r)
	if c.Iterations > 0 {
		raw.Octets = c.Iterations * uint64(s.Size)
	} else {
		raw.Duration = c.Duration
	}
	octets, took, err := c.stream(ctx, raw)
	return float64(octets) / float64(s.Size), took, err
}

func (c *client) streamRound(s setup, write, read int) rawRound {
	fetches := s.Op == OpRead
	return rawRound{
		Kind: rawStream, Conns: s.QPs, Write: write, Read: read, Warm: warmOctets / s.QPs,
		ToServer: !fetches || s.Bidir, ToClient: fetches || s.Bidir,
	}
}

// stream makes a round and returns how many octets went, in both directions.
func (c *client) stream(ctx context.Context, r rawRound) (octets uint64, took timed, err error) {
	var sent, received uint64
	_, arrived, err := c.bare(ctx, r, func(address string) (uint64, error) {
		conns, err := dialConns(ctx, address, &r)
		defer func() {
			for _, c := range conns {
				_ = c.Close() // the stream has ended
			}
		}()
		if err != nil {
			return 0, err
		}
		stop := context.AfterFunc(ctx, func() {
			for _, c := range conns {
				_ = c.Close() // so that nobody waits on it
			}
		})
		defer stop()
		if err := warmAll(conns); err != nil {
			return 0, err
		}
		took, err = measured(func() error {
			sent, received, err = streamAll(conns)
			return err
		})
		return 0, err
	})
	if err == nil && sent != arrived {
		err = errShort(sent, arrived)
	}
	return sent + received, took, err
}

func dialConns(ctx context.Context, address string, r *rawRound) (conns []*rawConn, err error) {
	var d net.Dialer
	for range r.Conns {
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return conns, err
		}
		rc, err := newRawConn(c, r, true)
		if err != nil {
			return conns, err
		}
		conns = append(conns, rc)
	}
	return conns, nil
}

// warmAll warms all connections side by side, as the server does.
func warmAll(conns []*rawConn) error {
	errs := make([]error, len(conns))
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() { errs[i] = c.warm(true) })
	}
	wg.Wait()
	return first(errs)
}

// streamAll moves the octets of all connections.
func streamAll(conns []*rawConn) (sent, received uint64, err error) {
	if len(conns) == 1 {
		if err := conns[0].begin(true); err != nil {
			return 0, 0, err
		}
		return conns[0].stream(true)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			failed := c.begin(true)
			var s, r uint64
			if failed == nil {
				s, r, failed = c.stream(true)
			}
			mu.Lock()
			defer mu.Unlock()
			sent, received, err = sent+s, received+r, errors.Join(err, failed)
		})
	}
	wg.Wait()
	return sent, received, err
}

// The sizes of calls that are tried for a stream.
var callSizes = []int{64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20}

// How the sizes are tried: all pairs once, then the best ones again.
const (
	tryAll   = 30 * time.Millisecond
	tryBest  = 60 * time.Millisecond
	bestOnes = 4
	tries    = 3
)

// calibrate finds the sizes of calls with which a stream is fastest, if they are
// needed.
func (c *client) calibrate(ctx context.Context, s setup) error {
	needed := c.BaselineBest || s.Size > fullCall
	if c.calls == nil {
		c.calls = &calls{}
	}
	if !needed || c.calls.write > 0 {
		return nil
	}
	type pair struct {
		calls
		rate float64
	}
	try := func(p *pair, d time.Duration) error {
		r := c.streamRound(s, p.write, p.read)
		r.Duration = d
		octets, took, err := c.stream(ctx, r)
		if err != nil {
			return fmt.Errorf("while the baseline was calibrated: %w", err)
		}
		p.rate = float64(octets) / took.seconds
		return nil
	}
	var pairs []pair
	for _, w := range callSizes {
		for _, r := range callSizes {
			p := pair{calls: calls{w, r}}
			if err := try(&p, tryAll); err != nil {
				return err
			}
			pairs = append(pairs, p)
		}
	}
	sortBy(pairs, func(p pair) float64 { return -p.rate })
	pairs = pairs[:bestOnes]
	for i := range pairs {
		var rates []float64
		for range tries {
			if err := try(&pairs[i], tryBest); err != nil {
				return err
			}
			rates = append(rates, pairs[i].rate)
		}
		pairs[i].rate = median(rates)
	}
	sortBy(pairs, func(p pair) float64 { return -p.rate })
	*c.calls = pairs[0].calls
	return nil
}
