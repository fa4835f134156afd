package machine

import (
	"net/netip"
	"time"
)

// A Time is a moment, as the time that has passed since the machine's owner began.
type Time = time.Duration

// A Config describes a node.
type Config struct {
	Addr       netip.Addr // of the node
	Generation uint32     // differs from that of the node's last life; not 0
	First      uint64     // sequence number of the first message; higher than any of the node's last life (1)
	Carriers   []Carrier
	Seed       uint64 // of the random delays

	SendBuffer    int // bytes that a socket may have unsent and unacknowledged (2 MiB)
	ReceiveBuffer int // bytes from which on a socket's port is congested; fewer if little memory is left (212,992)
	PeerMemory    int // bytes that are held for the unread messages of one peer (16 MiB)
	NodeMemory    int // the same for all peers (256 MiB)
	MaxPeers      int // connections, one for each peer, carrier and type of service (4,096)
	MaxPerPeer    int // those that one peer may open (32)
	MaxSockets    int // (32,768)

	ReconnectMin time.Duration // the initial bound of the random delay between tries (1 ms)
	ReconnectMax time.Duration // its final bound (1 s)
	Attempts     int           // tries in a row after which a connection's messages fail; 0: try forever
	Handshake    time.Duration // how long data wait for the peer's probe or pong (1 s)
	Silence      time.Duration // how long after that a new peer may be silent (10 s)

	// Alloc returns memory for a message that is received, with undefined contents.
	// Free takes it back if the message does not reach a socket. Nil stands for Go's
	// memory.
	Alloc func(n int) []byte
	Free  func([]byte)

	AckEvery int // unacknowledged messages after which one asks for an acknowledgement (8)
	AckBytes int // the same in bytes (16 MiB)
}

// A Carrier describes a transport of connections: TCP, or RDMA verbs.
type Carrier struct {
	Name       string
	Fragment   int  // bytes of a message that each segment carries; 0: all of them
	Operations bool // RDMA operations are possible
	Acks       bool // the peer acknowledges in headers; else the carrier says what has arrived
	Paths      int  // connections that a peer may use at once, 1 to 8
	TOS        bool // a request names the type of service; else all messages have type 0

	// Introduces says that both sides exchange their generations when a link is set
	// up: see Params. Then no probes are sent, which Linux supports only over TCP.
	Introduces bool

	// OrderedDial lets only the node with the lower address dial (RDS over TCP). Without
	// it, both may dial, and requests that cross are rejected (RDS over RDMA).
	OrderedDial bool
}

// MaxPaths is the maximum of paths of a connection, as in Linux.
const MaxPaths = 8

// withDefaults returns the configuration with defaults instead of zeros.
func (c Config) withDefaults() Config {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&c.NodeMemory, max(256<<20, c.PeerMemory)) // each holds the next
	set(&c.PeerMemory, min(16<<20, c.NodeMemory))
	set(&c.ReceiveBuffer, min(212_992, c.PeerMemory))
	for _, d := range []struct {
		v *int
		d int
	}{
		{&c.SendBuffer, 2 << 20},
		{&c.MaxPeers, 4096},
		{&c.MaxPerPeer, 32},
		{&c.MaxSockets, 32_768},
		{&c.AckEvery, 8},
		{&c.AckBytes, 16 << 20},
	} {
		set(d.v, d.d)
	}
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&c.ReconnectMin, time.Millisecond}, {&c.ReconnectMax, time.Second}, {&c.Handshake, time.Second}, {&c.Silence, 10 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	c.First = max(c.First, 1)
	if c.Alloc == nil || c.Free == nil {
		c.Alloc, c.Free = func(n int) []byte { return make([]byte, n) }, func([]byte) {}
	}
	return c
}

// check returns an error if the configuration can't be used.
func (c *Config) check() error {
	switch {
	case !c.Addr.IsValid() || c.Addr.IsUnspecified() || c.Addr.IsMulticast():
		return configError("%v is no address of a node", c.Addr)
	case c.Generation == 0:
		return configError("the generation number is 0; 0 says that there is none")
	case len(c.Carriers) == 0:
		return configError("there is no carrier")
	case c.SendBuffer < 0 || c.ReceiveBuffer < 0 || c.PeerMemory < 0 || c.NodeMemory < 0 || c.MaxPeers < 0 || c.MaxPerPeer < 0 || c.MaxSockets < 0:
		return configError("a limit is negative")
	case c.ReceiveBuffer > c.PeerMemory || c.PeerMemory > c.NodeMemory:
		return configError("the receive buffer has %d bytes, the memory of a peer %d, of the node %d: each must hold the one before",
			c.ReceiveBuffer, c.PeerMemory, c.NodeMemory)
	case c.ReconnectMin < 0 || c.ReconnectMax < c.ReconnectMin || c.Attempts < 0:
		return configError("reconnecting has the bounds %v and %v, and %d tries", c.ReconnectMin, c.ReconnectMax, c.Attempts)
	}
	for _, t := range c.Carriers {
		if t.Paths < 1 || t.Paths > MaxPaths || t.Fragment < 0 {
			return configError("carrier %q has %d paths and fragments of %d bytes", t.Name, t.Paths, t.Fragment)
		}
	}
	return nil
}
