package machine

import "urnic/ulp/rdp/wire"

// MaxMessage returns the length in bytes of the longest message that Send accepts now: 0
// if the connection is not open.
func (c *Conn) MaxMessage() int {
	if c.state != Open {
		return 0
	}
	return wire.DataRoom(uint16(c.sendMax()), 0)
}

// Send sends a message, which it copies (U12). The errors are ErrWouldBlock, if there is no
// space now (U13), after which a Writable event follows; ErrNotOpen, ErrEmpty and a *SizeError
// (U14, U15).
func (c *Conn) Send(now Time, data []byte) error {
	if err := c.maySend(now, len(data)); err != nil {
		return err
	}
	c.unacked++
	c.append(outSegment{data: c.m.pool.clone(data)})
	return nil
}

// SendBuffer is like Send, without the copy: data is what Machine.Buffer has returned, or a
// beginning of it. If the error is nil, the machine owns it from then on.
func (c *Conn) SendBuffer(now Time, data []byte) error {
	if err := c.maySend(now, len(data)); err != nil {
		return err
	}
	c.unacked++
	c.append(outSegment{data: data})
	return nil
}

// maySend returns why a message of n bytes can't be sent, or nil.
func (c *Conn) maySend(now Time, n int) error {
	c.m.tick(now)
	if c.state != Open {
		return ErrNotOpen
	}
	if n == 0 {
		return ErrEmpty
	}
	if most := c.MaxMessage(); n > most {
		return &SizeError{n, most}
	}
	if !c.room() {
		c.wants = true
		return ErrWouldBlock
	}
	return nil
}

// append gives a segment the next number.
func (c *Conn) append(s outSegment) {
	if c.una == c.end {
		c.progress = c.m.now
	}
	c.out.makeRoom(&c.m.pool, c.una, c.end)
	*c.out.at(c.end) = s
	c.end++
	c.wake()
}

// probe checks whether the peer of an idle connection is there: only a NUL makes a live peer
// answer, and so finds a dead one (RFC 908 §3.2.6, §4.7; T3).
func (c *Conn) probe() {
	c.stats.Probes++
	c.append(outSegment{nul: true})
}

// room reports whether Send accepts another message: the window has a slot for it, or the
// queue behind the window.
func (c *Conn) room() bool {
	return c.windowTakes(int(c.end-c.nxt) - c.p.SendQueue)
}

// windowOpen reports whether the peer's window allows another number to be sent.
func (c *Conn) windowOpen() bool { return c.windowTakes(0) }

// windowTakes reports whether the window allows so many numbers and one more to be sent.
//
// At most SND.MAX may be without an acknowledgement, cumulative or extended, and no number may be
// beyond the peer's acceptance window of 2*SND.MAX (RFC 908 §3.5). The last number of that
// window is left free: SND.NXT, which acknowledgements and RSTs carry, would be outside of it,
// and they would not be accepted.
func (c *Conn) windowTakes(more int) bool {
	sent, most := int(c.nxt-c.una)+more, int(c.peer.window)
	if c.m.cfg.NarrowWindow {
		return sent < most // RFC 908 p.23
	}
	return c.inFlight()+more < most && sent < 2*most-1
}

// shut sends an RST, and ends the connection (U5, U7).
func (c *Conn) shut() {
	c.closed = true
	if c.state == SynSent || c.state == SynRcvd {
		c.rst(c.nxt)
		c.release(nil)
		return
	}
	if c.ackDue || c.ackAt != never {
		// Without an acknowledgement, the peer would consider lost what was
		// accepted.
		c.m.sendRaw(rawSegment{name: c.name, flags: wire.ACK, seq: c.nxt, ack: c.cur})
	}
	c.rst(c.nxt)
	c.closeWait()
}

// Close closes the connection at once (U5, U7): what the peer has not acknowledged may be lost, and
// what was not read is lost. Status shows when closing is safe. Close returns ErrClosing or
// ErrNotOpen if the connection has already ended (U8).
func (c *Conn) Close(now Time) error {
	c.m.tick(now)
	c.dropQueue()
	switch c.state {
	case Open, SynSent, SynRcvd:
		c.shut()
		return nil
	case CloseWait:
		return ErrClosing
	default:
		return ErrNotOpen
	}
}
