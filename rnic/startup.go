package rnic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic/internal/life"
	"urnic/stag"
)

// A startup is a connection of a queue pair that is being set up.
type startup struct {
	attempt
	qp    *QP
	ctx   context.Context // ends with the caller's and the queue pair, which the device closes
	offer Offer
	held  []amount
	bound bool
}

// beginStartup reserves the queue pair, and what the connection will hold.
func (q *QP) beginStartup(ctx context.Context, p ConnParam) (*startup, error) {
	d := q.pd.dev
	offer, err := p.offer(&d.cfg)
	if err != nil {
		return nil, err
	}
	s := &startup{attempt: attempt{done: make(chan struct{})}, qp: q, offer: offer}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, ErrClosed
	case q.life.State() != life.Idle || q.starting != nil:
		return nil, fmt.Errorf("%w (%w)", ErrNotIdle, &StateError{State: State(q.life.State()), Err: q.life.Why()})
	}
	if err := q.join(); err != nil {
		return nil, err
	}
	// Each stream has its own Read queues (RFC 5040 §8.1.2 rule 7), which are
	// counted.
	for _, a := range []amount{{pd.InboundReads, uint64(offer.IRD)}, {pd.OutboundReads, uint64(offer.ORD)}} {
		if err := s.hold(a.resource, a.n); err != nil {
			s.release()
			return nil, err
		}
	}
	q.starting = &s.attempt
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

// end releases the queue pair, if it did not get a stream.
func (s *startup) end() {
	s.cancel(nil)
	if !s.bound {
		s.release()
		s.qp.mu.Lock()
		s.qp.starting = nil
		s.qp.mu.Unlock()
	}
	close(s.done)
}

// bind gives the queue pair its stream.
func (s *startup) bind(conn LLPConn) error {
	var l *link
	var err error
	if ird := conn.Params().IRD; ird > s.offer.IRD { // 1 in place of 0, for a Read as RTR (RFC 6581 §9.1)
		err = s.hold(pd.InboundReads, uint64(ird-s.offer.IRD))
	}
	if err == nil {
		l, err = s.qp.bind(conn, s.held)
	}
	if err != nil {
		s.refuse(conn, err)
		return err
	}
	s.bound = true
	l.driver.Kick() // the RTR, and requests that were posted before
	return nil
}

// why says whether the device or the queue pair has ended a start-up.
func (s *startup) why(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// refuse notifies a Responder why this Initiator can't continue after all, and
// closes the connection. A Responder must not send yet (RFC 5044 §7.1.2 rule
// 4), and just closes.
func (s *startup) refuse(conn LLPConn, why error) {
	if conn.Params().Role == mpa.Initiator {
		limit := time.AfterFunc(s.qp.pd.dev.cfg.CloseTimeout, func() { _ = conn.Abort() })
		defer limit.Stop()
		if sendTerminate(conn, startupCode(why)) == nil {
			// Until the peer has closed, or the wait is canceled.
			stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
			defer stop()
			_ = conn.Discard()
		}
	}
	_ = conn.Close() // it is of no more use
	conn.Free()
}

// startupCode returns the code of the Terminate for an error of start-up: the
// code of the error, or, "when it encounters any error locally for which the
// special Error Code is not defined" (RFC 6581 §9.3), a local catastrophic
// error.
func startupCode(err error) rdmap.TermCode {
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		return rdmap.TermCode(e.TermWord())
	}
	return rdmap.TermCode(mpa.CodeLocalCatastrophic.TermWord())
}

// sendTerminate sends a Terminate as the only message of a stream, and ends this
// side's half.
func sendTerminate(conn LLPConn, code rdmap.TermCode) error {
	s := rdmap.NewStream(conn, silent{}, rdmap.Config{Memory: new(stag.Table)})
	s.Fail(&rdmap.Error{Code: code})
	if _, err := s.Transmit(silent{}); err != nil {
		return err
	}
	return s.CloseWrite() // when all is sent
}
