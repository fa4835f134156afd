package machine

import (
	"net/netip"
	"time"

	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/wire"
)

// Time is a moment, as the duration since the owner's clock began. It never goes back.
type Time = time.Duration

// never is later than any other moment.
const never = Time(1<<63 - 1)

// Versions is a set of versions of RDP.
type Versions uint8

// The versions.
const (
	Version1   Versions = 1 << iota // RFC 908
	Version2                        // RFC 1151
	AnyVersion = Version1 | Version2
)

// has reports whether a version is in the set.
func (v Versions) has(version uint8) bool {
	return version >= 1 && version <= 2 && v&(1<<(version-1)) != 0
}

// A CookieMode says when SYNs are answered without keeping state.
type CookieMode uint8

// The modes.
const (
	CookiesNever  CookieMode = iota // a SYN that finds no slot is dropped
	CookiesIfFull                   // when a half-open connection finds no slot
	CookiesAlways
)

// A Config describes an endpoint. The zero Config is ready for use: durations and counts of 0
// stand for the defaults in the comments.
type Config struct {
	// Versions are those that the endpoint supports: both if it is 0. Segments of others are
	// discarded.
	Versions Versions

	// Start is the time of day at Time 0, in any epoch. Initial sequence numbers follow it.
	Start time.Duration

	// Secret keys the hash of initial sequence numbers, cookies and local ports. If it is empty,
	// New draws one.
	Secret []byte

	MaxConns    int // connections, in any state but CLOSED (65,536)
	MaxHalfOpen int // connections in SYN-RCVD that peers have begun (1,024)
	Memory      int // bytes held for data that was received and not read (256 MiB)

	// Answers bounds the answers to segments for no connection, for each second and in one
	// burst: 1,000 if it is 0; none if it is negative.
	Answers int

	// Cookies answers SYNs without state; see the package's documentation for what that costs.
	Cookies CookieMode

	// Pseudo makes the checksum of version 2 cover a pseudo-header. It is for raw IP,
	// between peers that agree on it (RFC 1151 p.1 leaves it open).
	Pseudo bool

	// StrictReset accepts an RST only at RCV.CUR+1, and answers any other, and every SYN, with
	// an acknowledgement, as RFC 5961 does for TCP. RFC 908 accepts both anywhere in the
	// window.
	StrictReset bool

	// SilentCloseWait discards everything in CLOSE-WAIT, as RFC 908 p.24 does. Without it a
	// connection that was closed here answers with RST, as the first one may be lost.
	SilentCloseWait bool

	// NarrowWindow sends no number from SND.UNA + SND.MAX on, as RFC 908 p.23 has it. Without
	// it, what an EACK acknowledges opens the window, as §3.5 allows.
	NarrowWindow bool

	CloseWait time.Duration // how long CLOSE-WAIT lasts (10 s)

	SYNTries int // how often a SYN is sent; in SYN-RCVD, a SYN,ACK (6)
	Restarts int // how often an open begins again after a wrong acknowledgement (3); negative: never, nor after an RST of the peer's number
	Tries    int // how often a segment is sent while the peer is silent (10)

	// Stall is how long a connection may make no progress while its peer answers: 10 min.
	Stall time.Duration

	RTOInitial time.Duration // before there is a sample (1 s)
	RTOMin     time.Duration // the least that the timeout adds to the round-trip time (100 ms)
	RTOMax     time.Duration // (60 s)

	// Reordering is how late a segment may be: it counts as lost when one is acknowledged that was
	// sent so many after it (3).
	Reordering int

	AckDelay time.Duration // how long a segment in order may wait for its acknowledgement (10 ms); negative: not at all
	AckEvery int           // how many segments in order are acknowledged at once (2)

	// Doubt is the least time between answers to acknowledgements and RSTs outside of the
	// window: 500 ms.
	Doubt time.Duration

	// Congestion creates the controller of a connection whose Params name none. Nil
	// stands for none.
	Congestion func() congestion.Controller
}

// Params are the parameters of a connection in an Open request, besides its ends (RFC
// 908 §3.6).
type Params struct {
	// MaxSegment is the largest segment that is accepted, counting 20 bytes for the header of
	// IP, and the header of RDP, besides data: 1,472 if it is 0 (with UDP, IPv4 and Ethernet).
	MaxSegment int

	// Window is RCV.MAX: how many segments the peer may have unacknowledged. 64 if it is 0.
	Window int

	// Sequenced requests delivery in the order of sequence numbers. The connection is sequenced,
	// both ways, if either side requests it.
	Sequenced bool

	// SendLimit bounds the size of segments that are sent, counted like MaxSegment, whatever
	// the peer accepts: it is what the path can carry. 0 stands for no bound.
	SendLimit int

	// SendQueue is how many messages Send accepts beyond what the window allows to be
	// sent.
	SendQueue int

	// Loose accepts data regardless of how many messages are unread, while there is memory.
	// Without it, at most Window messages are held, and more are not acknowledged.
	Loose bool

	// AckRead acknowledges data when it was read, not when it was accepted (RFC 1151 p.3).
	AckRead bool

	// Keepalive is how long a connection is idle before a NUL asks whether the peer is there:
	// 30 s if it is 0; negative: never.
	Keepalive time.Duration

	// Numbers makes Receive return the peer's NULs too, so that every sequence number appears once: it
	// is for a layer that restores the order of what arrives out of order.
	Numbers bool

	// Sink, if not nil, is called for each message that is accepted, instead of Receive returning
	// it. Data is valid only in the call, so that nothing is copied. If it returns false, Receive
	// returns the message, and those that follow until it has returned them all. Sink must not call
	// the machine.
	Sink func(*Conn, Message) bool

	// Congestion creates the controller of the connection. Nil stands for that
	// of the Config.
	Congestion func() congestion.Controller
}

