package machine

import (
	"slices"
	"time"

	"urnic/ulp/rds/wire"
)

// The handshake is a ping from the probe port, which names the sender's number of paths
// and its generation (RDS 3.1, "Multipath RDS" and "RDS Generation Number"). Both sides
// send one on each new link of path 0, unless the carrier has introduced them.
//
// A peer that is not known yet is told of one path. If its probe says that there may be several, the answer names
// all. A peer that tells no generation number, as Linux 6.1, never hears of more than one.

// beginProbe makes the probe of the link. The first ever has a sequence number of its
// own. Later ones are sent before what is sent again, whose numbers are older than any new one: they
// repeat a number that the peer has, and say so. A peer that is not urnic drops them; and
// one that has restarted takes them.
func (p *Path) beginProbe() {
	p.probe = message{h: wire.Header{SourcePort: wire.ProbePort, DestPort: wire.PingPort, Extensions: p.conn.introduction()}}
	if p.next == p.first {
		p.probe.h.Sequence = p.next
		p.next++
		p.ask(&p.probe)
	} else {
		p.probe.h.Sequence = max(p.acked, p.first)
		p.probe.h.Flags = wire.Retransmitted | wire.AckRequired
	}
	p.current = &p.probe
}

// introduction returns what a probe and its pong tell of this node.
func (c *Conn) introduction() [wire.ExtensionLen]byte {
	c.told = 1
	if c.several() {
		c.told = c.carrier.Paths
	}
	x := wire.Extensions{
		Has:   1<<wire.ExtNPaths | 1<<wire.ExtGeneration | 1<<wire.ExtSportIdx | 1<<wire.ExtUrnic,
		Paths: uint16(c.told), Generation: c.m.cfg.Generation,
	}
	raw, _ := x.Encode() // 11 bytes, which always fit
	return raw
}

// introduced completes the handshake of a link for which the carrier has told each side the
// other's generation.
func (p *Path) introduced(generation uint32) {
	m := p.conn.m
	p.known, p.conn.acquainted = true, true
	p.shake(&wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: generation})
	if p.state == Up {
		p.why = nudge
		m.set(p, m.now+nudgeAfter)
	}
}

// nudgeAfter is how long a peer may be silent on a new link until it is sent an
// acknowledgement alone.
const nudgeAfter = 100 * time.Millisecond

// nudge sends an acknowledgement alone to a peer that has been silent on a link. Each peer sends its map
// first. But Linux's siw may overlook what has arrived while it was accepting the connection, until
// something more arrives. A peer that has never sent anything loses its slot after a while.
func (p *Path) nudge() {
	m := p.conn.m
	silent := m.now - p.since
	switch {
	case p.heard:
	case !p.conn.met && silent >= m.cfg.Handshake+m.cfg.Silence:
		p.hangUp(errSilent)
	default:
		p.ackDue = true
		p.transmit()
		m.set(p, m.now+max(nudgeAfter, silent))
	}
}

// held reports whether data waits for the handshake: until it is known how many
// paths there are, and whether the peer, which has sent its generation, has
// restarted.
func (p *Path) held() bool {
	c := p.conn
	if c.agreed == 0 { // but the answer to the peer's probe, which names the paths
		return p.queue.len() == 0 || p.queue.first().h.DestPort != wire.ProbePort
	}
	first := c.paths[0]
	if c.generation == 0 {
		return !c.acks() && !first.heard // nobody may have accepted the connection
	}
	// On path 0, data are behind the probe. On the others, a peer that does not know yet that
	// this node has restarted would take them, forget that it has, and get them again.
	return first.state != Up || !first.shaken || p.index > 0 && (!c.acquainted || c.acks() && !p.greeted || p.check != 0)
}

// verify makes sure that the peer of a new link, which is not of path 0, has not restarted: a new life would not
// know this node, and take the link for path 0. urnic greets; of another peer, the link of path 0 must outlive the
// beginning of this one, which the answer to a ping shows.
func (p *Path) verify() {
	c := p.conn
	p.check = 0
	if p.index == 0 || c.acks() {
		return
	}
	p.check = wire.ProbePort // no ping's: until path 0 is up again
	if first := c.paths[0]; first.state == Up {
		if msg := first.ping(); msg != nil {
			p.check = msg.h.SourcePort
			first.transmit()
		}
	}
}

// verified notes the answer to a ping.
func (c *Conn) verified(port uint16) {
	for _, p := range c.paths {
		if p.check == port && p.state == Up {
			p.check = 0
			p.transmit()
		}
	}
}

// greet notes what the peer sends first, apart from its map, on a link that is not of
// path 0: an acknowledgement alone. A peer that has restarted and does not know of other
// paths yet takes the link for path 0, and sends a probe; data on it would confuse the numbers of the two paths.
func (p *Path) greet(k wire.Kind) {
	if !p.greeted && k != wire.Map && (p.index == 0 || k != wire.Probe) {
		p.greeted = true
		p.transmit()
	}
}

// answered notes that the peer has answered the probe, or should have: it now knows this node's generation.
// What it acknowledged before may have been of an earlier life of this node: on paths where it did, which may
// be faster than path 0, it is asked again. What it acknowledges now counts.
func (p *Path) answered(ack uint64) {
	if p.index > 0 {
		return
	}
	p.known, p.conn.acquainted = true, true
	p.transmit()
	p.conn.settle()
	if p.conn.acks() && !p.believe(ack) {
		return
	}
	for _, q := range p.conn.paths {
		if q.unbelieved {
			q.unbelieved, q.hastened = false, nil // the answer to a ping was not believed either
			if slices.ContainsFunc(q.unacked.all(), ofSocket) {
				q.hasty = q.next - 1
			}
			q.hasten()
		}
	}
}

