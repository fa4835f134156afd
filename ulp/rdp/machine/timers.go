package machine

import "container/heap"

// timers are the connections with a deadline, the earliest first. A deadline may be
// postponed without updating them: then the timer rings early, and is set anew.
type timers []*Conn

func (q timers) Len() int           { return len(q) }
func (q timers) Less(i, j int) bool { return q[i].rings < q[j].rings }
func (q timers) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].spot, q[j].spot = int32(i+1), int32(j+1)
}

// Push is of heap.Interface.
func (q *timers) Push(x any) {
	c := x.(*Conn)
	*q = append(*q, c)
	c.spot = int32(len(*q))
}

// Pop is of heap.Interface.
func (q *timers) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	c.spot = 0
	return c
}

// set makes the timer of a connection ring at a moment or earlier.
func (q *timers) set(c *Conn, at Time) {
	switch {
	case at == never || c.spot != 0 && c.rings <= at:
	case c.spot != 0:
		c.rings = at
		heap.Fix(q, int(c.spot-1))
	default:
		c.rings = at
		heap.Push(q, c)
	}
}

// stop removes the timer of a connection.
func (q *timers) stop(c *Conn) {
	if c.spot != 0 {
		heap.Remove(q, int(c.spot-1))
	}
}

// Deadline returns when Advance must be called next. ok is false if nothing waits for time to
// pass. It may be earlier than necessary.
func (m *Machine) Deadline() (at Time, ok bool) {
	if len(m.timers) == 0 {
		return 0, false
	}
	return m.timers[0].rings, true
}

// Advance carries out what is due by now. Call it at the time of Deadline; at other times it
// does no harm.
func (m *Machine) Advance(now Time) {
	m.tick(now)
	for len(m.timers) > 0 && m.timers[0].rings <= m.now {
		c := m.timers[0]
		c.ring()
		if c.spot == 0 {
			continue // the connection is gone
		}
		at := c.deadline()
		if at == never {
			m.timers.stop(c)
			continue
		}
		c.rings = max(at, m.now+1) // time advances, whatever a connection says
		heap.Fix(&m.timers, int(c.spot-1))
	}
}

// tick notes the time, which never goes back.
func (m *Machine) tick(now Time) { m.now = max(m.now, now) }

// arm sets the timer of the connection for what it waits for.
func (c *Conn) arm() { c.m.timers.set(c, c.deadline()) }

// deadline returns when the connection has something to do, or never.
func (c *Conn) deadline() Time {
	switch c.state {
	case SynSent, SynRcvd:
		return min(c.synAt, c.ackAt)
	case CloseWait:
		return c.closeAt
	case Open:
		at := c.ackAt
		switch {
		case c.out.flying.n > 0:
			at = min(at, c.expiry(c.out.at(c.out.flying.head)))
		case c.una == c.end && c.p.Keepalive > 0:
			at = min(at, c.heard+c.p.Keepalive)
		}
		return at
	default:
		return never
	}
}

// ring does what is due.
func (c *Conn) ring() {
	now := c.m.now
	if c.ackAt <= now {
		c.ackNow()
	}
	switch c.state {
	case SynSent, SynRcvd:
		if c.synAt <= now {
			c.synExpired()
		}
	case CloseWait:
		if c.closeAt <= now {
			c.release(nil)
		}
	case Open:
		if c.out.flying.n > 0 {
			c.expire()
		} else if c.una == c.end && c.p.Keepalive > 0 && c.heard+c.p.Keepalive <= now {
			c.probe()
		}
	default:
	}
}
