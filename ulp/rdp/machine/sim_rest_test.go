package machine

import (
	"errors"
	"time"
)

// heal makes the network good, has programs read all, and waits until nothing happens any more.
func (s *sim) heal() {
	s.say("the network is good now")
	s.net.loss, s.net.repeat, s.net.damage, s.net.jitter = 0, 0, 0, 0
	var opening []*simConn // with some tries left
	for _, n := range s.nodes {
		for _, c := range n.conns {
			if (c.state == SynSent || c.state == SynRcvd) && c.active && c.synTries < 6 {
				opening = append(opening, c)
			}
		}
	}
	whole := s.now
	s.settle(5 * time.Second)
	s.halfOpen(whole)
	s.settle(55 * time.Second)
	for _, c := range opening {
		if errors.Is(c.err, ErrUnreachable) || errors.Is(c.err, ErrHalfOpen) {
			s.fail("conn %d: %v, and the network is good (I11)", c.serial, c.err)
		}
	}
	s.atRest()
	s.idle()
	s.say("nodes open again")
	for i, n := range s.nodes {
		s.reopen(n, i)
	}
	for _, n := range s.nodes {
		for _, c := range n.conns {
			s.close(c)
		}
		s.after(n)
	}
	s.settle(5 * time.Second)
	for _, n := range s.nodes {
		if n.Conns() != 0 || n.HalfOpen() != 0 || n.Memory() != 0 || len(n.timers) != 0 {
			s.fail("at the end, node %d has %d connections, %d half-open, %d bytes, %d timers (I14, I18)", n.index, n.Conns(), n.HalfOpen(), n.Memory(), len(n.timers))
		}
	}
}

// halfOpen verifies that no pair of ends is half-open any more, some round trips and timeouts after
// the network was made good: two ends of the same name are in OPEN, with the same numbers, or one
// of them has ended (I21).
func (s *sim) halfOpen(whole Time) {
	for _, c := range s.nodes[0].conns {
		n := c.name
		other := s.nodes[1].Conn(Name{pathTo(0), n.Version, n.Remote, n.Local})
		if other == nil || c.state == Closed || c.state == CloseWait || other.state == CloseWait {
			continue
		}
		d := s.of(s.nodes[1], other)
		if s.cookies != CookiesNever && c.state == Open && d.state == Open {
			// A cookie of the peer's life before may have been brought back after one of this life: nobody remembers
			// either. Both ends fail after their tries; atRest looks later.
			continue
		}
		if c.state != Open || d.state != Open || !c.pairs(d) {
			s.fail("%v after the network was made good, conn %d is in %v with the numbers %d and %d, and its peer in %v with %d and %d (I21)",
				s.now-whole, c.serial, c.state, c.iss, c.irs, d.state, d.irs, d.iss)
		}
	}
}

// settle lets time pass while programs read, until all is at rest, or it has been long.
func (s *sim) settle(long Time) {
	for end := s.now + long; s.now < end && !s.resting(); {
		s.run(s.now + 20*time.Millisecond)
		for _, n := range s.nodes {
			for c := n.listener.Accept(); c != nil; c = n.listener.Accept() {
				continue
			}
			for _, c := range n.conns {
				s.read(c, 1000)
			}
			s.after(n)
		}
	}
}

// resting reports whether nothing is under way: connections are open at both ends, and
// everything is acknowledged, or they are closed.
func (s *sim) resting() bool {
	if len(s.net.packets) > 0 {
		return false
	}
	for _, n := range s.nodes {
		if n.ready.Len() > 0 || n.raw.Len() > 0 {
			return false
		}
		for _, c := range n.conns {
			switch {
			case c.queue.n > 0, c.ackAt != never:
				return false
			case c.state == Closed:
			case c.state != Open || c.una != c.end || c.link == nil:
				return false
			case s.keepalive && (s.nodes[c.link.node.index] != c.link.node || c.link.state != Open):
				return false // it will find out
			}
		}
	}
	return true
}

// idle verifies that two idle nodes say nothing to each other, but for keepalives (I12).
func (s *sim) idle() {
	was := s.net.delivered
	long := 3 * time.Second
	s.run(s.now + long)
	open := 0
	for _, n := range s.nodes {
		for _, c := range n.conns {
			if c.state == Open && s.keepalive {
				open++
			}
		}
	}
	if n := s.net.delivered - was; n > open*int(long/(500*time.Millisecond))*4 { // a NUL and its answer, each perhaps again
		s.fail("two idle nodes exchange %d segments, with %d connections (I12)", n, open)
	}
}

// reopen has a node open a connection from each port, which succeeds (I11, I15).
func (s *sim) reopen(n *simNode, i int) {
	for _, c := range n.conns {
		if c.name.Local == simClient && c.state == Open {
			return
		}
	}
	before := len(s.conns)
	s.open(n, simClient, simListen)
	if len(s.conns) == before {
		s.fail("node %d can't open (I15)", i)
	}
	c := s.conns[before]
	s.after(n)
	s.settle(5 * time.Second)
	if c.state != Open {
		s.fail("node %d opens, and the connection is in %v: %v (I11, I15)", i, c.state, c.err)
	}
}
