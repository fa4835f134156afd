package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"urnic/internal/host/plural"
	"urnic/mpa"
	"urnic/rnic"
)

// param returns how the connections of a case are made.
func (g *group) param(privateData []byte, cfg *mpa.Config) rnic.ConnParam {
	p := rnic.ConnParam{PrivateData: privateData, IRD: -1, ORD: -1, MPA: cfg}
	if g.Op == OpRead || g.Op == OpAtomic {
		n := min(g.Depth, rnic.MaxDepth)
		if g.active {
			p.ORD = n
		}
		if g.peerActive {
			p.IRD = n
		}
	}
	return p
}

func errConnecting(n int) error {
	return fmt.Errorf("%s at a time: must be 1 to %d", plural.Count(n, "connection"), MaxConnecting)
}

// acceptConnections accepts connections and closes them, as many at a time as the
// client makes, until as many have come as it says to have made.
func (s *session) acceptConnections(ctx context.Context) *task {
	ctx, cancel := context.WithCancelCause(ctx)
	var accepted, expected atomic.Uint64
	const unknown = 1<<64 - 1
	expected.Store(unknown)
	wait := s.background(func() error {
		err := together(ctx, s.group.QPs, func(ctx context.Context, _ int) error {
			return s.group.acceptAll(ctx, s.next, func() {
				if accepted.Add(1) == expected.Load() {
					cancel(errAllMade)
				}
			})
		})
		if errors.Is(err, errAllMade) {
			return nil
		}
		return err
	})
	return &task{
		stop: func(m *message) (*result, error) {
			expected.Store(m.Made)
			if accepted.Load() >= m.Made {
				cancel(errAllMade)
			}
			err := wait()
			cancel(nil)
			return &result{Messages: accepted.Load()}, err
		},
		done: func() {
			_ = wait() // the session has an error of its own
			cancel(nil)
		},
	}
}

var errAllMade = errors.New("all connections are made")

// acceptAll is a loop of the server's in a connection test, until the context
// ends. made is notified of each connection.
func (g *group) acceptAll(ctx context.Context, next func(context.Context) (connection, error), made func()) error {
	cq, err := g.pd.Device().CreateCQ(rnic.CQAttr{Entries: connectDepth})
	if err != nil {
		return err
	}
	defer func() { _ = cq.Close() }() // no queue pair is left
	cfg := g.mpa()
	for {
		c, err := next(ctx)
		if err != nil {
			return err
		}
		qp, err := g.connectQP(cq)
		if err != nil {
			return errors.Join(err, c.Close())
		}
		if err = c.Accept(ctx, qp, g.param(nil, &cfg)); err == nil {
			err = qp.Disconnect(ctx)
		}
		if err := errors.Join(err, qp.Close()); err != nil {
			return err
		}
		made()
	}
}

// connectDepth is how long the queues of the queue pairs are that are connected
// and closed.
const connectDepth = 16

func (g *group) connectQP(cq *rnic.CQ) (*rnic.QP, error) {
	return g.pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: connectDepth, MaxRecvWR: connectDepth})
}

// connectAll makes the connections of a round: in each loop, queue pairs are
// made, connected, disconnected and closed one after the other.
func (c *client) connectAll(ctx context.Context, g *group, r round) (made uint64, err error) {
	hello, cfg := dataHello(c.token, 0), g.mpa()
	return r.makeAll(ctx, g.QPs, func(ctx context.Context, more func() bool) error {
		cq, err := g.pd.Device().CreateCQ(rnic.CQAttr{Entries: connectDepth})
		if err != nil {
			return err
		}
		defer func() { _ = cq.Close() }() // no queue pair is left
		for more() {
			qp, err := g.connectQP(cq)
			if err != nil {
				return err
			}
			if err = qp.Connect(ctx, c.address, g.param(hello, &cfg)); err == nil {
				err = qp.Disconnect(ctx)
			}
			if err := errors.Join(err, qp.Close()); err != nil {
				return &lostError{err}
			}
		}
		return nil
	})
}

// dialAll is the plain way that connectAll is compared with.
func dialAll(ctx context.Context, address string, loops int, r round) (made uint64, err error) {
	return r.makeAll(ctx, loops, func(ctx context.Context, more func() bool) error {
		var d net.Dialer
		for more() {
			c, err := d.DialContext(ctx, "tcp", address)
			if err == nil {
				err = c.Close()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// makeAll runs loops that make the connections of a round together: one each
// time that more says so, and at least one of them all.
func (r *round) makeAll(ctx context.Context, loops int, loop func(ctx context.Context, more func() bool) error) (made uint64, err error) {
	var begun atomic.Uint64
	deadline := time.Now().Add(r.Duration)
	more := func() bool {
		switch n := begun.Add(1); {
		case r.Iterations > 0 && n <= r.Iterations, r.Iterations == 0 && (n == 1 || time.Now().Before(deadline)):
			return true
		}
		begun.Add(^uint64(0)) // not this one
		return false
	}
	err = together(ctx, loops, func(ctx context.Context, _ int) error { return loop(ctx, more) })
	return begun.Load(), err
}
