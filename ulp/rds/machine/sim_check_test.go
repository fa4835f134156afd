package machine

import (
	"encoding/binary"

	"urnic/ulp/rds/wire"
)

// freed notes that the machine does not need a message's data any more. They are spoilt,
// so that one that is sent nevertheless is noticed.
func (s *sim) freed(i int) {
	msg := &s.messages[i]
	if msg.freed {
		s.fail("the data of message %d are given back twice", i)
	}
	msg.freed = true
	if !msg.loop {
		mark(msg.data, ^uint32(i))
	}
	s.acked = append(s.acked, i)
}

// judge verifies that what was given up has been delivered, or reported as lost.
func (s *sim) judge() {
	for _, i := range s.acked {
		if i >= len(s.messages) {
			s.fail("Send has refused message %d, and given its data back", i)
		}
		if msg := &s.messages[i]; !msg.lost && msg.at == nil && msg.port != wire.PingPort {
			s.fail("message %d counts as acknowledged, and is in the queue of no socket", i)
		}
	}
	s.acked = s.acked[:0]
}

// delivered looks at the last message in a socket's queue, which is new.
func (s *sim) delivered(sock *simSocket) {
	all := sock.queue.all()
	got := all[len(all)-1]
	if got.From.Port == wire.PingPort {
		return
	}
	i := int(binary.BigEndian.Uint32(got.Data))
	if i >= len(s.messages) {
		s.fail("what is delivered was never sent")
	}
	msg := &s.messages[i]
	switch {
	case len(got.Data) != len(msg.data) || got.From != (Endpoint{msg.node.cfg.Addr, msg.from.port}) || msg.port != sock.port:
		s.fail("message %d of %d bytes is delivered with %d, from %v to %d", i, len(msg.data), len(got.Data), got.From, sock.port)
	case msg.at != nil && (!msg.blind || !msg.at.node.dead):
		s.fail("message %d is delivered again", i)
	case msg.op != nil && msg.ops == 0:
		s.fail("message %d is delivered before its operation is carried out", i)
	}
	for at := 0; at+4 <= len(got.Data); at += 512 {
		if int(binary.BigEndian.Uint32(got.Data[at:])^uint32(at)) != i {
			s.fail("message %d is delivered with wrong contents", i)
		}
	}
	msg.at = sock
	if c := msg.node.conns[Key{Peer: sock.node.cfg.Addr}]; c != nil {
		msg.blind = c.generation != sock.node.cfg.Generation
	}
}

// receive reads a message, and verifies that it is the next of its pair.
func (s *sim) receive(sock *simSocket) {
	got, ok := sock.Receive(s.now)
	if !ok {
		return
	}
	if got.From.Port == wire.PingPort {
		if sock.node.pongs++; sock.node.pongs > sock.node.pings {
			s.fail("node %d: more pongs than pings", sock.node.index)
		}
		return
	}
	i := int(binary.BigEndian.Uint32(got.Data))
	msg := &s.messages[i]
	s.say("node %d:%d receives message %d", sock.node.index, sock.port, i)
	for len(sock.got) <= msg.pair {
		sock.got = append(sock.got, 0)
	}
	if msg.number < sock.got[msg.pair] {
		s.fail("node %d:%d receives message %d late", sock.node.index, sock.port, i)
	}
	for k := sock.got[msg.pair]; k < msg.number; k++ {
		j := s.pairs[msg.pair].messages[k]
		if between := &s.messages[j]; !between.lost && !between.node.dead && (between.at == nil || between.at == sock) {
			s.fail("node %d:%d receives message %d before %d", sock.node.index, sock.port, i, j)
		}
	}
	sock.got[msg.pair] = msg.number + 1
}

