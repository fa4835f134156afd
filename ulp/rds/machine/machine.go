package machine

import (
	"math/rand/v2"
	"net/netip"

	"urnic/ulp/rds/wire"
)

// A Machine is the protocol of one node.
type Machine struct {
	cfg Config
	now Time
	rng *rand.Rand

	sockets map[uint16]*Socket
	conns   map[Key]*Conn
	peers   map[netip.Addr]*peer
	order   []*Conn // in the order in which they were made

	local    wire.CongestionMap // ports of this node
	snapshot []byte             // local, as segments carry it; made anew after a change

	held   int // bytes of messages that were received and not read
	nextID uint64
	first  uint64 // sequence number of the first message of a path

	own    Conn    // of the node with itself: the memory of its own messages, and who waits for its ports
	full   waiters // sockets that have found no space for a message to the node itself
	paused []*Path // that wait for memory

	timers         timers
	effects, given []Effect
	counters       Counters
}

// Counters counts events of a node.
type Counters struct {
	Sent, Received      uint64 // messages of sockets
	Retransmitted       uint64
	Duplicates          uint64 // messages that had been received before
	NoSocket            uint64 // messages to ports that no socket has
	AcksSent            uint64 // acknowledgements alone
	MapsSent, MapsTaken uint64
	Pings, Pongs        uint64 // received
	PingsDropped        uint64 // pings that were not answered, as too many answers were queued
	Violations          uint64
	Connects, Losses    uint64 // of connections
	Reconnects          uint64 // connections that replace one that was lost
	Lost                uint64 // messages that were accepted and not delivered, or perhaps not
	CongestedSends      uint64 // calls of Send that were refused
	Operations          uint64 // RDMA operations that were issued; again on a new link counts again
	OperationsFailed    uint64
}

// New returns a new node. The error says what is invalid in the configuration.
func New(cfg Config) (*Machine, error) {
	cfg = cfg.withDefaults()
	cfg.Addr = cfg.Addr.Unmap()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg:     cfg,
		rng:     rand.New(rand.NewPCG(cfg.Seed, 0)),
		first:   cfg.First,
		sockets: map[uint16]*Socket{},
		conns:   map[Key]*Conn{},
		peers:   map[netip.Addr]*peer{},
	}
	m.own.m, m.own.peer = m, &peer{}
	return m, nil
}

// Counters returns the counters of the node.
func (m *Machine) Counters() Counters { return m.counters }

// Held returns how many bytes are held for messages that were received and not read.
func (m *Machine) Held() int { return m.held }

// A Key names a connection of a node.
type Key struct {
	Peer    netip.Addr
	TOS     uint8
	Carrier int // index into Config.Carriers
}

// conn returns the connection of a key, and creates it if there is none.
func (m *Machine) conn(k Key) (*Conn, error) {
	if c := m.conns[k]; c != nil {
		return c, nil
	}
	if len(m.conns) >= m.cfg.MaxPeers && !m.evict() {
		return nil, ErrTooMany
	}
	of := m.peers[k.Peer]
	if of == nil {
		of = &peer{}
		m.peers[k.Peer] = of
	}
	of.conns++
	c := &Conn{m: m, key: k, carrier: &m.cfg.Carriers[k.Carrier], peer: of, since: m.now}
	c.paths = []*Path{newPath(c, 0)}
	if c.carrier.Paths == 1 && c.carrier.Acks {
		c.agreed, c.used = 1, 1 // else the handshake tells, and whether the peer acknowledges in headers
	}
	m.conns[k] = c
	m.order = append(m.order, c)
	return c, nil
}

// checkPeer returns an error if an address can't be that of a peer.
func (m *Machine) checkPeer(a netip.Addr) error {
	if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Is4() != m.cfg.Addr.Is4() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return ErrAddress
	}
	return nil
}
