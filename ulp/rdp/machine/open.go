package machine

import "urnic/ulp/rdp/wire"

// Open begins an active open (U3): it sends a SYN repeatedly, until the peer answers or has not
// answered Config.SYNTries of them. Events report the result. The errors are ErrNoRemote,
// ErrPort, ErrVersion, ErrAlreadyOpen, ErrResources, and those of invalid parameters.
func (m *Machine) Open(now Time, o OpenConfig) (*Conn, error) {
	m.tick(now)
	if o.Version == 0 {
		o.Version = 2
	}
	n := Name{o.Path.unmap(), o.Version, o.Port, o.Remote}
	p := o.withDefaults(&m.cfg)
	if err := p.check(); err != nil {
		return nil, err
	}
	switch {
	case !m.cfg.Versions.has(o.Version):
		return nil, ErrVersion
	case o.Remote == 0 || !o.Path.Remote.Addr().IsValid():
		return nil, ErrNoRemote
	case o.Version == 1 && max(o.Port, o.Remote) > maxPort1:
		return nil, ErrPort
	case len(m.conns) >= m.cfg.MaxConns: // U1
		return nil, ErrResources
	}
	if n.Local == 0 && !m.choosePort(&n) {
		return nil, ErrResources
	}
	if m.conns[n] != nil { // U4
		return nil, ErrAlreadyOpen
	}
	c := m.conn(n, &p)
	c.active = true
	m.conns[n] = c
	c.begin(m.iss(n))
	c.enter(SynSent, nil)
	c.sendSYN()
	return c, nil
}

// maxPort1 is the highest port of version 1.
const maxPort1 = 255

// allocable returns the ports that RDP chooses from (RFC 908 §3.2.2, RFC 1151 p.2).
func allocable(version uint8) (first, last uint32) {
	if version == 1 {
		return 64, maxPort1
	}
	return 1024, 1<<16 - 1
}

// choosePort completes a name with a local port that makes it unique, and at which no
// listener waits. Where it looks first can't be guessed (RFC 6056 §3.3.3).
func (m *Machine) choosePort(n *Name) bool {
	first, last := allocable(n.Version)
	count := last - first + 1
	m.issued++
	from := uint32(m.hash(*n, 'p', 0)) + m.issued
	for i := range count {
		n.Local = uint16(first + (from+i)%count)
		if m.conns[*n] == nil && len(m.listeners[service{n.Version, n.Local}]) == 0 {
			return true
		}
	}
	return false
}

// sendSYN sends SYN or SYN,ACK, and sets the timer for the next one.
func (c *Conn) sendSYN() {
	c.synDue = true
	c.synTries++
	c.synAt = c.m.now + c.rtt.backedOff(c.synTries-1, &c.m.cfg)
	c.wake()
	c.arm()
}

// synExpired sends SYN or SYN,ACK again, or ends the open: they are sent reliably, as
// data is (RFC 908 §3.4.3), with a bound on the tries.
func (c *Conn) synExpired() {
	if int(c.synTries) < c.m.cfg.SYNTries {
		c.sendSYN()
		return
	}
	switch {
	case !c.active:
		c.m.counters.Expired++
		c.release(ErrUnreachable)
	case c.restarts > 0:
		c.release(ErrHalfOpen)
	default:
		c.rst(c.nxt) // the peer may be half-open
		c.release(ErrUnreachable)
	}
}

// restart drops the record of an open and begins again with a new initial number: the peer
// continues an earlier connection, which an RST has to end. RFC 1151 p.3 drops the record, and
// in RFC 908 §5.7 the open succeeds. With Config.Restarts below 0 the open ends instead.
//
// It happens a few times, and only once in a timeout, after which the true answer has arrived.
// So forged acknowledgements can neither end an open nor prevent it from receiving that answer.
func (c *Conn) restart() {
	cfg := &c.m.cfg
	switch {
	case cfg.Restarts < 0:
		c.release(ErrHalfOpen)
		return
	case c.restarts > 0 && c.m.now < c.restartAt, int(c.restarts) >= cfg.Restarts, int(c.synTries) >= cfg.SYNTries:
		return // what is already sent may still be answered
	}
	c.restarts++
	c.restartAt = c.m.now + cfg.RTOInitial
	if c.state == SynRcvd {
		c.enter(SynSent, nil)
	}
	c.forgetSYN()
	c.begin(c.m.iss(c.name))
	c.sendSYN()
}

// forgetSYN undoes what the peer's SYN has set. It is not acknowledged any more.
func (c *Conn) forgetSYN() {
	c.peer, c.ordered = limits{}, false
	c.ackDue, c.ackAt = false, never
}

// pullSYN puts SYN or SYN,ACK into b.
func (c *Conn) pullSYN(b []byte) []byte {
	c.synDue = false
	h := c.m.header(c.name, wire.SYN)
	h.Seq = c.iss
	c.ours().put(h)
	if c.state == SynRcvd {
		h.Flags |= wire.ACK
		h.Ack = c.cur
		c.ackDue = false
	}
	if c.stats.Sent++; c.stats.Sent > 1 {
		c.stats.Resent++
	} else {
		c.progress = c.m.now // for the first sample of the round-trip time
	}
	return c.m.compose(b, h, nil, c.name.Path)
}
