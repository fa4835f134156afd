package rnic

import (
	"context"

	"urnic/mpa"
)

// Connect opens a connection as MPA Initiator: from Idle to RTS. The address is
// host:port, or whatever Config.LowerLayer takes for an address. When Connect
// returns nil, the peer has accepted; its private data are in Params.
//
// Otherwise it returns an *OpError that wraps the cause: a *StateError, a
// *pd.LimitError, ErrOverflow of a completion queue, an error of the network,
// of MPA (a *mpa.RejectedError if the peer rejected), or the context's. The
// queue pair is then idle, unless it was aborted or closed meanwhile, or one of
// its completion queues has overflowed.
func (q *QP) Connect(ctx context.Context, address string, p ConnParam) error {
	op := "connect to " + address
	if !q.made() {
		return notMade(op, "QP")
	}
	return q.connect(ctx, op, func(ctx context.Context, o Offer) (LLPConn, error) { return q.pd.dev.lower.Dial(ctx, address, o) }, p)
}

// ConnectVia is like Connect, but always by MPA, over a byte stream that dial opens, such as a socket that is
// already bound. It ignores Config.LowerLayer. It calls dial again if the peer wants revision 1 (mpa.Dial).
// The queue pair owns what dial returns.
func (q *QP) ConnectVia(ctx context.Context, dial mpa.DialFunc, p ConnParam) error {
	const op = "connect"
	switch {
	case !q.made():
		return notMade(op, "QP")
	case ctx == nil:
		return q.fail(op, ErrNoContext)
	case dial == nil:
		return q.fail(op, &mpa.ConfigError{Reason: "there is no function to dial with"})
	}
	return q.connect(ctx, op, func(ctx context.Context, o Offer) (LLPConn, error) { return q.pd.dev.mpa.dialVia(ctx, dial, o) }, p)
}

// A dialFunc opens a connection of a lower layer.
type dialFunc func(ctx context.Context, o Offer) (LLPConn, error)

func (q *QP) connect(ctx context.Context, op string, dial dialFunc, p ConnParam) error {
	if ctx == nil {
		return q.fail(op, ErrNoContext)
	}
	err := q.initiate(ctx, dial, p)
	if err != nil {
		q.pd.dev.stats.failed.Add(1)
		return q.fail(op, err)
	}
	q.pd.dev.stats.connected.Add(1)
	return nil
}

func (q *QP) initiate(ctx context.Context, dial dialFunc, p ConnParam) error {
	s, err := q.beginStartup(ctx, p)
	if err != nil {
		return err
	}
	defer s.end()
	conn, err := dial(s.ctx, s.offer)
	if err != nil {
		if conn != nil { // the peer must be notified
			s.refuse(conn, err)
		}
		return s.why(err)
	}
	if p.Verify != nil {
		if err := p.Verify(conn.Params()); err != nil {
			_ = conn.Abort() // err says why
			conn.Free()
			return err
		}
	}
	return s.bind(conn)
}
