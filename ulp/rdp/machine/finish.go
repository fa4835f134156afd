package machine

// Abort is like Close, but shows the peer that something is missing: the number of its RST says that one
// more segment was sent, which will never arrive. A peer that looks at Status.Short then knows that this
// was no regular end; for others it is an RST like any other.
func (c *Conn) Abort(now Time) error {
	c.m.tick(now)
	// The RST must still be in the peer's window.
	if c.state == Open && c.nxt-c.una < 2*uint32(c.peer.window)-1 {
		c.nxt++
	}
	return c.Close(now)
}

// RepeatClose sends the RST of Close once more, as the first one may have been lost and is not
// acknowledged. It does nothing when CLOSE-WAIT is over, or if the connection was not closed here.
func (c *Conn) RepeatClose(now Time) {
	c.m.tick(now)
	if c.state == CloseWait && c.closed && c.m.raw.Len() < maxAnswers {
		c.rst(c.nxt)
	}
}

// Probe sends a NUL now, which a live peer acknowledges at once (RFC 908 §4.7). Stats.Answered counts
// those that are acknowledged, and an Answered event reports it. The errors are ErrNotOpen, and
// ErrWouldBlock if the window is full.
func (c *Conn) Probe(now Time) error {
	c.m.tick(now)
	if c.state != Open {
		return ErrNotOpen
	}
	if !c.room() {
		c.wants = true
		return ErrWouldBlock
	}
	c.probe()
	return nil
}

// noteReset notes how far the peer says in an RST that it has sent: its number is the peer's SND.NXT, unless
// the peer has forgotten the connection and answers with what this end has acknowledged.
func (c *Conn) noteReset(seq uint32) {
	if less(c.claimed, seq) {
		c.claimed = seq
	}
}

// short reports whether something that the peer has sent is missing: before a number that has
// arrived, or before that of an RST.
func (c *Conn) short() bool {
	return less(c.whole+1, c.claimed) || c.got.n > 0 && less(c.whole, c.got.high)
}
