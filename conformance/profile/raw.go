package profile

import (
	"context"
	"errors"
	"net"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Raw gets at a target of which nothing is known but where it listens, or that it
// connects again and again.
type Raw struct {
	target   string
	listener Listener
	timeout  time.Duration
	over     network
}

// NewRaw returns a profile for a target that listens at an address, or connects to
// the listener, which may be nil, within the timeout. The listener stays the
// caller's.
func NewRaw(target string, listener Listener, timeout time.Duration) *Raw {
	return &Raw{target: target, listener: listener, timeout: timeout}
}

// OverRDP makes the profile connect to the target over RDP, instead of MPA over TCP. The listener must be one
// of package rdpconn. It returns the profile.
func (r *Raw) OverRDP() *Raw {
	r.over = network{rdp: true}
	return r
}

// LLP returns what DDP runs on.
func (r *Raw) LLP() conformance.LLP { return r.over.llp() }

// Name returns "raw".
func (*Raw) Name() string { return "raw" }

// Offers returns the roles, and nothing that cases need.
func (r *Raw) Offers() (conformance.Needs, conformance.Roles) { return 0, roles(r.target, r.listener) }

// roles says in which roles a target can be had.
func roles(target string, listener Listener) conformance.Roles {
	var roles conformance.Roles
	if target != "" {
		roles |= conformance.Responder
	}
	if listener != nil {
		roles |= conformance.Initiator
	}
	return roles
}

// Serial reports whether cases share something: the listener.
func (r *Raw) Serial() bool { return r.listener != nil }

// Begin makes ready for one case.
func (r *Raw) Begin(context.Context, *wire.Tape) (conformance.Session, error) {
	return &rawSession{raw: r}, nil
}

type rawSession struct{ raw *Raw }

// errAsked says that a Setup asks for what the profile can't bring about. Cases that
// do so say that they need the test service, so that it is seldom seen.
var errAsked = errors.New("the profile has no influence on how the target starts its end")

// errNoMemory says that there is no memory to be had.
var errNoMemory = errors.New("the profile knows of no memory of the target")

func (s *rawSession) Dial(ctx context.Context, setup conformance.Setup) (net.Conn, error) {
	if setup.Asks() {
		return nil, errAsked
	}
	return s.raw.over.dial(ctx, s.raw.target, setup, s.raw.timeout)
}

func (s *rawSession) DialAddr(ctx context.Context, address string) (net.Conn, error) {
	return s.raw.over.dial(ctx, address, conformance.Setup{}, s.raw.timeout)
}

func (s *rawSession) Accept(ctx context.Context, setup conformance.Setup) (net.Conn, error) {
	if setup.Asks() || setup.MSS != 0 {
		return nil, errAsked
	}
	return s.newest(ctx)
}

// newest accepts a connection. Who connects again and again has given up those that
// stand before another one: they have waited while the target was tried as the
// Responder.
func (s *rawSession) newest(ctx context.Context) (net.Conn, error) {
	conn, err := accept(ctx, s.raw.listener, s.raw.timeout)
	for err == nil {
		newer, none := accept(ctx, s.raw.listener, time.Millisecond)
		if none != nil {
			break
		}
		_ = conn.Close() // nobody is there any more
		conn = newer
	}
	return conn, err
}

func (s *rawSession) Again(ctx context.Context) (net.Conn, error) {
	return accept(ctx, s.raw.listener, s.raw.timeout)
}

// accept accepts a connection within the timeout, or until the context ends.
func accept(ctx context.Context, l Listener, timeout time.Duration) (net.Conn, error) {
	if err := l.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := l.Accept()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

// Attach waits until a target that is the Initiator has sent something, as nothing
// may be sent to it before (RFC 5044 §7.1.2 rule 4). RDP has no such rule.
func (s *rawSession) Attach(_ context.Context, stream *conformance.Stream) error {
	if stream.Role != conformance.Initiator || stream.Spoken || stream.OverRDP() {
		return nil
	}
	_, err := stream.Next(s.raw.timeout)
	return err
}

func (s *rawSession) Buffer(context.Context, *conformance.Stream, conformance.BufferSpec) (*conformance.Buffer, error) {
	return nil, errNoMemory
}

func (s *rawSession) Contents(context.Context, *conformance.Buffer) ([]byte, error) {
	return nil, conformance.ErrNoSight
}

func (s *rawSession) Service() *service.Client { return nil }

func (s *rawSession) Endpoint() (listener, qp int) { return 0, 0 }

func (s *rawSession) Close() error { return nil }
