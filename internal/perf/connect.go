package perf

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

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

// acceptConnections accepts connections and closes them, until as many have come
// as the client says to have made.
func (s *session) acceptConnections(ctx context.Context) *task {
	ctx, cancel := context.WithCancelCause(ctx)
	var accepted, expected atomic.Uint64
	const unknown = 1<<64 - 1
	expected.Store(unknown)
	wait := s.background(func() error {
		err := s.group.acceptAll(ctx, s.next, func() bool { return accepted.Add(1) == expected.Load() })
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

// acceptAll is the server's loop of a connection test. last is told of each
// connection, and says whether it was the last one.
func (g *group) acceptAll(ctx context.Context, next func(context.Context) (connection, error), last func() bool) error {
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
		if last() {
			return nil
		}
	}
}

// connectDepth is how long the queues of the queue pairs are that are connected
// and closed.
const connectDepth = 16

func (g *group) connectQP(cq *rnic.CQ) (*rnic.QP, error) {
	return g.pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: connectDepth, MaxRecvWR: connectDepth})
}

// connectAll is the client's loop: queue pairs are made, connected, disconnected
// and closed.
func (c *client) connectAll(ctx context.Context, g *group, r round) (count uint64, err error) {
	cq, err := g.pd.Device().CreateCQ(rnic.CQAttr{Entries: connectDepth})
	if err != nil {
		return 0, err
	}
	defer func() { _ = cq.Close() }() // no queue pair is left
	hello, cfg := dataHello(c.token, 0), g.mpa()
	for deadline := time.Now().Add(r.Duration); r.Iterations == 0 || count < r.Iterations; count++ {
		if r.Iterations == 0 && count > 0 && !time.Now().Before(deadline) {
			break
		}
		qp, err := g.connectQP(cq)
		if err != nil {
			return count, err
		}
		if err = qp.Connect(ctx, c.address, g.param(hello, &cfg)); err == nil {
			err = qp.Disconnect(ctx)
		}
		if err := errors.Join(err, qp.Close()); err != nil {
			return count, &lostError{err}
		}
	}
	return count, nil
}

// dialAll is the plain loop that connectAll is compared with.
func dialAll(ctx context.Context, address string, r round) (count uint64, err error) {
	var d net.Dialer
	for deadline := time.Now().Add(r.Duration); r.Iterations == 0 || count < r.Iterations; count++ {
		if r.Iterations == 0 && count > 0 && !time.Now().Before(deadline) {
			break
		}
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			return count, err
		}
	}
	return count, nil
}
