package machine

import (
	"maps"
	"net/netip"
	"slices"

	"urnic/ulp/rds/wire"
)

// A Socket is bound to a port of a node.
type Socket struct {
	m      *Machine
	port   uint16
	closed bool

	sendBuffer, receiveBuffer int

	unsent  int      // bytes of messages that are unsent or unacknowledged
	oldest  *message // of those
	newest  *message
	blocked bool // Writable is due when a message is released
	waits   []*waiters
	pings   map[netip.Addr]int // that were sent to a peer, and are not answered

	queue     fifo[*Message] // received and unread
	queued    int            // bytes of them
	congested bool
}

// FirstPort is the lowest port that a socket can have: 0 is for pings, 1 for probes.
const FirstPort = 2

// Bind returns a new socket. Port 0 lets the machine choose one. A buffer of 0 bytes
// stands for the configuration's.
func (m *Machine) Bind(port uint16, sendBuffer, receiveBuffer int) (*Socket, error) {
	if len(m.sockets) >= m.cfg.MaxSockets {
		return nil, ErrTooMany
	}
	if port == 0 {
		var err error
		if port, err = m.freePort(); err != nil {
			return nil, err
		}
	}
	if port < FirstPort || m.sockets[port] != nil {
		return nil, ErrPortInUse
	}
	s := &Socket{m: m, port: port, sendBuffer: sendBuffer, receiveBuffer: receiveBuffer}
	if sendBuffer <= 0 {
		s.sendBuffer = m.cfg.SendBuffer
	}
	if receiveBuffer <= 0 {
		s.receiveBuffer = m.cfg.ReceiveBuffer
	}
	if s.receiveBuffer > m.cfg.PeerMemory {
		return nil, configError("a receive buffer of %d bytes would never be full: a peer's messages may take %d (PeerMemory)", s.receiveBuffer, m.cfg.PeerMemory)
	}
	m.sockets[port] = s
	return s, nil
}

// freePort chooses a port that no socket has.
func (m *Machine) freePort() (uint16, error) {
	const ports = 1<<16 - FirstPort
	start := m.rng.IntN(ports)
	for i := range ports {
		if p := uint16(FirstPort + (start+i)%ports); m.sockets[p] == nil {
			return p, nil
		}
	}
	return 0, ErrNoPort
}

// Port returns the socket's port.
func (s *Socket) Port() uint16 { return s.port }

// Unsent returns how many bytes of the send buffer are used by messages that are unsent
// or unacknowledged.
func (s *Socket) Unsent() int { return s.unsent }

// Queued returns how many messages, and bytes of them, were received and not read.
func (s *Socket) Queued() (messages, bytes int) { return s.queue.len(), s.queued }

// Receive removes and returns the oldest message that was received, if there is
// one.
func (s *Socket) Receive(now Time) (*Message, bool) {
	s.m.at(now)
	if s.queue.len() == 0 {
		return nil, false
	}
	msg := s.queue.pop()
	s.queued -= len(msg.Data)
	c := msg.conn
	s.m.release(msg)
	s.relieve(c)
	return msg, true
}

// Close removes the socket from its port. As in Linux, its messages that are not
// acknowledged or not read are dropped. An event reports each of the former.
func (s *Socket) Close(now Time) {
	if s.closed {
		return
	}
	s.m.at(now)
	s.closed = true
	delete(s.m.sockets, s.port)
	for s.queue.len() > 0 {
		s.m.release(s.queue.pop())
	}
	s.queued = 0
	s.relieve(nil)
	for len(s.waits) > 0 {
		s.waits[0].drop(s)
	}
	of := map[*Conn]struct{}{}
	for msg := s.oldest; msg != nil; {
		after := msg.after
		of[msg.conn] = struct{}{}
		s.m.lost(msg, ErrSocketClosed)
		msg = after
	}
	for c := range of {
		c.sweep()
		c.forget()
	}
}

