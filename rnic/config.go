package rnic

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"urnic/internal/door/policy"
	"urnic/internal/host/listen"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
)

// A Network opens and accepts byte streams. The RNIC passes the errors of its
// methods on.
type Network interface {
	Dial(ctx context.Context, address string) (net.Conn, error)
	Listen(ctx context.Context, address string) (net.Listener, error)
}

// Config says how a Device works. The zero Config is ready for use.
type Config struct {
	Name string // human-readable; "" stands for "urnic0"

	// Limits bounds what the device holds, DomainLimits what each protection
	// domain holds. Zeros stand for the defaults of package pd.
	//
	// When pd.HalfOpen is used up, a new connection replaces the oldest one
	// from the address that has most. When pd.StreamOctets is exceeded, streams
	// end with ErrStalled, those first whose peers have stalled longest. A peer
	// must have stalled for more than five seconds; at twice the limit, for
	// more than one.
	Limits, DomainLimits pd.Limits

	// MaxSGE and the others lower the limits of single objects: entries of an
	// SGL, bytes of inline data, work requests of one queue, entries of one
	// completion queue, IRD and ORD of one queue pair. Zeros stand for the
	// constants of this package, which are the maximum. Attr reports the
	// effective values. They also lower the defaults.
	MaxSGE, MaxInline, MaxWR, MaxCQE, MaxIRD, MaxORD int

	// MPA is the template for connections: revision, CRC policy, markers, the
	// peer-to-peer model, sizes and time limits. Its IRD, ORD, private data and
	// recorder are not used.
	MPA mpa.Config

	Network Network // nil stands for TCP

	// LowerLayer, if not nil, replaces MPA over Network. QP.ConnectVia and
	// Device.ListenOn still use MPA.
	LowerLayer LowerLayer

	// CloseTimeout bounds how long a stream may take to end, gracefully or
	// after a Terminate, before it is reset. Zero stands for
	// DefaultCloseTimeout. It can't be negative.
	CloseTimeout time.Duration

	// AnswerTimeout bounds how long a connection request may wait for the
	// program's answer, from its arrival, before it is dropped. Zero stands for
	// DefaultAnswerTimeout. It can't be negative.
	AnswerTimeout time.Duration

	// Record, if not nil, gets a pcapng recording of all that the device sends
	// and receives, with synthetic Ethernet, IP and TCP headers. Any goroutine
	// may write to it, one at a time, until Device.Close returns: at the end of
	// a stream, and otherwise within a fifth of a second. Each write ends at
	// the end of a packet, so a recording is readable even if the program is
	// killed.
	Record io.Writer

	// Trace, if not nil, is called for each message with its verdict. It must be
	// quick. It must not close or invalidate the memory of a message that is being
	// sent: that would wait for the message.
	Trace  func(Trace)
	Logger *slog.Logger // nil stands for no log

	policy policy.Policy // for all objects without one; nil stands for the strict one
}

// The limits of single objects, which a Device reports with Attr.
const (
	MaxSGE      = 32      // entries of an SGL
	MaxInline   = 1 << 10 // bytes of inline data
	MaxWR       = 1 << 15 // work requests of one queue
	MaxCQE      = 1 << 22 // entries of one completion queue
	MaxDepth    = 128     // IRD or ORD of one queue pair
	MaxMessage  = 1<<32 - 1
	MaxReadSGE  = 1    // a Read has one sink, unless QPAttr.SplitReads
	eventsKept  = 4096 // asynchronous events that were not fetched
	acceptQueue = 128  // requests of one listener that Accept has not returned
)

// StreamBuffers is the maximum of bytes of buffers that one stream keeps while it
// waits for its peer.
const StreamBuffers = mpa.MaxBuffers

// Defaults of what a configuration or a call does not set.
const (
	DefaultDepth        = 16 // IRD and ORD
	DefaultWR           = 128
	DefaultSGE          = 4
	DefaultInline       = 64
	DefaultCloseTimeout = 5 * time.Second
	// DefaultAnswerTimeout is longer than an Initiator waits.
	DefaultAnswerTimeout = 30 * time.Second
)