// Bounds of settings.
const (
	maxCount    = 255
	maxDuration = 365 * 24 * time.Hour
	minSegment  = wire.MinSegment
	maxSegment  = 1<<16 - 1
	maxWindow   = 1<<16 - 1
)

// A Path has the addresses of both ends of a segment's path.
type Path struct {
	// Local is this end's address. It may be the zero Addr where the carrier has only one
	// address, if there is no pseudo-header; then it must always be.
	Local netip.Addr
	// Remote is the peer's address, with its UDP port; with port 0 where the carrier has none.
	Remote netip.AddrPort
}

// An OpenConfig describes an active open.
type OpenConfig struct {
	Path    Path
	Version uint8  // 1 or 2; 0 stands for 2
	Port    uint16 // the local RDP port; 0 chooses one
	Remote  uint16 // the peer's RDP port
	Params
}

// A ListenConfig describes a passive open.
type ListenConfig struct {
	Versions Versions   // 0: those of the endpoint that have such a port
	Local    netip.Addr // only connections to this address; the zero Addr: to any
	Port     uint16     // the local RDP port

	// Host and Remote are the only ones from which a connection is accepted, if they are not
	// zero (RFC 908 §3.2.1). If the port of Host is 0, any UDP port will do.
	Host   netip.AddrPort
	Remote uint16

	// Backlog bounds the connections that are half-open or wait for Accept: 128 if it is 0. With
	// Config.Cookies, half-open ones do not prevent others from waiting: there may be twice as
	// many.
	Backlog int
	Params
}

func def[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// withDefaults returns the configuration with defaults instead of zeros.
func (c Config) withDefaults() Config {
	if c.Versions == 0 {
		c.Versions = AnyVersion
	}
	def(&c.MaxConns, 65_536)
	def(&c.MaxHalfOpen, 1024)
	def(&c.Memory, 256<<20)
	def(&c.Answers, 1000)
	def(&c.CloseWait, 10*time.Second)
	def(&c.SYNTries, 6)
	def(&c.Restarts, 3)
	def(&c.Tries, 10)
	def(&c.Stall, 10*time.Minute)
	def(&c.RTOInitial, time.Second)
	def(&c.RTOMin, 100*time.Millisecond)
	def(&c.RTOMax, time.Minute)
	def(&c.Reordering, 3)
	def(&c.AckDelay, 10*time.Millisecond)
	def(&c.AckEvery, 2)
	def(&c.Doubt, 500*time.Millisecond)
	if c.Congestion == nil {
		c.Congestion = congestion.None
	}
	return c
}

// check returns an error if the configuration can't be used.
func (c *Config) check() error {
	switch {
	case c.Versions&^AnyVersion != 0:
		return configError("the versions are %#x; there are 1 and 2", uint8(c.Versions))
	case c.MaxConns < 0 || c.MaxHalfOpen < 0 || c.Memory < 0:
		return configError("a limit is negative")
	case min(c.SYNTries, c.Tries, c.Reordering, c.AckEvery) < 0 || max(c.SYNTries, c.Tries, c.Restarts, c.Reordering, c.AckEvery) > maxCount:
		return configError("a count is negative, or above %d", maxCount)
	case min(c.CloseWait, c.Stall, c.Doubt) < 0 || max(c.CloseWait, c.Stall, c.Doubt, c.AckDelay, c.RTOMax) > maxDuration:
		return configError("a duration is negative, or longer than %v", maxDuration)
	case c.RTOMin < 0 || c.RTOInitial < c.RTOMin || c.RTOMax < c.RTOInitial:
		return configError("the retransmission timeout begins with %v, and is between %v and %v", c.RTOInitial, c.RTOMin, c.RTOMax)
	case c.Cookies > CookiesAlways:
		return configError("there is no mode %d of cookies", c.Cookies)
	}
	return nil
}

// withDefaults returns the parameters with defaults instead of zeros.
func (p Params) withDefaults(c *Config) Params {
	def(&p.MaxSegment, 1472)
	def(&p.Window, 64)
	def(&p.Keepalive, 30*time.Second)
	if p.SendLimit == 0 {
		p.SendLimit = maxSegment
	}
	if p.Congestion == nil {
		p.Congestion = c.Congestion
	}
	return p
}

// check returns an error if the parameters can't be used.
func (p *Params) check() error {
	switch {
	case p.MaxSegment < minSegment || p.MaxSegment > maxSegment:
		return configError("the maximum segment size is %d; it is from %d to %d", p.MaxSegment, minSegment, maxSegment)
	case p.SendLimit < minSegment || p.SendLimit > maxSegment:
		return configError("the limit of what is sent is %d; it is from %d to %d", p.SendLimit, minSegment, maxSegment)
	case p.Window < 1 || p.Window > maxWindow:
		return configError("the window is %d segments; it is from 1 to %d", p.Window, maxWindow)
	case p.Keepalive > maxDuration:
		return configError("the keepalive time is longer than %v; a negative one turns it off", maxDuration)
	case p.SendQueue < 0 || p.SendQueue > 1<<20:
		return configError("the queue of messages to send is %d; it is from 0 to %d", p.SendQueue, 1<<20)
	}
	return nil
}
