package rnic

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"urnic/internal/listen"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
)

// A Network opens and accepts byte streams. Errors of its methods are passed on.
type Network interface {
	Dial(ctx context.Context, address string) (net.Conn, error)
	Listen(ctx context.Context, address string) (net.Listener, error)
}

// Config says how a Device works. The zero Config is ready for use.
type Config struct {
	Name string // for people; "" stands for "urnic0"

	// Limits bounds what the device holds, DomainLimits what each protection
	// domain does. Zeros stand for the defaults of package pd.
	//
	// When pd.HalfOpen is used up, a new connection takes the place of the oldest
	// one from the address that has most. When pd.StreamOctets is exceeded, those
	// streams end with ErrStalled whose peers have gone on with nothing for longest,
	// if that is more than five seconds, and at twice the limit more than one.
	Limits, DomainLimits pd.Limits

	// MaxSGE and the others lower the limits of single objects: entries of an
	// SGL, octets of inline data, work requests of one queue, entries of one
	// completion queue, IRD and ORD of one queue pair. Zeros stand for the
	// constants of this package, which are the highest; Attr reports what is in
	// force. Defaults are lowered with them.
	MaxSGE, MaxInline, MaxWR, MaxCQE, MaxIRD, MaxORD int

	// MPA is the template for connections: revision, CRC policy, markers, the
	// peer-to-peer model, sizes and time limits. Its IRD, ORD, private data and
	// recorder are not used.
	MPA mpa.Config

	Network Network // nil stands for TCP

	// CloseTimeout bounds how long a stream may take to end, gracefully or
	// after a Terminate, before it is reset. Zero stands for
	// DefaultCloseTimeout; it can't be negative.
	CloseTimeout time.Duration

	// AnswerTimeout bounds how long a request of a peer may wait for the
	// program to answer it, from its arrival on, before it is dropped. Zero
	// stands for DefaultAnswerTimeout; it can't be negative.
	AnswerTimeout time.Duration

	// JudgeLate makes posting as lenient as that of hardware, which takes requests
	// without a look at them. SGEs are judged when the turn of their request
	// comes, which completes with StatusLocalProtection if they are bad. What is
	// posted while a stream is being closed, or has ended with an error, completes
	// as flushed. Without it, PostSend and PostRecv refuse both.
	JudgeLate bool

	// Record, if not nil, gets a pcapng recording of all that the device sends
	// and receives, with synthetic Ethernet, IP and TCP headers. It is written
	// at the end of a stream and otherwise within a fifth of a second, a Write
	// at a time and up to the end of a packet, by any goroutine until
	// Device.Close returns: what a program records that is killed can be read.
	Record io.Writer

	// Trace, if not nil, sees each message with its verdict. It must be quick, and
	// must not close or invalidate the memory of a message that is being sent,
	// which waits for that.
	Trace  func(Trace)
	Logger *slog.Logger // nil stands for silence
}

// The limits of single objects, which a Device reports with Attr.
const (
	MaxSGE      = 32      // entries of an SGL
	MaxInline   = 1 << 10 // octets of inline data
	MaxWR       = 1 << 15 // work requests of one queue
	MaxCQE      = 1 << 22 // entries of one completion queue
	MaxDepth    = 128     // IRD or ORD of one queue pair
	MaxMessage  = 1<<32 - 1
	MaxReadSGE  = 1    // a Read has one sink, unless QPAttr.SplitReads
	eventsKept  = 4096 // asynchronous events that nobody has fetched
	acceptQueue = 128  // requests of one listener that Accept has not returned
)

// Defaults of what a configuration or a call leaves open.
const (
	DefaultDepth        = 16 // IRD and ORD
	DefaultWR           = 128
	DefaultSGE          = 4
	DefaultInline       = 64
	DefaultCloseTimeout = 5 * time.Second
	// DefaultAnswerTimeout is longer than an Initiator waits.
	DefaultAnswerTimeout = 30 * time.Second
)

// A Trace is what the trace hook sees of one message.
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

// A ConnParam says what a connection is to be like. The zero ConnParam takes
// the device's defaults.
type ConnParam struct {
	PrivateData []byte // for the peer's ULP: up to 508 octets, 512 with revision 1

	// IRD and ORD are how many Reads and atomics of the peer, and of this side,
	// may be outstanding. Zero stands for DefaultDepth, a negative number for
	// none. They are lowered to the device's MaxIRD and MaxORD, and perhaps to
	// what the peer has; QP.Params tells what has become of them.
	IRD, ORD int
	// MinORD makes an accepting side reject peers that take fewer.
	MinORD int

	// MPA takes the place of the device's, if not nil. What is not used of that
	// is not used of it either.
	MPA *mpa.Config

	// Verify, if not nil, is asked by Connect when the peer has accepted, with its
	// private data, and before anything else is sent to it. An error resets the
	// connection, and Connect returns it.
	Verify func(mpa.Params) error
}

// check fills in the defaults, and refuses what can't be meant.
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

// template returns what of an MPA configuration holds for all connections.
func template(c mpa.Config) mpa.Config {
	c.IRD, c.ORD, c.MaxIRD, c.MinORD, c.PrivateData, c.Recorder = 0, 0, 0, 0, nil, nil
	return c
}

// mpa returns the MPA configuration of a connection on a device.
func (p *ConnParam) mpa(d *Device) (c mpa.Config, err error) {
	c = d.cfg.MPA
	if p.MPA != nil {
		c = template(*p.MPA)
	}
	c.PrivateData = p.PrivateData
	for _, l := range []struct {
		n         int
		to        *uint16
		def, most int
	}{
		{p.IRD, &c.IRD, DefaultDepth, d.cfg.MaxIRD}, {p.ORD, &c.ORD, DefaultDepth, d.cfg.MaxORD}, {p.MinORD, &c.MinORD, 0, d.cfg.MaxORD},
	} {
		n := l.n
		if n == 0 {
			n = l.def
		}
		*l.to = uint16(max(min(n, l.most), 0))
	}
	return c, c.Check()
}
