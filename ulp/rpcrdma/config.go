package rpcrdma

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
)

// Defaults of a Config.
const (
	DefaultCredits  = 64
	DefaultReceive  = 4096    // bytes of a receive buffer, and of the longest Send
	DefaultMessage  = 4 << 20 // bytes of a message, bulk data and all
	DefaultSegment  = 4 << 20 // bytes of a segment
	DefaultPatience = 5 * time.Second
)

const (
	maxCredits      = 4096
	maxMessage      = 1 << 29
	defaultConns    = 1024
	leastPerHost    = 16
	defaultUnused   = 6 * time.Minute
	defaultIdle     = 16 << 20
	defaultPerConn  = 64 << 20
	defaultInFlight = 1 << 30
	defaultReplies  = 32 << 20
	defaultReplying = 512 << 20
	idleShares      = 16
)

// A Config says how connections work. The zero Config is ready for use.
type Config struct {
	// Credits is how many calls may be in flight on a connection, in the forward
	// direction: a requester asks for so many, a responder grants so many (RFC 8166
	// §3.3.1). Both can change it while connections live. 0 stands for DefaultCredits.
	Credits int

	// ReverseCredits is the same for the reverse direction (RFC 8167 §4.1). 0 stands
	// for none, unless there is a Reverse; then for a quarter of Credits.
	ReverseCredits int

	// Reverse, if not nil, carries out the calls that the other side of a
	// dialed connection makes (RFC 8167). Chunks are not supported there.
	Reverse oncrpc.Service

	// Send and Receive are how long a Send may be that this side makes, and that it
	// can receive, in bytes: multiples of 1,024 up to MaxInline. The two sides tell
	// each other, and the inline thresholds are the smaller ones (RFC 8797 §4.2). 0
	// stands for DefaultReceive.
	Send, Receive int

	// NoPrivate does not tell the other side anything: it then uses thresholds of 1,024
	// bytes (RFC 8166 §3.3.3).
	NoPrivate bool

	// NoInvalidate does not announce that this side knows remote invalidation, which
	// then is not used (RFC 8797 §4.1).
	NoInvalidate bool

	// Registration is how a requester opens memory.
	Registration Registration

	// MaxSegment is how long a segment may be, in bytes: a longer chunk has several. 0
	// stands for DefaultSegment.
	MaxSegment int

	// Roundup makes a requester send what fills bulk data up along with it: no
	// responder needs that (RFC 8166 §3.4.5.2).
	Roundup bool

	// MaxMessage is how long a message of a peer may be, bulk data and all, in bytes.
	// A call whose Read chunks are longer is refused. 0 stands for DefaultMessage.
	MaxMessage int

	// MaxPulled is how many bytes of Read chunks a responder holds at a time, of all
	// calls of a connection: further calls wait. 0 stands for 64 MiB. A Server holds
	// no more than MaxPulledAll for all its connections, and a quarter of it for those of
	// one account of Admit, which may have one call in any case; 0 stands for 1 GiB. Neither
	// is less than MaxMessage.
	MaxPulled, MaxPulledAll int

	// MaxReplies is how many bytes the replies of a connection of a Server may hold until
	// the requester has taken them: further calls wait. All connections together hold
	// no more than MaxRepliesAll, those of one account of Admit's a quarter of it, and
	// each account may have one call in any case. 0 stands for 32 MiB, and for 512 MiB.
	MaxReplies, MaxRepliesAll int

	// StallTimeout is how long a requester may take to answer the RDMA Reads of a call, and
	// to take what is written to its chunks, before the connection is ended: others wait
	// for the memory that is held meanwhile. 0 stands for a minute.
	StallTimeout time.Duration

	// MaxIdle is how many bytes of registered memory a connection keeps for later
	// use. 0 stands for 16 MiB, and a negative number for none. The connections of a
	// Server together keep as many as 16 of them.
	MaxIdle int

	// Limits bounds what is taken of a header.
	Limits Limits

	// MaxConnections is how many connections a Server has at a time; further ones are
	// rejected. 0 stands for 1,024.
	MaxConnections int

	// PerHost is how many of them one host may have, or one account of Admit's; 0
	// stands for a quarter of them, and 16 at least.
	PerHost int

	// Admit, if not nil, decides about a connection that a Server is asked for. Those
	// that it refuses are rejected.
	Admit oncrpc.Admit

	// Idle is how long a connection of a Server may be without calls before it is
	// ended, which may take twice as long to be noticed. 0 stands for six minutes:
	// clients of NFS close them after five. Less than 0 stands for no limit.
	Idle time.Duration

	// Patience is how long the other side may take to let go of memory, when a call is
	// canceled, and to end a connection, before that is reset. 0 stands for
	// DefaultPatience.
	Patience time.Duration

	// Conn is what connections are set up with. Its private data are sent behind those
	// of RFC 8797.
	Conn rnic.ConnParam

	// Connected, if not nil, is called for each connection that a Server has accepted,
	// before it serves the first call. The Peer makes calls in the reverse direction.
	Connected func(p *Peer)

	// Context, if not nil, returns the context of a call that a Server carries out,
	// made of that of its connection.
	Context func(ctx context.Context, x *oncrpc.Exchange) context.Context

	Logger *slog.Logger // nil stands for silence
}