// Hasten asks peers that have not acknowledged messages to do so, by pings, whose answers
// acknowledge. Messages that are not sent yet will request it themselves. It is for programs
// that wait for Unsent to be 0; a Writable effect reports when it is less.
func (s *Socket) Hasten(now Time) {
	s.m.at(now)
	s.blocked = true
	for msg := s.newest; msg != nil && !msg.hasty; msg = msg.before {
		msg.hasty = true
		if p := msg.path; p != nil && msg.h.Sequence != 0 {
			p.hasty = max(p.hasty, msg.h.Sequence)
			p.hasten()
		}
	}
}

// expects reports whether a peer that is connected will acknowledge something without
// being asked for more.
func (s *Socket) expects() bool {
	for msg := s.oldest; msg != nil; msg = msg.after {
		p := msg.path
		if p != nil && p.state == Up && (!p.conn.acks() || msg.h.Sequence != 0 && msg.h.Sequence <= p.asked) {
			return true
		}
	}
	return false
}

// hasten asks the peer by a ping to acknowledge what sockets wait for, unless one is
// outstanding. What is sent after that ping may need another one.
func (p *Path) hasten() {
	if p.state != Up || p.hastened != nil || !p.conn.acks() || p.hasty <= p.acked {
		return
	}
	if p.hastened = p.ping(); p.hastened != nil {
		p.transmit()
	}
}

// ping queues a ping for whose answer no socket waits, but for the acknowledgement.
func (p *Path) ping() *message {
	port, err := p.conn.m.freePort()
	if err != nil {
		return nil
	}
	msg := &message{h: wire.Header{SourcePort: port, DestPort: wire.PingPort, Flags: wire.AckRequired}}
	p.queue.push(msg)
	return msg
}

// enter adds a message to those that the send buffer holds.
func (s *Socket) enter(msg *message) {
	msg.socket = s
	if msg.conn != nil {
		msg.conn.live++
	}
	s.unsent += cost(len(msg.data))
	if msg.before = s.newest; msg.before != nil {
		msg.before.after = msg
	} else {
		s.oldest = msg
	}
	s.newest = msg
}

// leave removes a message again.
func (s *Socket) leave(msg *message) {
	if msg.before != nil {
		msg.before.after = msg.after
	} else {
		s.oldest = msg.after
	}
	if msg.after != nil {
		msg.after.before = msg.before
	} else {
		s.newest = msg.before
	}
	msg.before, msg.after = nil, nil
	msg.conn.live--
	s.unsent -= cost(len(msg.data))
	if s.blocked && !s.closed {
		s.blocked = false
		s.m.emit(Effect{Kind: Writable, Socket: s})
	}
}

// deliver puts a message into the queue.
func (s *Socket) deliver(msg *Message) {
	s.queue.push(msg)
	s.queued += len(msg.Data)
	s.m.counters.Received++
	if s.queue.len() == 1 {
		s.m.emit(Effect{Kind: Readable, Socket: s})
	}
	// RDS 3.1, "Congestion control": greater than or equal. Linux wants more.
	if !s.congested && s.queued >= s.limit(msg.conn) {
		s.congest()
	}
	if of := msg.conn.peer; !of.tight && s.m.free(of) <= 0 {
		of.tight = true
		for _, port := range s.m.ports() {
			if s := s.m.sockets[port]; !s.congested && s.queued > 0 && s.queued >= s.limit(msg.conn) {
				s.congest()
			}
		}
	}
}

// congest makes the port congested.
func (s *Socket) congest() {
	s.congested = true
	s.m.local.Set(s.port)
	s.m.mapChanged()
}

// limit returns from how many unread bytes on the port is congested: those of the receive buffer, or fewer where the
// messages of the peer, or of all, take much of their memory: no more than what is free. One quarter is kept for what is
// under way: without memory the connection is not read any more, and what is for other sockets, or acknowledges, is behind.
func (s *Socket) limit(c *Conn) int {
	return min(s.receiveBuffer, max(s.m.free(c.peer), s.m.cfg.PeerMemory/4096))
}

