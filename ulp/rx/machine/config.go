package machine

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"urnic/ulp/rx/wire"
)

// Time is a moment, as the duration since the machine's beginning.
type Time = time.Duration

// never is later than any other moment.
const never = Time(1<<63 - 1)

// Config describes an endpoint. The zero Config is ready for use.
type Config struct {
	// Epoch identifies this endpoint to its peers. 0 draws one, with the high bit set:
	// peers then recognize the endpoint's connections whatever its address is.
	Epoch uint32

	// Start is the time of day at Time 0. The expiry of tickets follows it.
	Start time.Time

	// Rand draws epochs and connection IDs. Nil is the system's generator.
	Rand *rand.Rand

	// Window is the receive window of a call, in packets: 32 if it is 0; at most 255,
	// as more do not fit into an acknowledgement.
	Window int

	// Link returns the largest datagram that fits the link to a peer, in bytes without
	// IP and UDP headers. Nil stands for 1444 everywhere.
	Link func(peer netip.AddrPort) int

	// DeadTime is how long a peer may be silent before its calls fail with -1: 12 s if
	// it is 0. Services and connections may have others.
	DeadTime time.Duration

	// IdleTime is how long a client's connection is kept without a call: 700 s if it is 0.
	IdleTime time.Duration

	// MaxConns bounds the connections of clients: 65,536 if it is 0. For one more, the one
	// that has been idle longest is dropped.
	MaxConns int

	// Memory bounds the data that has arrived and was not read, in bytes: 256 MiB if it
	// is 0. What is in turn for a call that has nothing is always accepted.
	Memory int

	// Unverified bounds the same for callers that have to prove their identity and have
	// not done so yet: 4 MiB if it is 0.
	Unverified int

	// Threads returns the threads that carry out calls, for debug requests. Nil
	// stands for none.
	Threads func() Threads

	// Version is the answer to version queries, 64 bytes at most.
	Version string

	// Answers bounds the answers to packets that need no connection, and could have come
	// from anywhere: debug, version, and aborts. It is their number for each second, with
	// a burst of the same: 1,000 if it is 0; none if it is negative.
	Answers int
}

// Threads are what carries out the calls of clients.
type Threads struct {
	Idle    int // that wait for a call
	Waiting int // calls that wait for a thread
	Waited  int // calls that ever had to
}

// Limits of the protocol and of its peers.
const (
	firstWindow = 16    // packets, in both directions, before anything is known
	minPacket   = 520   // no peer means less
	maxPacket   = 16384 // the largest packet that peers accept
	jumboLimit  = 4     // packets for each jumbogram, as announced
	mostUnacked = 2     // packets that were read and are not acknowledged while the sender may wait for that
)

// Durations of the protocol.
const (
	ackDelay      = 100 * time.Millisecond // before a lone packet is acknowledged
	lastAckDelay  = 400 * time.Millisecond // before the last packet of a reply is
	endAckDelay   = 10 * time.Millisecond  // before the end of a call is, if no other call tells
	challengeWait = 2 * time.Second
	challenges    = 50 // that are sent before the connection is given up
	reachWait     = 2 * time.Second
	reachMemory   = 60 * time.Second // for which a peer that has answered is known to be there
	peerMemory    = 60 * time.Second // for which a peer without connections is remembered
	firstTimeout  = time.Second
	maxTimeout    = 60 * time.Second
	timeoutFudge  = 350 * time.Millisecond // draft §5.2
	doubtWait     = time.Second            // between pings to a peer that seems to have restarted
	busyWait      = 20 * time.Millisecond  // before a call that met a busy channel is tried again
	pathMemory    = 60 * time.Second       // before a size that was lost is tried again
	probeTries    = 3
)

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if c.Start.IsZero() {
		c.Start = time.Unix(0, 0)
	}
	def(&c.Window, 32)
	c.Window = min(max(c.Window, 1), wire.MaxAcks)
	def(&c.MaxConns, 1<<16)
	def(&c.Memory, 256<<20)
	def(&c.Unverified, 4<<20)
	def(&c.Answers, 1000)
	if c.Link == nil {
		c.Link = func(netip.AddrPort) int { return wire.DefaultPacket }
	}
	if c.DeadTime <= 0 {
		c.DeadTime = 12 * time.Second
	}
	if c.IdleTime <= 0 {
		c.IdleTime = 700 * time.Second
	}
	if c.Epoch == 0 {
		c.Epoch = c.Rand.Uint32()&0x3fffffff | 0x80000000
	}
	return c
}