// settle accepts data on the other paths. Before it knew of them, a Linux with several paths sent all on path 0; its
// answer to the probe follows that. Data on another path would overtake it.
func (c *Conn) settle() {
	if c.inOrder {
		return
	}
	c.inOrder = true
	for _, p := range c.paths {
		if p.index > 0 && p.paused {
			p.paused = false
			c.m.emit(Effect{Kind: Resume, Path: p, Link: p.link})
		}
	}
	if len(c.paths) > 1 {
		c.paths[1].want()
	}
}

// mistaken ends a link whose other end the peer takes for path 0, as it has restarted
// and does not know this node. Path 0 has not noticed yet.
func (p *Path) mistaken() {
	first := p.conn.paths[0]
	p.hangUp(errRestart)
	first.hangUp(errRestart)
}

// maxFormer is how many earlier generations of a peer are remembered.
const maxFormer = 16

// shake completes the handshake with what the peer has sent; nil if it has sent
// nothing in time.
func (p *Path) shake(x *wire.Extensions) {
	c := p.conn
	if x != nil && x.With(wire.ExtGeneration) && x.Generation != 0 {
		switch {
		case c.generation == 0:
			c.generation = x.Generation
		case c.generation != x.Generation && p.told:
			p.violated(RuleGeneration, nil, "it changes from %d to %d within a connection", c.generation, x.Generation)
			return
		case slices.Contains(c.former, x.Generation):
			p.violated(RuleGeneration, nil, "%d is of an earlier life of the peer, which has told %d since", x.Generation, c.generation)
			return
		case c.generation != x.Generation:
			c.former = append(c.former[max(0, len(c.former)+1-maxFormer):], c.generation)
			c.generation, c.software = x.Generation, c.signed(x)
			c.restarted(p)
		}
		p.told, c.software = true, c.signed(x)
	} else if c.generation != 0 && !p.told && !c.carrier.Introduces {
		c.generation, c.software = 0, untold // other software runs there now
		c.restarted(p)
		if c.told > 1 {
			p.hangUp(errRestart) // it was told of paths that it is not to use
		}
	}
	if x != nil && x.With(wire.ExtNPaths) && x.Paths == 0 {
		p.violated(RuleProbe, nil, "")
		return
	}
	if p.state != Up {
		return // restarted has ended it
	}
	if p.known {
		c.m.set(p, never)
	}
	for _, q := range c.paths {
		if !p.shaken && q.check != 0 && q.state == Up {
			q.verify()
		}
	}
	p.shaken = true
	c.said = 1
	if x != nil && x.With(wire.ExtNPaths) {
		c.said = int(x.Paths)
	}
	c.agree()
}

// signed returns what a peer is that tells its generation.
func (c *Conn) signed(x *wire.Extensions) software {
	switch {
	case c.carrier.Introduces || x.With(wire.ExtUrnic):
		return urnic
	case x.With(wire.ExtSportIdx):
		return indexed
	}
	return generational
}

// agree sets the number of paths: as many as both sides have told. A peer that may have several is told how many
// there are by the answer to its probe, and tells so itself: until then it is not known. One that names more later goes on using
// those that it had until nothing is outstanding.
func (c *Conn) agree() {
	if c.agreed == 0 && c.several() && !c.paths[0].known {
		return
	}
	n := min(max(c.told, 1), c.said)
	if c.agreed == 0 {
		c.used = n
	}
	c.agreed = max(c.agreed, n)
	for c.waiting.len() > 0 {
		c.send(c.waiting.pop())
	}
	for i := range c.agreed {
		q := c.path(i)
		if i > 0 && c.lower() {
			q.want()
		}
		q.hasten() // acknowledgements may not have been in headers until now
		q.transmit()
	}
}

// restarted forgets what a former life of the peer knew. What it has not acknowledged may
// have been delivered or not, and is not sent again. The numbers of this node's messages
// continue: a receiver accepts any that are higher.
func (c *Conn) restarted(heard *Path) {
	m := c.m
	m.report(Event{Kind: PeerRestarted, Peer: c.key.Peer, TOS: c.key.TOS, Err: errRestart})
	for _, p := range c.paths {
		if p != heard {
			p.hangUp(errRestart)
		}
		p.expected, p.last = 1, 0
		p.forget(&p.unacked)
		p.forget(&p.queue)
	}
	if c.carrier.Paths == 1 {
		return
	}
	// The new life may have another number of paths. Its probe says so, or the pong.
	c.agreed, c.used = 0, 0
	for _, p := range c.paths {
		for p.queue.len() > 0 {
			msg := p.queue.pop()
			if msg == p.hastened {
				p.hastened = nil // it asks for this path, and could be sent on another one
			}
			if msg.socket == nil {
				m.finish(msg) // it is for the last life
				continue
			}
			msg.path = nil
			c.waiting.push(msg)
		}
	}
}

// forget reports as lost what was sent before the peer restarted.
func (p *Path) forget(q *fifo[*message]) {
	kept := make([]*message, 0, q.len())
	for _, msg := range q.all() {
		if msg.h.Sequence == 0 && (msg.op == nil || msg.op.done) {
			kept = append(kept, msg)
			continue
		}
		p.conn.m.lost(msg, ErrPeerRestarted)
		if msg != &p.probe {
			p.conn.m.finish(msg)
		}
	}
	q.replace(kept)
}
