package machine

import (
	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/wire"
)

// acknowledged processes the acknowledgements of a segment (O6, O7): the sender forgets what
// they name. Numbers that are not outstanding are ignored.
func (c *Conn) acknowledged(h *wire.Header) {
	var a congestion.Ack
	was, pending := c.una, c.unacked
	if h.Flags&wire.ACK != 0 && h.Ack-c.una < c.nxt-c.una {
		for ; c.una != h.Ack+1; c.una++ { // RFC 1151 p.2-3: SND.UNA is SEG.ACK + 1
			c.settle(c.una, &a)
			*c.out.at(c.una) = outSegment{}
		}
	}
	if h.Flags&wire.EACK != 0 {
		for _, number := range h.EACKs {
			if number-c.una < c.nxt-c.una {
				c.settle(number, &a)
			}
		}
	}
	if c.una == was && a.Segments == 0 {
		return
	}
	c.progress = c.m.now
	c.backoff = 0
	c.epoch++ // timeouts of what was sent before are not backed off any more
	if a.RTT > 0 {
		c.rtt.sample(a.RTT, &c.m.cfg)
	}
	if a.Segments > 0 {
		a.InFlight = c.inFlight()
		c.control.Acked(c.m.now, a)
		c.findLost()
		if n := c.out.flying; n.n > 0 { // keeps the difference small, as orders wrap
			if oldest := c.out.at(n.head).order; less(c.round, oldest) {
				c.round = oldest
			}
		}
	}
	if c.una == c.end {
		c.m.pool.segments.put(c.out.slots)
		c.out = out{}
	}
	if c.unacked == 0 && pending > 0 {
		c.tell(Accepted)
	}
	if c.wants && c.room() {
		c.wants = false
		c.tell(Writable)
	}
	c.wake()
}

// inFlight is how many segments were sent and not named by an acknowledgement yet.
func (c *Conn) inFlight() int { return c.out.flying.n + c.out.lost.n }

// settle forgets a segment that an acknowledgement names, unless one has before.
func (c *Conn) settle(number uint32, a *congestion.Ack) {
	s := c.out.at(number)
	if s.state == settled {
		return
	}
	c.out.leave(number)
	s.state = settled
	a.Segments++
	if s.nul {
		c.stats.Answered++
		c.tell(Answered)
	} else {
		c.unacked--
		c.m.pool.put(s.data)
		s.data = nil
	}
	// Which transmission of several has arrived is not known: Karn's rule (RFC 6298 §3). But if
	// the last one is younger than any round trip was, it was not that one.
	age := c.m.now - s.sent
	if s.tries > 1 && age < c.rtt.least || !less(c.top, s.order+1) {
		return
	}
	c.top = s.order + 1
	if a.RTT = 0; s.tries == 1 {
		a.RTT = max(age, 1)
	}
}

// findLost marks segments as lost that were sent well before others that were acknowledged.
// What was not sent long before may have been overtaken.
func (c *Conn) findLost() {
	after := c.reordering()
	begins := false
	for c.out.flying.n > 0 {
		number := c.out.flying.head
		s := c.out.at(number)
		if less(c.top, s.order+1+after) {
			break
		}
		c.lose(number)
		c.stats.Gaps++
		if !less(s.order, c.round) {
			begins = true
		}
	}
	if begins { // the first loss of a window
		c.round = c.order
		c.urgent = true
		c.control.Lost(c.m.now, c.inFlight())
	}
}

// reordering is how many segments later a segment must be that is acknowledged, for this one to count
// as lost. With few in flight, and none to follow, it is fewer, as that many can't follow (RFC 5827
// §3.2).
func (c *Conn) reordering() uint32 {
	n := c.m.cfg.Reordering
	if sent := int(c.nxt - c.una); sent <= n && (c.nxt == c.end || !c.windowOpen()) {
		n = max(1, sent-1)
	}
	return uint32(n)
}

// lose makes a segment in flight be sent again.
func (c *Conn) lose(number uint32) {
	c.out.take(&c.out.flying, number)
	c.out.push(&c.out.lost, number)
	c.out.at(number).state = lost
}

// expiry returns when the retransmission timer of a segment expires (T1).
func (c *Conn) expiry(s *outSegment) Time { return s.sent + c.rtt.backedOff(c.shiftOf(s), &c.m.cfg) }

// shiftOf returns how often the timeout of a segment is doubled: as often as it was when it was
// sent, but not at all if something was acknowledged since then.
func (c *Conn) shiftOf(s *outSegment) uint8 {
	if s.epoch != c.epoch {
		return 0
	}
	return s.shift
}

// expire makes segments whose timers have expired be sent again (T1), each by its own timer. It
// ends the connection if there were too many timeouts without a sign of the peer.
func (c *Conn) expire() {
	m := c.m
	for c.out.flying.n > 0 {
		number := c.out.flying.head
		s := c.out.at(number)
		if c.expiry(s) > m.now {
			return
		}
		c.stats.Timeouts++
		if c.shiftOf(s) >= c.backoff { // the first one since the timeout was doubled
			c.backoff = min(c.backoff+1, 32)
			if c.silent++; int(c.silent) >= m.cfg.Tries {
				c.giveUp(ErrUnreachable)
				return
			}
			if m.now-c.progress >= m.cfg.Stall {
				c.giveUp(ErrStalled)
				return
			}
		}
		c.lose(number)
		if !less(s.order, c.round) {
			c.round = c.order
			c.urgent = true
			c.control.TimedOut(m.now, c.inFlight())
		}
		c.wake()
	}
}

// giveUp ends a connection on which messages can't be delivered (RFC 908 §3.1: "will report a
// failure to the user if it cannot deliver").
func (c *Conn) giveUp(why error) {
	c.rst(c.nxt)
	c.release(why)
}
