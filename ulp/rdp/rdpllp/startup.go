package rdpllp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// maxEarly is how many segments may come before the answer to a request.
const maxEarly = 1024

// initiate sends the request and waits for the answer.
func initiate(ctx context.Context, c *rdp.Conn, s *shared, o rnic.Offer) (*conn, error) {
	limit := o.MPA.ReplyTimeout
	if limit == 0 {
		limit = mpa.DefaultReplyTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer came within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	if err := roomy(c); err != nil {
		return nil, err
	}
	mine := llpwire.Offer{IRD: o.IRD, ORD: o.ORD, Private: o.PrivateData}
	if err := c.Send(ctx, mine.Message(llpwire.Request)); err != nil {
		return nil, err
	}
	var early []rdp.Message
	for {
		msg, err := c.Receive(ctx)
		if errors.Is(err, machine.ErrReset) {
			return nil, &mpa.Error{Code: mpa.CodeConnectionLost, Reason: "the peer has closed the connection without an answer", Err: io.EOF}
		}
		if err != nil {
			return nil, err
		}
		k, _, body, err := llpwire.Parse(msg.Data)
		switch {
		case err != nil:
			return nil, err
		case k == llpwire.Segment || k == llpwire.End: // it has overtaken the answer
			if early = append(early, msg); len(early) > maxEarly {
				return nil, malformed("%d segments come before the answer", len(early))
			}
			continue
		case k == llpwire.Request:
			return nil, malformed("a request comes in answer to a request")
		}
		theirs, err := llpwire.ParseOffer(body)
		if err != nil {
			return nil, err
		}
		if k == llpwire.Reject {
			return nil, &mpa.RejectedError{PrivateData: theirs.Private, Enhanced: true, IRD: theirs.IRD, ORD: theirs.ORD}
		}
		conn := newConn(c, s, rnic.Params{
			Role: rnic.Initiator, Revision: mpa.Revision2, CRC: true, Enhanced: true, IRD: o.IRD, ORD: min(o.ORD, theirs.IRD),
			PeerIRD: theirs.IRD, PeerORD: theirs.ORD, PrivateData: theirs.Private,
		})
		conn.early = early
		return conn, nil
	}
}

// An arrival is a connection whose request is not in. It implements rnic.LLPArrival.
type arrival struct {
	rdp    *rdp.Conn
	shared *shared
	once   sync.Once
}

// LocalAddr implements rnic.LLPArrival.
func (a *arrival) LocalAddr() net.Addr { return a.shared.addr() }

// RemoteAddr implements rnic.LLPArrival.
func (a *arrival) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(a.rdp.RemoteHost()) }

// Close implements rnic.LLPArrival.
func (a *arrival) Close() error {
	a.once.Do(func() {
		a.rdp.Close() //nolint:errcheck // the peer may have closed it
		a.shared.leave()
	})
	return nil
}

// Receive implements rnic.LLPArrival.
func (a *arrival) Receive(ctx context.Context) (rnic.LLPRequest, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, mpa.DefaultRequestTimeout, fmt.Errorf("no request came within %v: %w", mpa.DefaultRequestTimeout, context.DeadlineExceeded))
	defer cancel()
	msg, err := a.rdp.Receive(ctx)
	if err == nil {
		err = roomy(a.rdp)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	k, _, body, err := llpwire.Parse(msg.Data)
	if err == nil && k != llpwire.Request {
		err = malformed("the first message is none of start-up")
	}
	var theirs llpwire.Offer
	if err == nil {
		theirs, err = llpwire.ParseOffer(body)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.rdp.Free(msg)
	return &incoming{arrival: a, theirs: theirs}, nil
}

// An incoming is a request that waits for its answer. It implements rnic.LLPRequest.
type incoming struct {
	*arrival
	theirs llpwire.Offer
}

// PrivateData implements rnic.LLPRequest.
func (r *incoming) PrivateData() []byte { return r.theirs.Private }

// Offer returns what the initiator offers.
func (r *incoming) Offer() rnic.Offer {
	return rnic.Offer{PrivateData: r.theirs.Private, IRD: r.theirs.IRD, ORD: r.theirs.ORD}
}

// MaxPrivateData implements rnic.LLPRequest.
func (r *incoming) MaxPrivateData() int { return llpwire.MaxPrivateData }

var (
	errGone  = errors.New("the peer has closed the connection")
	errEarly = errors.New("the peer has sent something before the answer to its request")
)

// Watch implements rnic.LLPRequest.
func (r *incoming) Watch(ctx context.Context) error {
	if err := r.rdp.AwaitMessage(ctx); err != nil {
		return nil //nolint:nilerr // the context has ended
	}
	return r.Look()
}

// Look implements rnic.LLPRequest.
func (r *incoming) Look() error {
	switch s := r.rdp.Status(); {
	case s.State != machine.Open:
		return errGone
	case s.Queued > 0:
		return errEarly
	}
	return nil
}

// Accept implements rnic.LLPRequest. IRD and ORD become what RFC 6581 §9.1 says.
func (r *incoming) Accept(ctx context.Context, o rnic.Offer) (rnic.LLPConn, error) {
	if err := checkPrivateData(o.PrivateData); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	mine := llpwire.Offer{IRD: min(o.IRD, r.theirs.ORD), ORD: min(o.ORD, r.theirs.IRD), Private: o.PrivateData}
	if r.theirs.IRD < o.MinORD {
		mine.ORD = o.MinORD
		if err := r.answer(ctx, mine.Message(llpwire.Reject)); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), lingering)
			defer cancel()
			r.Linger(ctx)
		}()
		return nil, &mpa.Error{
			Code: mpa.CodeInsufficientIRD, Clause: "RFC 6581 §9.1",
			Reason: fmt.Sprintf("the initiator takes %d reads at a time; this side needs %d", r.theirs.IRD, o.MinORD),
		}
	}
	if err := r.answer(ctx, mine.Message(llpwire.Accept)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return newConn(r.rdp, r.shared, rnic.Params{
		Role: rnic.Responder, Revision: mpa.Revision2, CRC: true, Enhanced: true, IRD: mine.IRD, ORD: mine.ORD,
		PeerIRD: r.theirs.IRD, PeerORD: r.theirs.ORD, PrivateData: r.theirs.Private,
	}), nil
}

// Reject implements rnic.LLPRequest.
func (r *incoming) Reject(ctx context.Context, private []byte) error {
	if err := checkPrivateData(private); err != nil {
		return err
	}
	mine := llpwire.Offer{Private: private}
	if err := r.answer(ctx, mine.Message(llpwire.Reject)); err != nil {
		return errors.Join(err, r.Close())
	}
	return nil
}

// answer sends an answer, if the peer still waits for it.
func (r *incoming) answer(ctx context.Context, b []byte) error {
	if err := r.Look(); err != nil {
		return err
	}
	return r.rdp.Send(ctx, b)
}

// Linger implements rnic.LLPRequest.
func (r *incoming) Linger(ctx context.Context) {
	for r.rdp.Wait(ctx, func(s rdp.Status) bool { return s.State != machine.Open || s.Queued > 0 }) == nil && r.rdp.Status().State == machine.Open {
		if msg, err := r.rdp.TryReceive(); err == nil {
			r.rdp.Free(msg)
		}
	}
	r.Close() //nolint:errcheck // it is over in any case
}
