package machine

import (
	"math/bits"
	"slices"
)

// events takes the events of a node.
func (s *sim) events(n *simNode) {
	for _, e := range n.Events() {
		if e.Kind == Acceptable {
			continue
		}
		c := s.of(n, e.Conn)
		if e.Kind == Accepted {
			s.accepted(c)
		}
		if e.Kind != StateChanged {
			continue
		}
		s.say("node %d conn %d %v is in %v: %v", n.index, c.serial, c.name, e.State, e.Err)
		switch e.State {
		case Open:
			c.opened, c.cur = true, c.irs
			s.linked(c)
		case Closed:
			if c.ended {
				s.fail("conn %d ends twice", c.serial)
			}
			c.ended = true
			if c.unacked > 0 && !c.closed && c.err == nil {
				s.fail("conn %d ends with %d messages unacknowledged, and says nothing (I1)", c.serial, c.unacked)
			}
		}
	}
}

// linked finds the other end of a connection that is open, which knows our initial number (I8, I10).
func (s *sim) linked(c *simConn) {
	for _, d := range slices.Backward(s.conns) {
		if d.node.index != c.node.index && c.pairs(d) && d.name.Local == c.name.Remote && d.name.Remote == c.name.Local {
			c.link, d.link = d, c
			break
		}
	}
	if c.link == nil {
		if s.cookies == CookiesNever || !c.active {
			s.fail("conn %d is open, and nobody has acknowledged its SYN (I10)", c.serial)
		}
		return
	}
	s.agree(c)
}

// agree verifies that both ends know the same of each other (I8).
func (s *sim) agree(c *simConn) {
	d := c.link
	if d.state != Open || c.state != Open {
		return
	}
	for range 2 {
		l := d.ours()
		same := c.peer.window == l.window && c.peer.segment == l.segment
		if !same && (s.cookies == CookiesNever || c.peer.window > l.window || c.peer.segment > l.segment) {
			s.fail("conn %d thinks that its peer has the limits %+v; they are %+v (I8)", c.serial, c.peer, l)
		}
		c, d = d, c
	}
	if c.ordered != d.ordered {
		s.fail("conns %d and %d disagree about the order of delivery (I8)", c.serial, d.serial)
	}
}

// has reports whether a connection has accepted a number.
func (c *simConn) has(number uint32) bool {
	return !less(c.whole, number) || c.got.has(c.Conn.cur, number)
}

// accepted verifies that the peer has accepted everything (I4, I16).
func (s *sim) accepted(c *simConn) {
	if c.Status().Unacknowledged != 0 {
		return // there is more since
	}
	for i := range c.sent {
		if c.link == nil || !c.link.has(c.sent[i].seq) {
			s.fail("conn %d has nothing unacknowledged, and message %d was not accepted (I4, I16)", c.serial, i)
		}
	}
}

// An essence is what a forged segment must not change.
type essence struct {
	state                              State
	iss, una, nxt, end, irs, cur       uint32
	got, nHeld, queued, unacked, lists int
	peer                               limits
	ordered                            bool
}

func (c *simConn) essence() essence {
	return essence{
		c.state, c.iss, c.una, c.nxt, c.end, c.irs, c.Conn.cur,
		c.got.n, int(c.nHeld), c.queue.n, int(c.unacked), c.inFlight(), c.peer, c.ordered,
	}
}

// A snapshot is what a damaged segment must not change.
type snapshot struct {
	raw, ready, events, conns, memory, timers int
	sum                                       uint32
}

func (n *simNode) snapshot(wanted bool) snapshot {
	if !wanted {
		return snapshot{}
	}
	sn := snapshot{n.raw.Len(), n.ready.Len(), len(n.events), len(n.Machine.conns), n.memory, len(n.timers), 0}
	for _, c := range n.conns {
		sn.sum += c.una + 3*c.nxt + 5*c.Conn.cur + 7*uint32(c.got.n) + 11*uint32(c.state) + 13*c.stats.Received
	}
	return sn
}

