package machine

import (
	"net/netip"
	"slices"

	"urnic/ulp/rds/wire"
)

// Options has options of a message.
type Options struct {
	TOS     uint8
	Carrier int

	// Extensions go with the message: RDMA or RDMA_DEST.
	Extensions wire.Extensions
	// Op is an RDMA operation that the carrier carries out before the message.
	Op *Operation
	// Free is called when the machine no longer needs the data.
	Free func()
	// Memory is the memory of the data, or nil. The machine may call Free before a carrier has sent
	// a segment: when the peer acknowledges what is not sent yet, or when the socket is closed.
	Memory Memory
	// IgnoreCongestion sends even to a congested port; the peer accepts the message.
	IgnoreCongestion bool
}

// Memory is the memory of the data of a message.
type Memory interface {
	// Use is called for each segment with data that Pull returns. The carrier releases
	// the memory when it has sent them.
	Use()
}

// Send accepts a message for a port of a peer, and returns a number that events name. The machine retains data
// until it calls Options.Free. If there is an error, the machine has retained nothing, and does not call Free.
// After ErrCongested or ErrBufferFull, a Writable effect reports when it is worth trying again. Port 0 sends a
// ping; its answer comes from port 0.
func (s *Socket) Send(now Time, to Endpoint, data []byte, o Options) (id uint64, err error) {
	m := s.m
	m.at(now)
	to.Addr = to.Addr.Unmap()
	switch err := m.checkPeer(to.Addr); {
	case s.closed:
		return 0, ErrClosed
	case err != nil:
		return 0, err
	case o.Carrier < 0 || o.Carrier >= len(m.cfg.Carriers):
		return 0, configError("there is no carrier %d", o.Carrier)
	case len(data) > wire.MaxMessage || cost(len(data)) > s.sendBuffer:
		return 0, ErrTooLong
	}
	if !m.cfg.Carriers[o.Carrier].TOS {
		o.TOS = 0
	}
	if o.Op != nil && (!m.cfg.Carriers[o.Carrier].Operations || to.Addr == m.cfg.Addr) {
		return 0, ErrNotSupported
	}
	x, err := o.Extensions.Encode()
	if err != nil {
		return 0, err
	}
	if to.Addr == m.cfg.Addr {
		return s.loop(to, data, o)
	}
	c, err := m.conn(Key{Peer: to.Addr, TOS: o.TOS, Carrier: o.Carrier})
	if err != nil {
		return 0, err
	}
	switch {
	case c.remote.Congested(to.Port) && !o.IgnoreCongestion:
		m.counters.CongestedSends++
		c.congested.add(s)
		c.paths[0].want() // a peer that has restarted has another map
		return 0, ErrCongested
	case s.unsent >= s.sendBuffer: // as on Linux, the last message may exceed it
		s.blocked = true
		if !s.expects() { // the buffer could be full of messages of which none asks for an acknowledgement
			s.Hasten(now)
		}
		return 0, ErrBufferFull
	}
	m.nextID++
	msg := &message{
		h:    wire.Header{Len: uint32(len(data)), SourcePort: s.port, DestPort: to.Port, Extensions: x},
		data: data, op: o.Op, id: m.nextID, free: o.Free, memory: o.Memory, conn: c,
	}
	s.enter(msg)
	if o.Op != nil {
		o.Op.msg, o.Op.key = msg, msg.pair()
		msg.urgent = true // the acknowledgement tells that a Write is done
	}
	m.counters.Sent++
	if to.Port == wire.PingPort {
		if s.pings == nil {
			s.pings = map[netip.Addr]int{}
		}
		s.pings[to.Addr]++
	}
	c.send(msg)
	return msg.id, nil
}

// loop delivers a message to a socket of this node. The node is a peer of itself: it holds no more of
// its own unread messages than of another peer's. Unlike over a connection, nothing is queued in
// between, so the sender waits.
func (s *Socket) loop(to Endpoint, data []byte, o Options) (uint64, error) {
	m := s.m
	dest := m.sockets[to.Port]
	if dest != nil && dest.congested && !o.IgnoreCongestion {
		m.counters.CongestedSends++
		m.own.congested.add(s)
		return 0, ErrCongested
	}
	if !m.own.room(len(data)) {
		m.full.add(s)
		return 0, ErrBufferFull
	}
	m.nextID++
	m.counters.Sent++
	from := Endpoint{m.cfg.Addr, s.port}
	switch {
	case to.Port == wire.PingPort:
		m.counters.Pings++
		m.counters.Pongs++
		m.own.reserve(cost(0))
		s.deliver(&Message{From: Endpoint{m.cfg.Addr, wire.PingPort}, TOS: o.TOS, Carrier: o.Carrier, conn: &m.own})
	case dest == nil:
		m.noSocket(from, to.Port, o.TOS)
	default:
		m.own.reserve(cost(len(data)))
		dest.deliver(&Message{
			From: from, TOS: o.TOS, Carrier: o.Carrier, Data: append(m.cfg.Alloc(len(data))[:0], data...), Extensions: o.Extensions, conn: &m.own,
		})
	}
	if o.Free != nil {
		o.Free()
	}
	return m.nextID, nil
}

// settled reports whether no message of a socket is outstanding, so that none can
// be overtaken by one on another path.
func (c *Conn) settled() bool {
	for _, p := range c.paths {
		if p.current != nil && p.current.socket != nil || slices.ContainsFunc(p.unacked.all(), ofSocket) || slices.ContainsFunc(p.queue.all(), ofSocket) {
			return false
		}
	}
	return true
}

func ofSocket(msg *message) bool { return msg.socket != nil }

// noSocket counts a message for a port without a socket.
func (m *Machine) noSocket(from Endpoint, port uint16, tos uint8) {
	m.counters.NoSocket++
	m.report(Event{Kind: NoSocket, Peer: from.Addr, TOS: tos, Dest: port})
}

// send puts a message into the queue of its path. Until it is known how many paths there
// are, it waits: were the first ones sent on another path than those behind, they could
// be overtaken.
func (c *Conn) send(msg *message) {
	if c.agreed == 0 {
		c.waiting.push(msg)
		c.paths[0].want()
		return
	}
	if c.used < c.agreed && c.settled() {
		c.used = c.agreed
	}
	port := msg.h.SourcePort
	if port == wire.PingPort {
		port = msg.h.DestPort
	}
	p := c.pathOf(port)
	msg.path = p
	p.queue.push(msg)
	c.paths[0].want() // without it, there are no others
	p.want()
	p.transmit()
}
