package machine

import "urnic/ulp/rdp/wire"

const rstFlag = wire.RST

// arrive processes a segment of the connection (RFC 908 §3.7.2, RFC 1151
// p.2-3).
func (c *Conn) arrive(h *wire.Header, data []byte) {
	c.stats.Received++
	switch c.state {
	case CloseWait:
		c.arriveCloseWait(h)
		return
	case SynSent:
		c.arriveSynSent(h)
	case SynRcvd:
		c.arriveSynRcvd(h, data)
	case Open:
		c.arriveOpen(h, data)
	default: // in no other state there is a connection to arrive at
	}
	if c.state != Closed {
		c.arm()
	}
}

// arriveCloseWait discards the segment (W1, W2). If the connection was closed here, the RST for
// that may have been lost: then it is sent again, in answer to what is acknowledged. The peer can't tell
// it from the answer of CLOSED.
func (c *Conn) arriveCloseWait(h *wire.Header) {
	if h.Flags&wire.RST != 0 || !c.closed || h.Flags&wire.ACK == 0 || c.m.cfg.SilentCloseWait {
		return
	}
	c.m.answer(rawSegment{name: c.name, flags: wire.RST, seq: h.Ack + 1})
}

// reply sends an RST in answer to a segment that ends the connection: with a number in the peer's
// window, which is known if the segment has an acknowledgement.
func (c *Conn) reply(h *wire.Header) {
	switch {
	case c.m.raw.Len() >= maxAnswers:
	case h.Flags&wire.ACK != 0:
		c.rst(h.Ack + 1)
	default:
		c.rst(c.nxt)
	}
}

// arriveSynSent processes a segment in SYN-SENT. As RFC 1151 p.3 has it, the test for another
// acknowledgement comes after the others; but SYN,ACK only counts if it acknowledges our SYN.
func (c *Conn) arriveSynSent(h *wire.Header) {
	acks := h.Flags&wire.ACK != 0 && h.Ack == c.iss
	switch {
	case h.Flags&wire.RST != 0:
		if acks { // S1; others are S2
			c.release(ErrRefused)
		}
	case h.Flags&wire.SYN != 0 && acks: // S3
		c.adopt(h.Seq, limitsOf(h))
		if !c.peer.usable() {
			c.reply(h)
			c.release(ErrBadLimits)
			return
		}
		c.sampleSYN()
		c.opened()
		c.ackNow()
	case h.Flags&wire.SYN != 0 && h.Flags&wire.ACK == 0: // S4
		if !limitsOf(h).usable() {
			c.m.refuse(c.name, h)
			return
		}
		c.adopt(h.Seq, limitsOf(h))
		c.enter(SynRcvd, nil)
		c.repeatSYN()
	case h.Flags&wire.ACK != 0 && !acks: // S5
		c.wrongAck(h)
	default: // S6
	}
}

// wrongAck answers an acknowledgement of what an open has not sent with an RST, and begins again (S5,
// R4).
func (c *Conn) wrongAck(h *wire.Header) {
	if c.deny(h) {
		c.restart()
	}
}

// deny reports to the peer, by an RST, that the number that it acknowledges is not ours. It changes nothing
// here. As the segment may be forged, it is not answered often: deny reports whether it was.
func (c *Conn) deny(h *wire.Header) bool {
	if c.m.now < c.doubtAt {
		return false
	}
	c.doubtAt = c.m.now + c.m.cfg.Doubt
	c.rst(h.Ack + 1)
	return true
}

// repeatSYN answers a SYN with the original SYN,ACK (S4, R0). The timer is unchanged.
func (c *Conn) repeatSYN() {
	c.synDue = true
	c.wake()
}

// sampleSYN takes the time of our SYN as the first sample of the round-trip time, if it was sent
// once.
func (c *Conn) sampleSYN() {
	if c.stats.Sent == 1 {
		c.rtt.sample(c.m.now-c.progress, &c.m.cfg)
	}
}