// check verifies what holds at any moment.
func (s *sim) check() {
	for _, n := range s.nodes {
		held := n.own.held
		for _, c := range n.order {
			held += c.held
			if c.held < 0 || c.held > n.cfg.PeerMemory+len(c.paths)*wire.MapLen {
				s.fail("node %d holds %d bytes of a peer", n.index, c.held)
			}
			if c.pongs < 0 || c.pongs > maxPongs {
				s.fail("node %d has %d pongs for a peer", n.index, c.pongs)
			}
			for _, p := range c.paths {
				s.checkPath(p)
			}
		}
		if n.held != held {
			s.fail("node %d holds %d bytes, those of its peers are %d", n.index, n.held, held)
		}
		if len(n.timers) > len(n.order)*MaxPaths {
			s.fail("node %d has %d timers", n.index, len(n.timers))
		}
	}
}

func (s *sim) checkPath(p *Path) {
	if p.state == Up && (p.credit < 0 || p.granted < 0 || p.owed < 0) {
		s.fail("path %d has %d credits, has granted %d and owes %d", p.index, p.credit, p.granted, p.owed)
	}
	if p.state != Up && (p.unacked.len() > 0 || p.current != nil || p.in.active) {
		s.fail("path %d is down and has not put back what was under way", p.index)
	}
	last := p.acked
	for _, msg := range p.unacked.all() {
		if msg == &p.probe {
			continue // it may repeat a number
		}
		if msg.h.Sequence <= last || msg.h.Sequence >= p.next {
			s.fail("path %d: message %d is unacknowledged after %d; %d is next", p.index, msg.h.Sequence, last, p.next)
		}
		last = msg.h.Sequence
	}
}

// atRest verifies what holds when the network is whole and nothing is under way: each
// message is delivered or was reported as lost, and nothing is left of it.
func (s *sim) atRest() {
	for i := range s.messages {
		msg := &s.messages[i]
		if msg.op != nil && !msg.ended && !msg.node.dead && msg.from == msg.node.at(msg.from.port) {
			s.fail("the operation of message %d never ends", i)
		}
		if msg.node.dead || msg.lost || msg.port == wire.PingPort {
			continue
		}
		if msg.at == nil {
			s.fail("message %d is never delivered, and not reported as lost", i)
		}
		if !msg.freed && msg.from == msg.node.at(msg.from.port) {
			s.fail("message %d is never acknowledged", i)
		}
	}
	for _, n := range s.nodes {
		if n.Held() != 0 {
			s.fail("node %d holds %d bytes", n.index, n.Held())
		}
		if at, ok := n.Deadline(); ok || len(n.timers) > 0 {
			s.fail("node %d still has the deadline %v, %d timers", n.index, at, len(n.timers))
		}
		if len(n.paused)+len(n.full.sockets)+len(n.own.congested.sockets) > 0 {
			s.fail("node %d: %d paths and %d sockets wait for memory", n.index, len(n.paused), len(n.full.sockets))
		}
		for _, sock := range n.sockets {
			if sock.Unsent() != 0 || sock.oldest != nil || sock.newest != nil {
				s.fail("node %d:%d has %d bytes unacknowledged", n.index, sock.port, sock.Unsent())
			}
			if sock.congested || n.local.Congested(sock.port) {
				s.fail("node %d:%d is congested, and nothing is unread", n.index, sock.port)
			}
		}
		for _, c := range n.order {
			s.connAtRest(n, c)
		}
	}
}

func (s *sim) connAtRest(n *simNode, c *Conn) {
	peer := s.nodes[c.key.Peer.As4()[3]-1]
	up := false
	for _, p := range c.paths {
		up = up || p.state == Up
		if p.queue.len() > 0 || p.current != nil || p.ready.len() > 0 || len(p.lines) > 0 {
			s.fail("node %d path %d has %d messages to send", n.index, p.index, p.queue.len())
		}
		// Pings, pongs, and messages of sockets that are closed: nobody asks about them.
		if p.unacked.len() > n.cfg.AckEvery+8+maxPongs {
			s.fail("node %d path %d has %d unacknowledged messages", n.index, p.index, p.unacked.len())
		}
	}
	if c.waiting.len() > 0 || len(c.congested.sockets) > 0 {
		s.fail("node %d: %d messages and %d sockets wait for the peer", n.index, c.waiting.len(), len(c.congested.sockets))
	}
	if up && c.remote != peer.local {
		s.fail("node %d has a wrong map of the congested ports of node %d", n.index, peer.index)
	}
}
