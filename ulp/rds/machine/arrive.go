package machine

import "urnic/ulp/rds/wire"

// incoming is the message that a path is receiving.
type incoming struct {
	active bool
	h      wire.Header
	buf    []byte
	filled int
}

// A Verdict says what to do with a segment.
type Verdict uint8

// The verdicts.
const (
	Take Verdict = iota // fill the buffer that came with it
	Wait                // there is no memory, or something else comes first: offer it again after a Resume effect
	Dead                // the link is gone
)

// Begin processes the header of a segment that has arrived over a link, with the length
// of its data. If the verdict is Take, the owner copies the data into the buffer, which
// has that length, and calls Fill. After an acknowledgement alone, it need not.
func (p *Path) Begin(now Time, link Link, h *wire.Header, n int) ([]byte, Verdict) {
	m := p.conn.m
	m.at(now)
	if link != p.link || p.state != Up {
		return nil, Dead
	}
	if p.in.active && h.Kind() != wire.Ack {
		return p.more(h, n)
	}
	if err := h.Check(); err != nil {
		p.violated(RuleFormat, err, "")
		return nil, Dead
	}
	if want := p.share(int(h.Len)); n != want {
		p.violated(RuleLength, nil, "the header announces %d bytes, of which %d should be here; there are %d", h.Len, want, n)
		return nil, Dead
	}
	early := p.index > 0 && h.Kind().Sequenced() && !p.conn.inOrder && !p.conn.acks()
	if early || h.Kind().Sequenced() && !p.conn.room(int(h.Len)) {
		if !p.paused {
			p.paused = true
			m.paused = append(m.paused, p)
		}
		return nil, Wait
	}
	if !p.note(h) {
		return nil, Dead
	}
	if h.Kind() == wire.Ack {
		return nil, Take // it may come between the fragments of a message
	}
	p.in = incoming{active: true, h: *h, buf: m.cfg.Alloc(int(h.Len))}
	p.conn.reserve(cost(int(h.Len)))
	return p.in.buf[:n], Take
}

// more takes a fragment that is not the first.
func (p *Path) more(h *wire.Header, n int) ([]byte, Verdict) {
	if !p.in.h.SameMessage(h) {
		p.violated(RuleFragments, nil, "after %d of %d bytes of message %d comes %v", p.in.filled, p.in.h.Len, p.in.h.Sequence, h)
		return nil, Dead
	}
	if want := p.share(len(p.in.buf) - p.in.filled); n != want {
		p.violated(RuleLength, nil, "%d of %d bytes of message %d are here; the next fragment has %d, and not %d",
			p.in.filled, p.in.h.Len, h.Sequence, n, want)
		return nil, Dead
	}
	if !p.note(h) {
		return nil, Dead
	}
	return p.in.buf[p.in.filled : p.in.filled+n], Take
}

// share returns how many of the bytes that are left the next segment has.
func (p *Path) share(left int) int {
	if f := p.conn.carrier.Fragment; f > 0 {
		return min(left, f)
	}
	return left
}

// room reports whether a message may be held. One is always accepted from a peer of which
// nothing is held. Types of service with nothing held may continue up to twice the peer's
// bound.
func (c *Conn) room(n int) bool {
	m, of := c.m, c.peer
	switch n = cost(n); {
	case of.held == 0:
		return true
	case m.held+n > m.cfg.NodeMemory:
		return false
	}
	return of.held+n <= m.cfg.PeerMemory || c.held == 0 && of.held+n <= 2*m.cfg.PeerMemory
}

func (c *Conn) reserve(n int) {
	c.held += n
	c.peer.held += n
	c.m.held += n
}

// resume lets paths continue that have waited for memory and have room now.
func (m *Machine) resume() {
	kept := m.paused[:0]
	for _, p := range m.paused {
		switch {
		case !p.paused || p.state != Up:
		case p.conn.room(0):
			p.paused = false
			m.emit(Effect{Kind: Resume, Path: p, Link: p.link})
		default:
			kept = append(kept, p)
		}
	}
	clear(m.paused[len(kept):])
	m.paused = kept
	if m.own.room(0) {
		m.full.wake(m)
	}
}

