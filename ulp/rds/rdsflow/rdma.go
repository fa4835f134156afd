package rdsflow

import (
	"errors"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// reason returns what an error of the codec found, without its prefix.
func reason(err error) string {
	if e, ok := errors.AsType[*wire.FormatError](err); ok {
		return e.Fault.String() + ": " + e.Reason
	}
	return err.Error()
}

// offers judges what a side says of itself when a connection over RDMA is set up. ours tells
// that it names the addresses that the connection has.
func (c *iwarp) offers(from dissect.Side, at capture.At, v *wire.Private, ours bool) {
	if _, _, err := v.Agree(); err != nil {
		c.blame(rulePrivate, from, at, "%s", reason(err))
	}
	if other := &c.private[1-from]; c.found[1-from] && (v.Source != other.Dest || v.Dest != other.Source) {
		c.blame(rulePrivate, from, at, "the reply is of %v for %v, the request of %v for %v", v.Source, v.Dest, other.Source, other.Dest)
	} else if !ours {
		c.r.Note(from, at, "the private data name %v and %v, which are not the addresses of the connection", v.Source, v.Dest)
	}
	if c.found[1-from] && from == dissect.Server && v.TOS != c.private[1-from].TOS {
		c.blame(rulePrivate, from, at, "the reply has the type of service %d, the request %d", v.TOS, c.private[1-from].TOS)
	}
}

// agreed takes what both sides have said of themselves.
func (c *conn) agreed(private *[2]wire.Private) {
	c.metered = private[0].Credit > 0 && private[1].Credit > 0 && c.transport != dissect.RoCEv2
	for s := range c.dir {
		c.dir[s].credit = int64(private[1-s].Credit)
		c.dir[s].floor = private[s].AckSequence
	}
}

// spend takes the credit that a Send takes.
func (c *conn) spend(from dissect.Side, at capture.At) {
	if !c.metered {
		return
	}
	d := &c.dir[from]
	d.credit--
	if d.credit < 0 && !d.starved {
		d.starved = true
		c.blame(ruleCredit, from, at, "it sends without a credit")
	}
}

// gain takes the credits that a header gives.
func (c *conn) gain(from dissect.Side, n uint8) {
	d := &c.dir[1-from]
	if d.credit += int64(n); d.credit >= 0 {
		d.starved = false
	}
}

// fragment takes a Send.
func (c *conn) fragment(from dissect.Side, at capture.At, b []byte) {
	c.spend(from, at)
	if len(b) < wire.HeaderLen {
		c.sum.side(from).Bad++
		c.blame(ruleHeader, from, at, "a Send of %d bytes; a header has %d", len(b), wire.HeaderLen)
		c.lose(from)
		return
	}
	raw, body := b[:wire.HeaderLen], b[wire.HeaderLen:]
	h, ok := c.header(from, at, raw)
	if !ok {
		c.lose(from)
		return
	}
	c.gain(from, h.Credit)
	d := &c.dir[from]
	if h.Kind() == wire.Ack { // the one that may stand between fragments
		msg := d.msg
		c.start(from, at, raw, &h)
		if len(body) > 0 {
			c.blame(ruleAckOnly, from, at, "%d bytes follow an acknowledgement alone", len(body))
		}
		c.complete(from, at)
		d.msg = msg
		return
	}
	if c.misplaced(from, &h, body) {
		return
	}
	if d.msg != nil && !d.msg.Header.SameMessage(&h) {
		if !d.msg.unsure {
			c.blame(ruleFragment, from, at, "after %d of %d bytes of message %d comes %v", d.msg.got, d.msg.Header.Len, d.msg.Header.Sequence, &h)
		}
		d.msg = nil
	}
	if d.msg == nil {
		c.start(from, at, raw, &h)
	}
	c.place(from, at, raw, &h, body)
}

// misplaced reports whether a fragment is of a message of which an unknown part is lost.
func (c *conn) misplaced(from dissect.Side, h *wire.Header, body []byte) bool {
	d := &c.dir[from]
	switch {
	case d.unplaced != nil && d.unplaced.SameMessage(h):
		c.r.Lacks(len(body))
		return true
	case d.unsure && d.msg == nil && (len(body) != min(int(h.Len), wire.FragmentLen) || h.Kind().Sequenced() && h.Sequence == d.last):
		// The first one behind a hole, and not the first of its message.
		d.unplaced = h
		c.r.Lacks(len(body))
		return true
	}
	return false
}

// place adds a fragment to its message.
func (c *conn) place(from dissect.Side, at capture.At, raw []byte, h *wire.Header, body []byte) {
	d := &c.dir[from]
	m := d.msg
	if want := min(int(m.Header.Len)-m.got, wire.FragmentLen); len(body) != want {
		if d.msg = nil; m.unsure {
			d.unplaced = h
			return
		}
		c.blame(ruleFragment, from, at, "%d of %d bytes of message %d are there; the next fragment has %d, and not %d",
			m.got, m.Header.Len, h.Sequence, want, len(body))
		return
	}
	m.Fragments++
	if int(m.Header.Len) > wire.FragmentLen {
		c.r.Emit(from, at, &Message{Header: *h, Raw: [wire.HeaderLen]byte(raw), Part: true, Offset: m.got, Length: len(body)})
	}
	m.add(body)
	if m.got == int(m.Header.Len) {
		c.complete(from, at)
	}
}
