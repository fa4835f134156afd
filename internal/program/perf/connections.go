package perf

import (
	"context"
	"errors"
	"fmt"

	"urnic/internal/host/plural"
)

// connections measures how many connections are made and closed in a second.
func (c *client) connections(ctx context.Context, s setup) (result Result, err error) {
	g, err := c.open(ctx, s)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.shutAfter(ctx, g, err)) }()
	c.begin()
	var ours, bare connectTally
	for range c.Rounds {
		var made uint64
		r := c.limits()
		took, got, err := c.round(ctx, g, r, func() (_ uint64, err error) {
			made, err = c.connectAll(ctx, g, r)
			return made, err
		})
		if err != nil {
			return result, err
		}
		if got.Messages != made {
			return result, fmt.Errorf("the client made %s, and the server has accepted %d: %w", plural.Count(made, "connection"), got.Messages, errProtocol)
		}
		ours.add(float64(made), took)
		c.roundOver()
		if !c.Baseline {
			continue
		}
		took, made, err = c.bareConnections(ctx, s.QPs, func(address string) (uint64, error) {
			return dialAll(ctx, address, s.QPs, r)
		})
		if err != nil {
			return result, err
		}
		bare.add(float64(made), took)
		c.roundOver()
	}
	result = ours.result(s.QPs)
	if c.Baseline {
		result.compare(baselineOf(kindConnections, bare.result(s.QPs)))
	}
	return result, nil
}

type connectTally struct{ tally }

func (t *connectTally) result(qps int) Result {
	r := t.tally.result(setup{QPs: qps}, true)
	r.ConnectionsPerSecond, r.MessagesPerSecond = r.MessagesPerSecond, 0
	return r
}