// withDefaults returns the Config with zeros replaced, or says what can't be carried out.
func (c Config) withDefaults() (Config, error) {
	zero := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	zero(&c.Credits, DefaultCredits)
	if c.Reverse != nil {
		zero(&c.ReverseCredits, max(1, c.Credits/4))
	}
	zero(&c.Send, DefaultReceive)
	zero(&c.Receive, DefaultReceive)
	zero(&c.MaxSegment, DefaultSegment)
	zero(&c.MaxMessage, DefaultMessage)
	zero(&c.MaxPulled, defaultPerConn)
	zero(&c.MaxPulledAll, defaultInFlight)
	zero(&c.MaxReplies, defaultReplies)
	zero(&c.MaxRepliesAll, defaultReplying)
	zero(&c.MaxIdle, defaultIdle)
	zero(&c.MaxConnections, defaultConns)
	zero(&c.PerHost, max(leastPerHost, c.MaxConnections/4))
	if c.Idle == 0 {
		c.Idle = defaultUnused
	}
	if c.Patience == 0 {
		c.Patience = DefaultPatience
	}
	if c.StallTimeout == 0 {
		c.StallTimeout = time.Minute
	}
	c.Limits = c.Limits.orDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for _, r := range []struct {
		name          string
		v, low, most_ int
	}{
		{"Credits", c.Credits, 1, maxCredits},
		{"ReverseCredits", c.ReverseCredits, 0, maxCredits},
		{"Send", c.Send, DefaultInline, MaxInline},
		{"Receive", c.Receive, DefaultInline, MaxInline},
		{"MaxSegment", c.MaxSegment, 1, maxMessage},
		{"MaxMessage", c.MaxMessage, 1, maxMessage},
		{"MaxPulled", c.MaxPulled, c.MaxMessage, 1<<31 - 1},
		{"MaxPulledAll", c.MaxPulledAll, c.MaxMessage, 1<<31 - 1},
		{"MaxReplies", c.MaxReplies, 1, 1<<31 - 1},
		{"MaxRepliesAll", c.MaxRepliesAll, 1, 1<<31 - 1},
		{"MaxConnections", c.MaxConnections, 1, 1 << 20},
		{"PerHost", c.PerHost, 1, 1 << 20},
		{"Limits.ReadSegments", c.Limits.ReadSegments, 1, 1 << 12},
		{"Limits.WriteChunks", c.Limits.WriteChunks, 1, 1 << 12},
		{"Limits.Segments", c.Limits.Segments, 1, 1 << 12},
		{"Registration", int(c.Registration), 0, int(RegisterPool)},
	} {
		if r.v < r.low || r.v > r.most_ {
			return c, fmt.Errorf("rpcrdma: Config.%s is %d: it can be %d to %d", r.name, r.v, r.low, r.most_)
		}
	}
	if c.Send%1024 != 0 || c.Receive%1024 != 0 {
		return c, fmt.Errorf("rpcrdma: Config.Send and Receive are %d and %d: they are multiples of 1024 (RFC 8797 §4.2)", c.Send, c.Receive)
	}
	if c.Patience < 0 || c.StallTimeout < 0 {
		return c, fmt.Errorf("rpcrdma: Config.Patience and StallTimeout are %v and %v: they can't be negative", c.Patience, c.StallTimeout)
	}
	return c, nil
}

// private returns what this side says of itself, and the program's private data.
func (c *Config) private() []byte {
	if c.NoPrivate {
		return c.Conn.PrivateData
	}
	p := Private{Invalidate: !c.NoInvalidate, Send: c.Send, Receive: c.Receive}.Append(nil)
	return append(p, c.Conn.PrivateData...)
}
