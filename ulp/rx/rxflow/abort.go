package rxflow

import (
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// longRow is how many aborts of a call, sent by turns, are a loop. Two sides may abort a call
// at the same time, and report it again for what was in transit.
const longRow = 6

// An abortRow counts aborts of a call that answer one another.
type abortRow struct {
	n         int
	from      dissect.Side
	cid, call uint32
}

// answers counts an abort, and reports whether there are enough for a loop.
func (r *abortRow) answers(from dissect.Side, h *wire.Header) bool {
	if r.n > 0 && r.from != from && r.cid == h.CID && r.call == h.Call {
		r.n++
	} else {
		r.n = 1
	}
	r.from, r.cid, r.call = from, h.CID, h.Call
	return r.n == longRow
}

// abort takes an abort of a call, or of the connection.
func (c *conn) abort(from dissect.Side, at capture.At, p *Packet) {
	h := &p.Header
	if len(p.Body) < wire.AbortLen {
		c.blame(rulePayload, from, at, "abort packets have a code of %d bytes; this has %d", wire.AbortLen, len(p.Body))
	}
	if c.aborted.answers(from, h) {
		c.blame(ruleLoop, from, at, "the sixth abort of call %d in a row, by turns: an abort is never answered", h.Call)
	}
	if h.Call != 0 {
		if k := c.call(from, at, h); k != nil {
			k.abort(c, from, at, h, *p.Code)
		}
		return
	}
	if d := &c.dirs[from]; d.dead == 0 {
		d.dead = h.Serial
	}
	for i := range c.channels {
		if k := c.channels[i].now; k != nil {
			k.abort(c, from, at, h, *p.Code)
		}
	}
}