// backlog is how many connections may wait for Accept.
func (n *simNode) backlog() int {
	if n.cfg.Cookies != CookiesNever {
		return 2 * n.listener.cfg.Backlog
	}
	return n.listener.cfg.Backlog
}

// check verifies what holds at any moment.
func (s *sim) check(n *simNode) {
	memory, half := 0, 0
	for _, c := range n.conns {
		s.checkConn(c)
		for i := range c.queue.n {
			if msg := c.queue.at(i); msg.Data != nil {
				memory += capacity(len(msg.Data))
			}
		}
		for _, data := range c.held {
			if data != nil {
				memory += capacity(len(data))
			}
		}
		if c.half {
			half++
		}
	}
	switch {
	case memory != n.Memory():
		s.fail("node %d says that it holds %d bytes, and holds %d (I18)", n.index, n.Memory(), memory)
	case half != n.HalfOpen() || half > n.cfg.MaxHalfOpen:
		s.fail("node %d says that %d connections are half-open; %d are (I18)", n.index, n.HalfOpen(), half)
	case n.listener.pending < 0 || n.listener.pending > n.backlog():
		s.fail("%d connections wait for Accept (I18)", n.listener.pending)
	case len(n.Machine.conns) > n.cfg.MaxConns:
		s.fail("there are %d connections (I18)", len(n.Machine.conns))
	case memory > n.cfg.Memory+n.cfg.MaxConns*capacity(300):
		s.fail("node %d holds %d bytes (I18)", n.index, memory)
	}
}

func (s *sim) checkConn(c *simConn) {
	most := int(c.peer.window)
	switch {
	case c.state == Open && (c.nxt-c.una > uint32(2*most) || c.inFlight() > most):
		s.fail("conn %d has %d numbers since SND.UNA, %d in flight; the window is %d (I5)", c.serial, c.nxt-c.una, c.inFlight(), most)
	case c.opened && less(c.Conn.cur, c.cur):
		s.fail("RCV.CUR of conn %d goes back from %d to %d (I6)", c.serial, c.cur, c.Conn.cur)
	case c.got.n > 0 && !within(c.got.high, c.Conn.cur, 2*c.window()):
		s.fail("conn %d has received %d, and RCV.CUR is %d (I6)", c.serial, c.got.high, c.Conn.cur)
	case c.Conn.read == nil && c.got.n > 0 && c.got.has(c.Conn.cur, c.Conn.cur+1):
		s.fail("conn %d has received %d, which is next, and RCV.CUR is %d (I6)", c.serial, c.Conn.cur+1, c.Conn.cur)
	case c.Conn.read == nil && c.whole != c.Conn.cur:
		s.fail("conn %d: all up to %d was accepted, and RCV.CUR is %d (I6)", c.serial, c.whole, c.Conn.cur)
	case int(c.nHeld) > 2*c.p.Window || !c.p.Loose && int(c.nHeld)+c.queue.n-int(c.nNulls) > c.p.Window || int(c.nNulls) > 2*c.p.Window:
		s.fail("conn %d holds %d messages, %d are queued; the window is %d (I18)", c.serial, c.nHeld, c.queue.n, c.p.Window)
	}
	c.cur = c.Conn.cur
	set := 0
	for _, word := range c.got.bits {
		set += bits.OnesCount64(word)
	}
	if set != c.got.n {
		s.fail("conn %d has %d numbers in its record, and counts %d (I6)", c.serial, set, c.got.n)
	}
	s.checkOut(c)
	d := c.link
	switch {
	case d == nil || !c.opened:
	case !c.pairs(d):
		// The peer may begin again once we have ended, or in another life.
		if c.state == Open && (d.state == SynSent || d.state == SynRcvd) && s.nodes[d.node.index] == d.node {
			s.fail("conn %d is open with the peer's number %d, and conn %d has gone on to %d and %d (I10)", c.serial, c.irs, d.serial, d.iss, d.irs)
		}
	case d.opened:
		s.checkPair(c, d)
		s.checkPair(d, c)
	}
}

