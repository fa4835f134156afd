package rnic

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

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
	Limits, DomainLimits pd.Limits

	// MPA is the template for connections: revision, CRC policy, markers, the
	// peer-to-peer model, sizes and time limits. Its IRD, ORD, private data and
	// recorder are not used.
	MPA mpa.Config

	Network Network // nil stands for TCP

	// CloseTimeout bounds how long a stream may take to end, gracefully or
	// after a Terminate, before it is reset. Zero stands for
	// DefaultCloseTimeout.
	CloseTimeout time.Duration

	// AnswerTimeout bounds how long a request of a peer may wait for the
	// program to answer it, from its arrival on, before it is dropped. Zero
	// stands for DefaultAnswerTimeout.
	AnswerTimeout time.Duration

	// Record, if not nil, gets a pcapng recording of all that the device sends
	// and receives, with synthetic Ethernet, IP and TCP headers. It is written
	// at the end of a stream and otherwise within a fifth of a second, a Write
	// at a time and up to the end of a packet, by any goroutine until
	// Device.Close returns: what a program records that is killed can be read.
	Record io.Writer

	Trace  func(Trace)  // sees each message, if not nil; it must be quick
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
	MaxReadSGE  = 1    // a Read has one sink
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
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", address)
}

// A ConnParam says what a connection is to be like. The zero ConnParam takes
// the device's defaults.
type ConnParam struct {
	PrivateData []byte // for the peer's ULP: up to 508 octets, 512 with revision 1

	// IRD and ORD are how many Reads and atomics of the peer, and of this side,
	// may be outstanding. Zero stands for DefaultDepth, a negative number for
	// none. They may be lowered to what the peer has.
	IRD, ORD int
	// MinORD makes an accepting side reject peers that take fewer.
	MinORD int

	MPA *mpa.Config // takes the place of the device's, if not nil
}

// depth returns an IRD or ORD within the device's limits.
func depth(n int) uint16 {
	switch {
	case n < 0:
		return 0
	case n == 0:
		return DefaultDepth
	}
	return uint16(min(n, MaxDepth))
}
