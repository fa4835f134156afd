package machine

import "urnic/ulp/rdp/wire"

// MaxPacket is the size of the largest segment that Pull builds, in bytes.
const MaxPacket = maxSegment

// burst is how many segments a connection sends before others do.
const burst = 32

// Pull returns the next segment to send and its path. It builds the segment in buf, which must
// have space for MaxPacket bytes, or for what Params.SendLimit allows, at least 64. ok is false
// if there is nothing to send now.
//
// Segments of a connection follow each other, up to a bound.
func (m *Machine) Pull(now Time, buf []byte) (segment []byte, p Path, ok bool) {
	m.tick(now)
	if m.raw.Len() > 0 {
		r := m.raw.Pop()
		return r.pull(m, buf), r.name.Path, true
	}
	for m.ready.Len() > 0 {
		c := *m.ready.At(0)
		segment = c.pull(buf)
		m.turn++
		if segment == nil || m.turn >= burst {
			m.turn = 0
			m.ready.Pop()
			c.inReady = false
			if segment != nil {
				c.wake()
			}
		}
		if segment != nil {
			c.arm()
			return segment, c.name.Path, true
		}
	}
	return nil, Path{}, false
}

// pull builds the connection's next segment; nil if there is none.
func (c *Conn) pull(b []byte) []byte {
	switch c.state {
	case SynSent, SynRcvd:
		if c.synDue {
			return c.pullSYN(b)
		}
	case Open:
		if number, ok := c.next(); ok && !c.listAlone(number) {
			return c.pullData(b, number)
		}
	default:
		return nil
	}
	if c.ackDue {
		return c.pullAck(b)
	}
	return nil
}

// next returns the number of the segment to send next: what was lost comes first. The window of
// the peer bounds what is new, that of the controller bounds both, but for the first one that is
// sent again after a loss (RFC 6675 §5, step 4.3).
func (c *Conn) next() (number uint32, ok bool) {
	allowed := c.out.flying.n < max(1, c.control.Window())
	switch {
	case c.out.lost.n > 0:
		return c.out.lost.head, allowed || c.urgent
	case c.nxt != c.end:
		return c.nxt, allowed && c.windowOpen()
	}
	return 0, false
}

// eacks is the set of numbers to list in EACKs, all above RCV.CUR.
func (c *Conn) eacks() *record {
	if c.read != nil {
		return c.read
	}
	return &c.got
}

// eackRoom is how many numbers a segment can list besides n bytes of data. The room is that for
// data (RFC 908 §4.5).
func (c *Conn) eackRoom(n int) int { return wire.EACKRoom(uint16(c.sendMax()), n) }

// listAlone reports whether there are numbers to list that do not fit into a data segment.
func (c *Conn) listAlone(number uint32) bool {
	n := c.eacks().n
	return c.ackDue && n > 0 && c.eackRoom(len(c.out.at(number).data)) < min(n, c.eackRoom(0))
}

// pullData builds a data segment or a NUL. What was sent before is built anew, with the
// current acknowledgements.
func (c *Conn) pullData(b []byte, number uint32) []byte {
	m := c.m
	s := c.out.at(number)
	if s.state == lost {
		c.out.take(&c.out.lost, number)
		c.urgent = false
		c.stats.Resent++
	} else {
		c.nxt++
	}
	s.state, s.sent = flying, m.now
	s.order, s.epoch, s.shift = c.order, c.epoch, c.backoff
	s.tries = min(s.tries, 254) + 1
	c.order++
	c.out.push(&c.out.flying, number)
	c.stats.Sent++
	c.control.Sent(m.now, c.inFlight())
	h := m.header(c.name, wire.ACK)
	h.Seq = number
	if s.nul {
		h.Flags |= wire.NUL
	}
	c.putAck(h, len(s.data))
	return m.compose(b, h, s.data, c.name.Path)
}

// pullAck builds an acknowledgement without data. SEG.SEQ is SND.NXT.
func (c *Conn) pullAck(b []byte) []byte {
	h := c.m.header(c.name, wire.ACK)
	h.Seq = c.nxt
	c.ackDue = true
	c.putAck(h, 0)
	c.stats.Acks++
	return c.m.compose(b, h, nil, c.name.Path)
}

// putAck puts acknowledgements into a header, besides n bytes of data: the list of numbers
// received out of sequence if one is due.
func (c *Conn) putAck(h *wire.Header, n int) {
	h.Ack = c.cur
	if set := c.eacks(); c.ackDue && set.n > 0 {
		h.EACKs = set.newest(h.EACKs, c.cur, c.latest, c.eackRoom(n))
		if len(h.EACKs) > 0 {
			h.Flags |= wire.EACK
		}
	}
	c.ackDue, c.ackAt, c.waiting = false, never, 0
}
