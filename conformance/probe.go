package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"urnic/conformance/wire"
)

// ErrNotIWARP says that what listens at the target's address is no iWARP endpoint.
var ErrNotIWARP = errors.New("what listens there is no iWARP endpoint")

// ErrRejects says that the target is an iWARP endpoint that rejects ordinary Requests, so
// that no more can be learned of it.
var ErrRejects = errors.New("the target rejects an ordinary MPA Request")

// ErrUnanswered says that the target accepts a connection, and does not answer.
var ErrUnanswered = errors.New("the target accepts connections, but does not answer an MPA Request")

// keyPrefix is how both keys of start-up begin. A target whose Reply has the wrong one is
// still an iWARP endpoint, with a fault that cases find.
const keyPrefix = "MPA ID "

// Probe looks whether the target, as the Responder, is an iWARP endpoint that accepts an
// ordinary Request (RFC 5044 §7.1.2), of revision 2 or, if it is not accepted, of revision 1. Its
// error wraps ErrNotIWARP, ErrRejects or ErrUnanswered, or is that of connecting; it is the
// context's cause if that ends. An answer may take as long as timeout.
func Probe(ctx context.Context, p Profile, timeout time.Duration) error {
	err := probe(ctx, p, Setup{}, timeout)
	if p.LLP() == TCP && (errors.Is(err, ErrNotIWARP) || errors.Is(err, ErrRejects)) {
		if probe(ctx, p, Setup{Revision: 1}, timeout) == nil {
			err = nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func probe(ctx context.Context, p Profile, setup Setup, timeout time.Duration) (err error) {
	connecting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	session, err := p.Begin(connecting, wire.NewTape())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	nc, err := session.Dial(connecting, setup)
	if err != nil {
		return err
	}
	conn := wire.NewConn(nc, wire.NewTape(), nil)
	defer func() { err = errors.Join(err, conn.Close()) }()
	// The reader sees it as silence.
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	if err := conn.SendFrame(RequestFor(setup), ""); err != nil {
		return err
	}
	reply, err := conn.ReadFrame(timeout)
	if p.LLP() == RDP {
		return judgeAnswer(reply, err, timeout)
	}
	return judgeReply(reply, conn.Buffered(), err, timeout)
}

// judgeReply says what an answer to an ordinary Request, or none, tells of the target. rest
// is how many bytes came that are no frame.
func judgeReply(reply wire.Frame, rest int, err error, timeout time.Duration) error {
	end, ended := errors.AsType[*wire.EndError](err)
	switch {
	case reply.Key != "" && !strings.HasPrefix(reply.Key, keyPrefix):
		return fmt.Errorf("%w: its answer to an MPA Request begins with %q", ErrNotIWARP, reply.Key)
	case reply.Key != "" && err == nil && reply.Flags&wire.FlagR != 0:
		return ErrRejects
	case reply.Key != "": // a Reply, whatever is wrong with it
		return nil
	case rest > 0:
		return fmt.Errorf("%w: it answers an MPA Request with %d bytes that are no MPA Reply", ErrNotIWARP, rest)
	case ended:
		return fmt.Errorf("%w: it closes the connection in answer to an MPA Request (%w)", ErrNotIWARP, end)
	case errors.Is(err, wire.ErrSilence), errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w within %v", ErrUnanswered, timeout)
	}
	return err
}

// judgeAnswer is judgeReply over RDP.
func judgeAnswer(answer wire.Frame, err error, timeout time.Duration) error {
	end, ended := errors.AsType[*wire.EndError](err)
	switch {
	case err == nil && answer.Flags&wire.FlagR != 0:
		return &probeError{ErrRejects, "the target rejects an ordinary request"}
	case errors.Is(err, wire.ErrMessage):
		return &probeError{ErrNotIWARP, fmt.Sprintf("what listens there speaks RDP, but not DDP over it: %v", err)}
	case ended:
		return &probeError{ErrNotIWARP, fmt.Sprintf("what listens there speaks RDP, but closes the connection in answer to a request of DDP over it: %v", end)}
	case errors.Is(err, wire.ErrSilence), errors.Is(err, net.ErrClosed):
		return &probeError{ErrUnanswered, fmt.Sprintf("the target accepts connections of RDP, but does not answer a request within %v", timeout)}
	}
	return err
}

// A probeError is of one of the kinds above, in other words.
type probeError struct {
	kind error
	text string
}

// Error returns the words.
func (e *probeError) Error() string { return e.text }

// Unwrap returns the kind.
func (e *probeError) Unwrap() error { return e.kind }