// free returns how much of the memory for a peer's messages is free, but for the last quarter.
func (m *Machine) free(of *peer) int {
	return min(m.cfg.PeerMemory/4*3-of.held, m.cfg.NodeMemory/4*3-m.held)
}

// relieve ends congestion when half of the limit is free, as Linux does, or when nothing reads any more. A
// message of a connection was read.
func (s *Socket) relieve(c *Conn) {
	if s.congested && (s.closed || s.queued == 0 || s.queued < s.limit(c)/2) {
		s.congested = false
		s.m.local.Clear(s.port)
		s.m.mapChanged()
		s.m.own.congested.wake(s.m)
	}
}

// release gives the memory of a received message back.
func (m *Machine) release(msg *Message) {
	c := msg.conn
	c.reserve(-cost(len(msg.Data)))
	c.peer.tight = c.peer.tight && m.free(c.peer) < m.cfg.PeerMemory/4
	msg.conn = nil
	m.resume()
}

// finish releases a message that was acknowledged or is lost.
func (m *Machine) finish(msg *message) {
	if msg.socket != nil {
		msg.socket.leave(msg)
		msg.socket = nil
	}
	if msg.pong != nil {
		msg.pong.pongs--
		msg.pong = nil
	}
	if msg.free != nil {
		msg.free()
		msg.free = nil
	}
	msg.data, msg.memory = nil, nil
}

// answered notes that a ping is answered, or never will be.
func (s *Socket) answered(by netip.Addr) {
	if s.pings[by]--; s.pings[by] <= 0 {
		delete(s.pings, by)
	}
}

// lost drops a message and reports it.
func (m *Machine) lost(msg *message, why error) {
	if msg.gone {
		return
	}
	msg.gone = true
	s := msg.socket
	if s == nil {
		return // a pong or a probe, which nothing waits for
	}
	m.counters.Lost++
	m.settle(msg, why)
	m.report(Event{Kind: MessageLost, Socket: s, ID: msg.id, Dest: msg.h.DestPort, Err: why})
	s.leave(msg)
	msg.socket = nil
	if msg.h.DestPort == wire.PingPort {
		s.answered(msg.conn.key.Peer)
	}
	msg.discard()
}

// discard gives back the memory of a lost message, if no link needs it.
func (msg *message) discard() {
	p := msg.path
	if p != nil && p.current == msg || msg.op != nil {
		return // while it is sent, its data are needed
	}
	if msg.free != nil && (msg.memory != nil || msg.h.Sequence == 0) { // else a link may still send them
		msg.free()
		msg.free, msg.data, msg.memory = nil, nil, nil
	}
	if p == nil {
		msg.conn.gone++
	} else {
		p.gone++
	}
}

// sweep removes lost messages from the queues in which they are more than the others.
func (c *Conn) sweep() {
	gone := func(msg *message) bool { return msg.gone && msg.op == nil }
	if 2*c.gone > c.waiting.len() {
		c.gone = 0
		c.waiting.remove(gone)
	}
	for _, p := range c.paths {
		if 2*p.gone > p.queue.len()+p.unacked.len() {
			p.gone = 0
			p.queue.remove(gone)
			p.unacked.remove(gone)
		}
	}
}

// mapChanged makes the map of congested ports be sent to all peers.
func (m *Machine) mapChanged() {
	m.snapshot = nil
	for _, c := range m.order {
		c.mapChanged()
	}
}

// mapBytes returns the map of congested ports. What it returned does not change.
func (m *Machine) mapBytes() []byte {
	if m.snapshot == nil {
		m.snapshot = append(make([]byte, 0, wire.MapLen), m.local[:]...)
	}
	return m.snapshot
}

// ports returns the ports that sockets have, in order.
func (m *Machine) ports() []uint16 {
	return slices.Sorted(maps.Keys(m.sockets))
}