// pairs reports whether each end has the other's number.
func (c *simConn) pairs(d *simConn) bool { return c.irs == d.iss && c.iss == d.irs }

// checkPair verifies what a sender knows of its receiver (I4, I7).
func (s *sim) checkPair(c, d *simConn) {
	if c.state != Open {
		return // it has forgotten
	}
	if less(d.Conn.cur, c.una-1) {
		s.fail("conn %d has SND.UNA %d, and RCV.CUR of its peer is %d (I7)", c.serial, c.una, d.Conn.cur)
	}
	if less(d.Conn.cur+2*d.window(), c.nxt-1) {
		s.fail("conn %d has sent %d, and RCV.CUR of its peer is %d, its window %d (I7)", c.serial, c.nxt-1, d.Conn.cur, d.window())
	}
	for number := c.una; number != c.nxt; number++ {
		if c.out.at(number).state == settled && !d.has(number) {
			s.fail("conn %d has forgotten %d, which was not accepted (I4)", c.serial, number)
		}
	}
}

// checkOut verifies the lists of segments that are sent.
func (s *sim) checkOut(c *simConn) {
	if c.state != Open || len(c.out.slots) == 0 {
		return
	}
	var count [4]int
	unacked := 0
	for number := c.una; number != c.end; number++ {
		o := c.out.at(number)
		count[o.state]++
		if o.state != settled && !o.nul {
			unacked++
		}
		if (o.state == queued) != !less(number, c.nxt) {
			s.fail("conn %d: %d is in state %d, and SND.NXT is %d", c.serial, number, o.state, c.nxt)
		}
	}
	if count[flying] != c.out.flying.n || count[lost] != c.out.lost.n || unacked != int(c.unacked) {
		s.fail("conn %d: %d in flight, %d lost, %d unacknowledged; it counts %d, %d, %d (I16)", c.serial, count[flying], count[lost], unacked, c.out.flying.n, c.out.lost.n, c.unacked)
	}
	last := Time(0)
	number := c.out.flying.head
	for range c.out.flying.n {
		o := c.out.at(number)
		if at := c.expiry(o); at < last {
			s.fail("conn %d: %d expires before those sent earlier", c.serial, number)
		} else {
			last = at
		}
		number = o.next
	}
}

// atRest verifies what holds when the network has been good for long.
func (s *sim) atRest() {
	for _, n := range s.nodes {
		for _, c := range n.conns {
			d := c.link
			switch {
			case c.state == SynSent || c.state == SynRcvd:
				s.fail("conn %d is in %v for ever (I11)", c.serial, c.state)
			case c.state == CloseWait:
				s.fail("conn %d is in CLOSE-WAIT for ever (I14)", c.serial)
			case c.state != Open:
				continue
			}
			if d == nil || d.state != Open || s.nodes[d.node.index] != d.node {
				if s.keepalive || c.unacked > 0 {
					s.fail("conn %d is open, and its peer is not (I13)", c.serial)
				}
				continue
			}
			s.agree(c)
			if c.unacked > 0 || c.una != c.end {
				s.fail("conn %d has %d messages unacknowledged for ever (I1)", c.serial, c.unacked)
			}
			if d.read != len(c.sent) {
				s.fail("%d messages were sent on conn %d, and %d delivered (I1)", len(c.sent), c.serial, d.read)
			}
			if d.seen != nil {
				s.everyNumber(c, d)
			}
		}
	}
}

// everyNumber verifies that Receive has returned each number once, those of NULs included.
func (s *sim) everyNumber(c, d *simConn) {
	for number := c.iss + 1; number != c.end; number++ {
		if !d.seen[number] {
			s.fail("conn %d has sent the number %d, and Receive has not returned it", c.serial, number)
		}
	}
}
