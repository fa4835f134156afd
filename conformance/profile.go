package conformance

import (
	"context"
	"net"

	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A Profile is a way to get at a target: what runs there, and what it lets the
// tester do.
type Profile interface {
	// Name is what --profile calls it.
	Name() string
	// Offers says what cases may need, and in which roles the target can be had.
	Offers() (Needs, Roles)
	// Begin makes ready for one case. Serial profiles run one case at a time.
	Begin(ctx context.Context, tape *wire.Tape) (Session, error)
	Serial() bool
	// LLP is what DDP runs on, at the target and here.
	LLP() LLP
}

// A Session is the use of a target for one case. Close ends it, with all that it
// has opened.
type Session interface {
	// Dial opens a connection to the target, which must be the Responder that
	// the Setup requests: one of TCP, or a wire.MessageConn of RDP.
	Dial(ctx context.Context, setup Setup) (net.Conn, error)
	// DialAddr opens one to an address at which the target is known to listen.
	DialAddr(ctx context.Context, address string) (net.Conn, error)
	// Accept has the target connect as the Initiator that the Setup asks for, and
	// returns the connection.
	Accept(ctx context.Context, setup Setup) (net.Conn, error)
	// Again returns the next connection that the target opens by itself, after one
	// that Accept has returned.
	Again(ctx context.Context) (net.Conn, error)
	// Attach is called when a stream is in full operation, before the case gets it.
	Attach(ctx context.Context, s *Stream) error
	// Buffer opens memory of the target for the stream.
	Buffer(ctx context.Context, s *Stream, spec BufferSpec) (*Buffer, error)
	// Contents returns what stands in the memory of a buffer, or ErrNoSight if the
	// profile can't see that.
	Contents(ctx context.Context, b *Buffer) ([]byte, error)
	// Endpoint returns the test service's number of the last connection's listener,
	// if Dial has opened it, or of its queue pair, if Accept has; else zeros.
	Endpoint() (listener, qp int)
	// Service returns the target's test service, or nil.
	Service() *service.Client
	Close() error
}

// An Exporter is the Session of a profile that offers NeedExport.
type Exporter interface {
	// Root returns the file handle of the directory.
	Root(ctx context.Context) ([]byte, error)
}

// A Setup says how a connection is started. The zero Setup is an ordinary one:
// revision 2 with IRD and ORD of DefaultDepth, CRCs, no markers; with a target
// that is the Initiator, and has the test service, in the peer-to-peer model
// with a Write as RTR, so that either side may continue.
//
// What asks something of the target needs the test service.
type Setup struct {
	// The target's end: what is said of start-up in either role, of its queue pair
	// and of the receives that it has posted.
	Start service.Start
	QP    service.QPAttr
	Recvs []uint32
	// ClientFirst keeps a target that is the Initiator from the peer-to-peer model:
	// nothing can be sent to it before it has sent something.
	ClientFirst bool
	// Listen and Connect, if not nil, change the rest.
	Listen  func(*service.ListenArgs)
	Connect func(*service.ConnectArgs)

	// Again has the tester listen on, as the target, an Initiator, may connect once
	// more by itself: see T.AcceptAgain.
	Again bool

	// The tester's end.
	Revision   uint8 // of its Request; 0 stands for 2
	NoCRC      bool  // it does not ask for CRCs
	Markers    bool  // it asks for markers
	IRD, ORD   int   // 0 stands for DefaultDepth, negative numbers for 0
	Private    []byte
	PeerToPeer bool // as Initiator, it asks for the peer-to-peer model, and sends a Write as RTR
	// Unsequenced lets RDP deliver in the order of arrival, in both directions.
	Unsequenced bool
	// MSS, if not 0, is how large TCP segments the tester says that it takes,
	// in bytes of TCP payload and options. Not every tester's machine can say
	// that, nor a listener that is there already.
	MSS int
}

// Asks reports whether the Setup asks something of the target's end.
func (s Setup) Asks() bool {
	st := s.Start
	return st.CRC != "" || st.Markers || st.IRD != nil || st.ORD != nil || st.RTR != nil || st.MULPDU != 0 ||
		st.PrivateData != nil || s.QP != (service.QPAttr{}) || s.Recvs != nil || s.Listen != nil || s.Connect != nil
}

// DefaultDepth is the IRD and ORD of either side if nothing else is said.
const DefaultDepth = 16

// depth returns the number that stands for an IRD or ORD of a Setup.
func depth(n int) uint16 {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return DefaultDepth
	}
	return uint16(n)
}