// A Trace is what the trace hook gets of one message.
type Trace struct {
	Device string
	QPN    uint32
	rdmap.Trace
}

// tcpNetwork is the Network of the operating system.
type tcpNetwork struct{}

func (tcpNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func (tcpNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	return listen.TCP(ctx, address)
}

// A ConnParam has the parameters of a connection. The zero ConnParam stands for
// the device's defaults.
type ConnParam struct {
	PrivateData []byte // for the peer's ULP: up to 508 bytes, 512 with revision 1

	// IRD and ORD are how many Reads and atomics of the peer, and of this side,
	// may be outstanding. Zero stands for DefaultDepth, a negative number for
	// none. They are lowered to the device's MaxIRD and MaxORD, and perhaps to
	// the peer's limits; QP.Params returns the result.
	IRD, ORD int
	// MinORD makes an accepting side reject peers that accept fewer.
	MinORD int

	// MPA, if not nil, replaces the device's Config.MPA. As there, its IRD,
	// ORD, private data and recorder are not used.
	MPA *mpa.Config

	// Connect calls Verify, if not nil, with the peer's private data, when the
	// peer has accepted and before anything else is sent to it. An error resets
	// the connection, and Connect returns it.
	Verify func(mpa.Params) error
}

// check fills in the defaults, and refuses invalid values.
func (c *Config) check() error {
	for _, l := range []struct {
		name string
		v    *int
		most int
	}{
		{"MaxSGE", &c.MaxSGE, MaxSGE},
		{"MaxInline", &c.MaxInline, MaxInline},
		{"MaxWR", &c.MaxWR, MaxWR},
		{"MaxCQE", &c.MaxCQE, MaxCQE},
		{"MaxIRD", &c.MaxIRD, MaxDepth},
		{"MaxORD", &c.MaxORD, MaxDepth},
	} {
		if *l.v < 0 || *l.v > l.most {
			return fmt.Errorf("configuration: %s %d: say 1 to %d, or 0 for that", l.name, *l.v, l.most)
		}
		if *l.v == 0 {
			*l.v = l.most
		}
	}
	for _, l := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{{"CloseTimeout", &c.CloseTimeout, DefaultCloseTimeout}, {"AnswerTimeout", &c.AnswerTimeout, DefaultAnswerTimeout}} {
		if *l.v < 0 {
			return fmt.Errorf("configuration: %s %v is negative: say 0 for %v", l.name, *l.v, l.def)
		}
		if *l.v == 0 {
			*l.v = l.def
		}
	}
	c.MPA = template(c.MPA)
	if err := c.MPA.Check(); err != nil {
		return fmt.Errorf("configuration: MPA: %w", err)
	}
	return nil
}

// template returns the part of an MPA configuration that applies to all
// connections.
func template(c mpa.Config) mpa.Config {
	c.IRD, c.ORD, c.MaxIRD, c.MinORD, c.PrivateData, c.Recorder = 0, 0, 0, 0, nil, nil
	return c
}

// offer returns what a device with this configuration offers at the start-up of a
// connection.
func (p *ConnParam) offer(device *Config) (o Offer, err error) {
	o.MPA = device.MPA
	if p.MPA != nil {
		o.MPA = template(*p.MPA)
	}
	o.PrivateData = p.PrivateData
	for _, l := range []struct {
		n         int
		to        *uint16
		def, most int
	}{
		{p.IRD, &o.IRD, DefaultDepth, device.MaxIRD}, {p.ORD, &o.ORD, DefaultDepth, device.MaxORD}, {p.MinORD, &o.MinORD, 0, device.MaxORD},
	} {
		n := l.n
		if n == 0 {
			n = l.def
		}
		*l.to = uint16(max(min(n, l.most), 0))
	}
	c := o.mpa()
	return o, c.Check()
}