// note processes what a header says of this side's messages and credits. It
// reports whether the link is still up.
func (p *Path) note(h *wire.Header) bool {
	if p.credits {
		if p.granted--; p.granted < 0 {
			p.violated(RuleCredit, nil, "")
			return false
		}
		p.credit += int(h.Credit)
		if h.Credit > 0 {
			p.transmit()
		}
	}
	p.heard, p.conn.met = true, true
	p.greet(h.Kind())
	if !p.conn.acks() {
		return true
	}
	if !p.conn.acquainted {
		p.unbelieved = p.unbelieved || h.Ack > 0
		return true
	}
	p.confirmed()
	return p.believe(h.Ack)
}

// believe processes an acknowledgement. It reports whether the link is still
// up.
func (p *Path) believe(ack uint64) bool {
	sent := p.next - 1
	if p.current != nil && p.current != &p.sentMap && p.current.h.Sequence == sent && p.current.h.Flags&wire.Retransmitted == 0 {
		sent-- // not whole
	}
	if ack > sent {
		p.violated(RuleAck, nil, "it acknowledges %d; %d is the last that was sent", ack, sent)
		return false
	}
	p.acknowledged(ack)
	return true
}

// Fill says that the buffer that Begin returned has its data.
func (p *Path) Fill(now Time, link Link, n int) {
	p.conn.m.at(now)
	if link != p.link || p.state != Up || !p.in.active || p.in.filled+n > len(p.in.buf) {
		return
	}
	p.in.filled += n
	if p.in.filled < len(p.in.buf) {
		return
	}
	in := p.in
	p.in = incoming{}
	p.arrived(&in.h, in.buf)
}

// abandon drops a message of which not all has come.
func (p *Path) abandon() {
	if p.in.active {
		p.conn.reserve(-cost(len(p.in.buf)))
		p.in = incoming{}
	}
	p.paused = false
	p.conn.m.resume()
}

// arrived handles a whole message.
func (p *Path) arrived(h *wire.Header, data []byte) {
	kind := h.Kind()
	if kind == wire.Probe && p.index > 0 { // its number is one of path 0
		p.mistaken()
		p.drop(data)
		return
	}
	if kind.Sequenced() {
		if !p.inTurn(h) {
			p.drop(data)
			return
		}
		if h.Flags&wire.AckRequired != 0 && p.conn.acks() {
			p.ackDue = true
			p.transmit()
		}
	}
	if p.dispatch(kind, h, data) {
		return // the socket has the memory now
	}
	p.drop(data)
}

// drop releases the memory of a whole message.
func (p *Path) drop(data []byte) {
	m := p.conn.m
	p.conn.reserve(-cost(len(data)))
	m.cfg.Free(data)
	m.resume()
}

// inTurn checks a sequence number, and reports whether the message must be handled. As in
// Linux, one is a duplicate if it is low and says that it was sent before. A low one that
// does not say so is of a peer that has begun anew; that can be so only on a new link.
func (p *Path) inTurn(h *wire.Header) bool {
	again := h.Flags&wire.Retransmitted != 0
	if h.Kind() == wire.Probe && again {
		return true // it repeats a number so as to be the first
	}
	if p.last == 0 {
		p.begunByData = h.Sequence == 1 && h.Kind() == wire.Data
	} else if p.renumbers(h) {
		p.last, p.expected = 0, 1
	}
	if h.Sequence <= p.last {
		p.violated(RuleSequence, nil, "%d comes after %d", h.Sequence, p.last)
		return false
	}
	seen := h.Sequence < p.expected
	switch {
	case seen && again:
		p.last = h.Sequence
		p.conn.m.counters.Duplicates++
		if h.Flags&wire.AckRequired != 0 && p.conn.acks() {
			p.ackDue = true
			p.transmit()
		}
		return false
	case seen && p.last != 0:
		p.violated(RuleSequence, nil, "%d was received on an earlier connection, and does not say that it is sent again", h.Sequence)
		return false
	}
	p.last = h.Sequence
	p.expected = h.Sequence + 1
	return true
}

