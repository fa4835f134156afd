package rds

import (
	"log/slog"
	"net/netip"
	"time"

	"urnic/ulp/rds/machine"
)

// A Config describes a node. What is zero has the default that the field names.
type Config struct {
	// Addr is the node's address, by which peers know it.
	Addr netip.Addr
	// Transports carry its connections. A socket uses the first one unless it chooses. Each listens at a port of
	// its own: over IPv6, the default ports of TCP and IWARP are the same.
	Transports []Transport
	// Allow says which addresses may connect, and may be sent to. RDS has no
	// authentication. Empty allows all.
	Allow []netip.Prefix

	SendBuffer    int // bytes that a socket may have unsent and unacknowledged (2 MiB)
	ReceiveBuffer int // unread bytes from which on a socket's port is congested, fewer if little memory is left (212,992)
	// PeerMemory and NodeMemory are how many bytes are held for the unread messages of one
	// peer (16 MiB), and of all (256 MiB). Then connections are not read until a program reads; the peers
	// wait. A peer of which nothing is held may always have one message, so that it can continue whatever
	// others do: with many peers that is beyond NodeMemory.
	PeerMemory, NodeMemory int

	MaxPeers   int // connections, one for each peer, transport and type of service (4,096)
	MaxPerPeer int // those that one peer may open (32)
	MaxSockets int // (32,768)

	// Reconnecting: at once, then after random delays with a bound that doubles.
	ReconnectMin time.Duration // the first bound (1 ms)
	ReconnectMax time.Duration // the last one (1 s)
	Attempts     int           // tries in a row after which messages are lost; 0: try forever

	SocketMRs int // MRs that a socket can have (1,024)
	NodeMRs   int // the same for all sockets (16,384)
	// OperationTimeout is how long a peer may answer none of the Reads and atomics that are
	// outstanding (10 s). Then the oldest fails, and the connection is made anew.
	OperationTimeout time.Duration

	// DialTimeout bounds a try to connect (10 s).
	DialTimeout time.Duration

	// Generation is a number that differs from that of the node's last life (random).
	Generation uint32

	// Events is called for each event, one at a time. It must not wait, nor call methods of
	// the node or its sockets.
	Events func(Event)
	// Logger is notified of violations and connections; nil: nobody.
	Logger *slog.Logger

	times // of a test
}

// times are those that depend on no Config but in tests. What is zero has its default.
type times struct {
	handshake, silence time.Duration // of machine.Config
}

// allows reports whether an address may be a peer.
func (c *Config) allows(a netip.Addr) bool {
	for _, p := range c.Allow {
		if p.Contains(a) {
			return true
		}
	}
	return len(c.Allow) == 0
}

// machine returns the configuration of the protocol.
func (c *Config) machine(carriers []machine.Carrier, seed uint64, bytes *bytesPool) machine.Config {
	return machine.Config{
		Addr: c.Addr, Generation: c.Generation, Carriers: carriers, Seed: seed,
		// Numbers are higher than those of the node's last life: Linux does not learn of a restart, and drops a
		// low number that is sent again after a lost connection.
		First:      uint64(time.Now().UnixMicro()),
		SendBuffer: c.SendBuffer, ReceiveBuffer: c.ReceiveBuffer, PeerMemory: c.PeerMemory, NodeMemory: c.NodeMemory,
		MaxPeers: c.MaxPeers, MaxPerPeer: c.MaxPerPeer, MaxSockets: c.MaxSockets,
		ReconnectMin: c.ReconnectMin, ReconnectMax: c.ReconnectMax, Attempts: c.Attempts,
		Handshake: c.handshake, Silence: c.silence,
		Alloc: bytes.alloc, Free: bytes.back,
	}
}
