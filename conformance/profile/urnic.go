package profile

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Urnic gets at a target that runs the test service.
type Urnic struct {
	control string
	listen  string
	timeout time.Duration
	over    network
}

// NewUrnic returns a profile for a target whose test service is at the address
// control. The target, as an Initiator, connects to the host of listen, or, if
// that is empty, to the one that the tester's control connection comes from.
func NewUrnic(control, listen string, timeout time.Duration) *Urnic {
	return &Urnic{control: control, listen: listen, timeout: timeout}
}

// OverRDP makes the target be tested over RDP, instead of MPA over TCP: its test service must have such an RNIC.
// It returns the profile.
func (u *Urnic) OverRDP() *Urnic {
	u.over = network{rdp: true}
	return u
}

// LLP returns what DDP runs on.
func (u *Urnic) LLP() conformance.LLP { return u.over.llp() }

// Name returns "urnic".
func (*Urnic) Name() string { return "urnic" }

// Offers returns everything.
func (*Urnic) Offers() (conformance.Needs, conformance.Roles) {
	return conformance.NeedBuffer | conformance.NeedRecv | conformance.NeedService, conformance.BothRoles
}

// Serial returns false: each case has a session of its own.
func (*Urnic) Serial() bool { return false }

// Begin opens a session with the test service.
func (u *Urnic) Begin(ctx context.Context, _ *wire.Tape) (conformance.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	c, err := service.Dial(ctx, u.control)
	if err != nil {
		return nil, err
	}
	if has := conformance.LLP(cmp.Or(c.Hello().LLP, service.LLPTCP)); has != u.LLP() {
		return nil, errors.Join(&OtherLLPError{Has: has, Wants: u.LLP()}, c.Close())
	}
	return &urnicSession{urnic: u, client: c}, nil
}

type urnicSession struct {
	urnic    *Urnic
	client   *service.Client
	listener int      // of the last Dial
	qp       int      // of the last Accept
	own      Listener // to which the target has connected, or nil
}

func (s *urnicSession) Service() *service.Client { return s.client }

func (s *urnicSession) Endpoint() (listener, qp int) { return s.listener, s.qp }

func (s *urnicSession) Dial(ctx context.Context, setup conformance.Setup) (net.Conn, error) {
	args := service.ListenArgs{Start: s.urnic.over.start(setup), QP: setup.QP, Recvs: recvs(setup)}
	if setup.Listen != nil {
		setup.Listen(&args)
	}
	l, err := s.client.Listen(ctx, args)
	if err != nil {
		return nil, err
	}
	s.listener, s.qp = l.Listener, 0
	return s.urnic.over.dial(ctx, l.Address, setup, s.urnic.timeout)
}

func (s *urnicSession) DialAddr(ctx context.Context, address string) (net.Conn, error) {
	return s.urnic.over.dial(ctx, address, conformance.Setup{}, s.urnic.timeout)
}

func (s *urnicSession) Accept(ctx context.Context, setup conformance.Setup) (_ net.Conn, err error) {
	host := s.urnic.listen
	if host == "" {
		host, _, err = net.SplitHostPort(s.client.LocalAddr().String())
		if err != nil {
			return nil, err
		}
	}
	if err := s.closeOwn(); err != nil {
		return nil, err
	}
	l, err := s.urnic.over.listen(ctx, net.JoinHostPort(host, "0"), setup)
	if err != nil {
		return nil, err
	}
	s.own = l
	args := service.ConnectArgs{Start: s.urnic.over.start(setup), QP: setup.QP, Recvs: recvs(setup), Address: l.Addr().String()}
	if !setup.ClientFirst && !s.urnic.over.rdp {
		args.PeerToPeer = true
		if args.RTR == nil {
			args.RTR = []string{"write"}
		}
	}
	if setup.Connect != nil {
		setup.Connect(&args)
	}
	c, err := s.client.Connect(ctx, args)
	if err != nil {
		return nil, err
	}
	s.listener, s.qp = 0, c.QP
	conn, err := accept(ctx, s.own, s.urnic.timeout)
	if err != nil || setup.Again {
		return conn, err
	}
	return conn, s.closeOwn()
}

// Again implements conformance.Session: the target may try once more by itself, in
// another way.
func (s *urnicSession) Again(ctx context.Context) (net.Conn, error) {
	if s.own == nil {
		return nil, errNoListener
	}
	return accept(ctx, s.own, s.urnic.timeout)
}

var errNoListener = errors.New("the target has not been told to connect")

func (s *urnicSession) closeOwn() error {
	if s.own == nil {
		return nil
	}
	l := s.own
	s.own = nil
	return l.Close()
}

// recvs returns the receives of a Setup; one that fits rping's messages is always
// posted.
func recvs(setup conformance.Setup) []service.Recv {
	if setup.Recvs == nil {
		return service.Recvs(conformance.RecvLen)
	}
	return service.Recvs(setup.Recvs...)
}

func (s *urnicSession) Attach(ctx context.Context, stream *conformance.Stream) error {
	if s.qp != 0 {
		stream.QP = s.qp
		_, err := s.client.Connected(ctx, s.qp, s.urnic.timeout)
		return err
	}
	a, err := s.client.Accepted(ctx, s.listener, s.urnic.timeout)
	if err != nil {
		return err
	}
	stream.QP = a.QP
	return nil
}

func (s *urnicSession) Buffer(ctx context.Context, _ *conformance.Stream, spec conformance.BufferSpec) (*conformance.Buffer, error) {
	access := spec.Access
	if access == nil {
		access = []string{service.RemoteRead, service.LocalWrite, service.RemoteWrite}
	}
	r, err := s.client.Register(ctx, service.RegisterArgs{
		Length: uint64(spec.Length), Access: access, PD: spec.PD, Base: service.Uint64(spec.Base),
		ZeroBased: spec.ZeroBased, QP: spec.OtherQP, Fill: conformance.Fill,
	})
	if err != nil {
		return nil, err
	}
	return &conformance.Buffer{STag: uint32(r.STag), TO: uint64(r.TO), Length: int(r.Length), MR: r.MR}, nil
}

func (s *urnicSession) Contents(ctx context.Context, b *conformance.Buffer) ([]byte, error) {
	return s.client.MemoryRead(ctx, b.MR, 0, b.Length)
}

func (s *urnicSession) Close() error { return errors.Join(s.client.Close(), s.closeOwn()) }