// renumbers reports whether a peer begins its numbers anew on a link. Linux does so over TCP, once, when the
// probe tells it that this node has restarted: in the midst of sending what it had for the former one, or behind
// its first message on the path if that is no data.
func (p *Path) renumbers(h *wire.Header) bool {
	if p.renumbered || p.conn.acks() || p.begunByData || h.Sequence != 1 || h.Flags&wire.Retransmitted != 0 {
		return false
	}
	p.renumbered = true
	return true
}

// dispatch passes a message to its destination. It reports whether that is a
// socket, which holds the memory from now on.
func (p *Path) dispatch(kind wire.Kind, h *wire.Header, data []byte) bool {
	m, c := p.conn.m, p.conn
	switch kind {
	case wire.Map:
		if p.index == 0 || !c.acks() { // else it may be older than one on path 0: see mapChanged
			c.took(data)
		}
	case wire.Ack:
	case wire.Probe, wire.Ping:
		x, err := wire.ParseExtensions(h.Extensions)
		if kind == wire.Probe && err == nil {
			p.shake(&x)
			if h.Flags&wire.Retransmitted == 0 && p.state == Up {
				p.last, p.expected = h.Sequence, h.Sequence+1 // also if the peer has restarted
			}
		}
		p.answer(h)
	case wire.Pong, wire.Data:
		x, err := wire.ParseExtensions(h.Extensions)
		if err != nil {
			return false // Check has refused it
		}
		if kind == wire.Pong && h.DestPort == wire.ProbePort {
			p.confirmed()
			if p.answered(h.Ack); p.state == Up {
				p.shake(&x)
			}
			return false
		}
		s := m.sockets[h.DestPort]
		if kind == wire.Pong {
			m.counters.Pongs++
			c.verified(h.DestPort)
			if s == nil || s.pings[c.key.Peer] == 0 {
				return false // of a ping that Hasten has sent, or of a socket that is closed, or that has not pinged this peer
			}
			s.answered(c.key.Peer)
		}
		if s == nil {
			m.noSocket(Endpoint{c.key.Peer, h.SourcePort}, h.DestPort, c.key.TOS)
			return false
		}
		if c.carrier.Operations && x.With(wire.ExtRDMA) {
			m.emit(Effect{Kind: Used, Path: p, Socket: s, RKey: x.RKey})
		}
		c.delivered = true
		s.deliver(&Message{
			From: Endpoint{c.key.Peer, h.SourcePort}, TOS: c.key.TOS, Carrier: c.key.Carrier,
			Data: data, Extensions: x, conn: c, sequence: h.Sequence,
		})
		return true
	}
	return false
}

// maxPongs is how many answers to pings may be queued for a peer.
const maxPongs = 64

// answer answers a ping.
func (p *Path) answer(h *wire.Header) {
	m, c := p.conn.m, p.conn
	m.counters.Pings++
	if p.state != Up {
		return // the probe was wrong
	}
	if c.pongs >= maxPongs {
		m.counters.PingsDropped++
		return
	}
	c.pongs++
	msg := &message{h: wire.Header{SourcePort: wire.PingPort, DestPort: h.SourcePort}, pong: c}
	probe := h.SourcePort == wire.ProbePort
	if probe {
		msg.h.Extensions = c.introduction()
		if p.shaken {
			c.agree()
		}
	}
	if probe || !c.acks() { // as Linux does: see verify
		p.queue.push(msg)
		p.transmit()
		return
	}
	c.send(msg)
}