// arriveSynRcvd processes a segment in SYN-RCVD (RFC 908 p.26, p.27).
//
// An active open is here because of a bare SYN, which proves nothing: it may be an old duplicate, or the peer
// may have begun again with another number since. Then the peer's segments are outside of a window that begins
// at that SYN. If both ends have accepted such a SYN, and answer what is outside with an acknowledgement (R1),
// neither ever learns what is wrong. So an active open looks at the acknowledgement before the window, as in
// SYN-SENT, and denies one of a number that is not its own. The denied peer goes back to SYN-SENT, and accepts
// our SYN,ACK there.
//
// Neither end accepts a new number, or another SYN of the peer, instead of the one that its SYN,ACK has
// acknowledged: the peer may be in OPEN because of that SYN,ACK. Only the peer's RST frees it.
func (c *Conn) arriveSynRcvd(h *wire.Header, data []byte) {
	acks := h.Flags&wire.ACK != 0 && h.Ack == c.iss
	if h.Flags&wire.SYN != 0 && h.Seq == c.irs { // R0
		switch {
		case acks: // both have opened at once (RFC 908 §5.2)
			c.sampleSYN()
			c.opened()
			c.ackNow()
			return
		case h.Flags&wire.ACK == 0 && limitsOf(h) == c.peer: // our SYN,ACK was lost
			c.repeatSYN()
			return
		}
	}
	switch {
	case c.goesBack() && h.Flags&wire.ACK != 0 && h.Flags&wire.RST == 0 && !acks: // R6
		c.deny(h)
	case !within(h.Seq, c.irs, c.cur-c.irs+2*c.window()): // R1
		c.outside(h, data)
	case h.Flags&wire.RST != 0: // R2
		switch {
		case c.challenge(h):
		case c.goesBack() && h.Seq == c.irs+1:
			c.backToSynSent()
		default:
			c.release(ErrRefused) // of a passive open, only this connection goes
		}
	case h.Flags&wire.SYN != 0: // R3
		if c.challenge(h) {
			return
		}
		c.reply(h)
		c.release(ErrReset)
	case h.Flags&wire.EACK != 0, h.Flags&wire.ACK != 0 && !acks: // R4, R6
		if c.active {
			c.wrongAck(h)
			return
		}
		c.reply(h)
		c.release(ErrReset)
	case acks: // R5
		c.sampleSYN()
		c.opened()
		c.inside(h, data) // R8
	default: // R7
	}
}

// goesBack reports whether an end in SYN-RCVD goes back to SYN-SENT if the peer denies its SYN: if it
// came from there, unless Config.Restarts has each open try once.
func (c *Conn) goesBack() bool { return c.active && c.m.cfg.Restarts >= 0 }

// backToSynSent makes an active open forget the peer's SYN, which the peer has denied (R2),
// and send its own again. An RST refuses the open only if it acknowledges that SYN (S1).
func (c *Conn) backToSynSent() {
	c.forgetSYN()
	c.enter(SynSent, nil)
	c.repeatSYN()
}

// challenge reports whether an RST or a SYN inside the window is not obeyed but answered, as
// RFC 5961 has it: if the settings say so, and the number is not the next one.
func (c *Conn) challenge(h *wire.Header) bool {
	if !c.m.cfg.StrictReset || h.Flags&wire.RST != 0 && h.Seq == c.cur+1 {
		return false
	}
	c.doubt()
	return true
}

// outside answers a segment outside of the window with what is acknowledged (R1, O1), and
// discards it. Data, NUL and SYN are always answered: they may be repeated as an acknowledgement
// was lost. Others are not answered if there was such an answer just now: two ends whose numbers
// disagree would answer each other forever.
func (c *Conn) outside(h *wire.Header, data []byte) {
	c.stats.Outside++
	if len(data) > 0 || h.Flags&(wire.NUL|wire.SYN) != 0 {
		c.ackNow()
		return
	}
	c.doubt()
}

// maxDoubts bounds the answers to bare acknowledgements and RSTs, until something is acceptable.
const maxDoubts = 8

// doubt answers what may be forged, but not often.
func (c *Conn) doubt() {
	if c.answers >= maxDoubts || c.m.now < c.doubtAt {
		return
	}
	c.answers++
	c.doubtAt = c.m.now + c.m.cfg.Doubt
	c.ackNow()
}

// arriveOpen processes a segment in OPEN (RFC 908 p.28, p.29).
func (c *Conn) arriveOpen(h *wire.Header, data []byte) {
	switch {
	case !within(h.Seq, c.cur, 2*c.window()): // O1
		c.outside(h, data)
	case h.Flags&wire.RST != 0: // O2
		c.noteReset(h.Seq)
		if c.challenge(h) {
			return
		}
		c.fail(ErrReset)
		c.closeWait()
	case h.Flags&wire.SYN != 0: // O4
		if c.challenge(h) {
			return
		}
		c.reply(h)
		c.release(ErrReset)
	default:
		c.inside(h, data)
	}
}

// inside processes an acceptable segment of a connection that is open: its acknowledgements first,
// also those of a NUL, then its data (O3, O5 to O10, R8).
func (c *Conn) inside(h *wire.Header, data []byte) {
	c.heard, c.silent, c.answers = c.m.now, 0, 0
	if len(data) > 0 && h.Len()+len(data) > c.p.MaxSegment { // O5
		c.fail(ErrOversized)
		c.closed = true
		c.rst(c.nxt)
		c.closeWait()
		return
	}
	c.acknowledged(h)
	switch {
	case len(data) > 0:
		c.accept(h.Seq, data)
	case h.Flags&wire.NUL != 0:
		c.accept(h.Seq, nil)
	}
}
