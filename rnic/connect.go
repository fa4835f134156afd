package rnic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/stag"
)

// Connect opens a connection to host:port as MPA Initiator: from Idle to RTS.
// When it returns nil, the peer has accepted; its private data are in Params.
//
// It returns an *OpError that wraps what went wrong: a *StateError, a
// *pd.LimitError, ErrOverflow of a completion queue, an error of the network, of
// MPA (a *mpa.RejectedError if the peer rejected), or the context's. The queue
// pair is idle then, unless it was aborted or closed meanwhile, or a completion
// queue of it has overflowed.
func (q *QP) Connect(ctx context.Context, address string, p ConnParam) error {
	op := "connect to " + address
	if !q.made() {
		return notMade(op, "QP")
	}
	return q.connect(ctx, op, func(ctx context.Context) (net.Conn, error) { return q.pd.dev.network.Dial(ctx, address) }, p)
}

// ConnectVia is Connect over a byte stream that dial opens, such as a socket that
// is bound already. It is called again if the peer wants revision 1 (mpa.Dial).
// What it returns belongs to the queue pair.
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
	return q.connect(ctx, op, dial, p)
}

func (q *QP) connect(ctx context.Context, op string, dial mpa.DialFunc, p ConnParam) error {
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

func (q *QP) initiate(ctx context.Context, dial mpa.DialFunc, p ConnParam) error {
	s, err := q.beginStartup(ctx, p)
	if err != nil {
		return err
	}
	defer s.end()
	recorded := func(ctx context.Context) (net.Conn, error) {
		c, err := dial(ctx)
		if err == nil {
			s.record(c, true)
		}
		return c, err
	}
	conn, err := mpa.Dial(s.ctx, recorded, s.cfg)
	if err != nil {
		if conn != nil { // MPA says that the Responder must be told
			s.refuse(conn, err)
		}
		return s.why(err)
	}
	if p.Verify != nil {
		if err := p.Verify(conn.Params()); err != nil {
			_ = conn.Abort() // err says why
			return err
		}
	}
	return s.bind(conn)
}

// A startup is a connection of a queue pair that is on its way to RTS.
type startup struct {
	qp     *QP
	ctx    context.Context // ends with the caller's and the queue pair, which the device closes
	cancel context.CancelCauseFunc
	cfg    mpa.Config
	held   []amount
	stream *capture.Stream
	bound  bool
	done   chan struct{} // closed when the queue pair is free again
}

// beginStartup reserves the queue pair, and what the connection will hold.
func (q *QP) beginStartup(ctx context.Context, p ConnParam) (*startup, error) {
	d := q.pd.dev
	cfg, err := p.mpa(d)
	if err != nil {
		return nil, err
	}
	s := &startup{qp: q, cfg: cfg, done: make(chan struct{})}
	if d.record != nil {
		s.cfg.Recorder = recorder{s}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, ErrClosed
	case q.state != Idle || q.starting != nil:
		return nil, fmt.Errorf("%w (%w)", ErrNotIdle, &StateError{State: q.state, Err: q.err})
	}
	if err := q.join(); err != nil {
		return nil, err
	}
	// Read queues are each stream's own (RFC 5040 §8.1.2 rule 7), and counted.
	for _, a := range []amount{{pd.InboundReads, uint64(cfg.IRD)}, {pd.OutboundReads, uint64(cfg.ORD)}} {
		if err := s.hold(a.resource, a.n); err != nil {
			s.release()
			return nil, err
		}
	}
	q.starting = s
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s, nil
}

// hold reserves what the connection will hold.
func (s *startup) hold(r pd.Resource, n uint64) error {
	err := s.qp.pd.domain.Reserve(r, n)
	if err == nil {
		s.held = append(s.held, amount{r, n})
	}
	return err
}

func (s *startup) release() {
	for _, a := range s.held {
		s.qp.pd.domain.Release(a.resource, a.n)
	}
}

// end gives the queue pair free, if it did not get a stream.
func (s *startup) end() {
	s.cancel(nil)
	if !s.bound {
		s.release()
		if s.stream != nil {
			s.stream.End()
		}
		s.qp.mu.Lock()
		s.qp.starting = nil
		s.qp.mu.Unlock()
	}
	close(s.done)
}

// record begins the recording of a byte stream.
func (s *startup) record(c net.Conn, initiator bool) {
	if s.stream != nil { // of a first try with another revision
		s.stream.End()
	}
	s.stream = s.qp.pd.dev.recordStream(c, initiator)
}

// bind gives the queue pair its stream.
func (s *startup) bind(conn *mpa.Conn) error {
	var l *link
	var err error
	if ird := conn.Params().IRD; ird > s.cfg.IRD { // 1 in place of 0, for a Read as RTR (RFC 6581 §9.1)
		err = s.hold(pd.InboundReads, uint64(ird-s.cfg.IRD))
	}
	if err == nil {
		l, err = s.qp.bind(conn, s.stream, s.held)
	}
	if err != nil {
		s.refuse(conn, err)
		return err
	}
	s.bound = true
	l.kick() // the RTR, and requests that were posted before
	return nil
}

// why says whether it was the device or the queue pair that ended a start-up.
func (s *startup) why(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// refuse tells a Responder why this Initiator can't go on after all, and closes
// the connection. A Responder has no right to send yet (RFC 5044 §7.1.2 rule 4),
// and just closes.
func (s *startup) refuse(conn *mpa.Conn, why error) {
	if conn.Params().Role == mpa.Initiator {
		limit := time.AfterFunc(s.qp.pd.dev.cfg.CloseTimeout, func() { _ = conn.Abort() })
		defer limit.Stop()
		if sendTerminate(conn, startupCode(why)) == nil {
			// Until the peer has closed, or nobody wants to wait for that.
			stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
			defer stop()
			_ = conn.Discard()
		}
	}
	_ = conn.Close() // it is of no use any more
}

// recordStream begins the recording of a byte stream, if the device records.
func (d *Device) recordStream(c net.Conn, initiator bool) *capture.Stream {
	if d.record == nil {
		return nil
	}
	return d.record.Stream(capture.AddrPort(c.LocalAddr()), capture.AddrPort(c.RemoteAddr()), initiator)
}

// startupCode returns the code of the Terminate for an error of start-up: its
// own, or "when it encounters any error locally for which the special Error Code
// is not defined" (RFC 6581 §9.3) that one.
func startupCode(err error) rdmap.TermCode {
	if e := asMPA(err); e != nil {
		return rdmap.TermCode(e.TermWord())
	}
	return rdmap.TermCode(mpa.CodeLocalCatastrophic.TermWord())
}

// sendTerminate sends a Terminate as the only message of a stream, and ends this
// side's half.
func sendTerminate(conn *mpa.Conn, code rdmap.TermCode) error {
	s := rdmap.NewStream(conn, silent{}, rdmap.Config{Memory: new(stag.Table)})
	s.Fail(&rdmap.Error{Code: code})
	if _, err := s.Transmit(silent{}); err != nil {
		return err
	}
	return s.CloseWrite() // when all is out
}
