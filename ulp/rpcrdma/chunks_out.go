package rpcrdma

import (
	"fmt"
	"slices"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// Bytes of parts of a header, and the sizes from which on it pays to move bulk data on
// its own.
const (
	readSegmentLen = 8 + segmentLen // a Read segment, and the word in front of it
	chunkLen       = 8              // a Write chunk, without its segments
	replyChunkLen  = 4              // a Reply chunk, beyond the word that says that there is none
	leastMoved     = 1024           // beside a call that is moved anyway
)

// padded returns how many bytes n bytes of data take in a stream (RFC 4506 §3).
func padded(n int) int { return (n + 3) &^ 3 }

var zeros [3]byte

// plan decides how a call travels, opens what memory that takes, and builds the message. It
// leaves the requests in c.wrs, none of which is posted yet.
func (c *call) plan(r *oncrpc.Request) error {
	h := &c.hdr
	*h = Header{XID: r.XID, Version: Version, Proc: Msg, Read: h.Read[:0], Write: h.Write[:0], segments: h.segments[:0]}
	asked, _ := c.q.credits.now()
	h.Credits = uint32(asked)
	c.wrs, c.regions, c.sinks = c.wrs[:0], c.regions[:0], nil
	if err := c.planReply(r); err != nil {
		return err
	}
	return c.planCall(r)
}

// segments returns how many segments a chunk of n bytes has.
func (c *call) segments(n int) int {
	most := c.q.e.cfg.MaxSegment
	return n/most + min(1, n%most)
}

// open opens memory for the responder, and calls add with its segments.
func (c *call) open(mem []byte, write bool, add func(s Segment)) error {
	for piece := range slices.Chunk(mem, c.q.e.cfg.MaxSegment) {
		g, wrs, err := c.q.memory.open(piece, write, c.wrs)
		if err != nil {
			return err
		}
		c.wrs, c.regions = wrs, append(c.regions, g)
		add(g.segment())
	}
	return nil
}

// planReply provides memory for the reply: Write chunks if what is eligible may not fit
// into a Send with the rest, and a Reply chunk exactly when that may not fit (RFC 8166
// §4.3.3).
func (c *call) planReply(r *oncrpc.Request) error {
	if r.ReplyMost < 0 || r.ReplyMost > maxMessage {
		return fmt.Errorf("%w: a reply of up to %d octets", ErrTooLong, r.ReplyMost)
	}
	header, stream, eligible := minLen, r.ReplyMost, 0
	for _, s := range r.Sinks {
		eligible += padded(len(s))
	}
	if most := c.q.e.receives; header+stream+eligible > most && len(r.Sinks) > 0 && !r.Whole && c.q.chunks {
		c.sinks = r.Sinks
		for _, s := range r.Sinks {
			header += chunkLen + c.segments(len(s))*segmentLen
		}
	} else {
		stream += eligible
	}
	h := &c.hdr
	for _, s := range c.sinks { // one of no bytes is an empty chunk, whose result comes in the stream (RFC 8166 §4.3.2.3)
		from := len(h.segments)
		if err := c.open(s, true, func(s Segment) { h.segments = append(h.segments, s) }); err != nil {
			return err
		}
		h.Write = append(h.Write, h.segments[from:len(h.segments):len(h.segments)])
	}
	if header+stream <= c.q.e.receives {
		return nil
	}
	if !c.q.chunks {
		return fmt.Errorf("%w: its reply may have %d octets, and there are no chunks in the reverse direction", ErrTooLong, stream)
	}
	var err error
	if c.reply, err = c.q.e.mem.get(stream); err != nil {
		return err
	}
	from := len(h.segments)
	h.HasReply = true
	err = c.open(c.reply.mem[:padded(stream)], true, func(s Segment) { h.segments = append(h.segments, s) })
	h.Reply = h.segments[from:]
	return err
}

// planCall takes out of the call what does not fit into a Send, if that is eligible and
// it pays; what then is still too long goes into a Read chunk of its own, as a Long Call
// (RFC 8166 §3.5.3).
func (c *call) planCall(r *oncrpc.Request) error {
	h, most := &c.hdr, c.q.e.most
	stream, bulks := r.Call.Len(), r.Call.Bulks()
	c.moved = c.moved[:0]
	reads := 0
	if h.Len()+stream > most {
		switch {
		case !c.q.chunks:
			return fmt.Errorf("%w: it has %d octets, and there are no chunks in the reverse direction", ErrTooLong, stream)
		case !r.Whole:
			stream, reads = c.reduce(bulks, stream)
		}
		if h.Len()+reads*readSegmentLen+stream > most {
			h.Proc = NoMsg
			if err := c.long(r, bulks); err != nil {
				return err
			}
			stream = 0
		}
	}
	for i, b := range bulks {
		if c.reduced(i) {
			if err := c.read(uint32(b.Position), &b); err != nil {
				return err
			}
		}
	}
	n := h.Len() + stream
	if n > most {
		return fmt.Errorf("%w: its header has %d octets, and a Send has %d at most", ErrTooLong, n, most)
	}
	p, b, err := c.q.e.room(c.scratch, n)
	if err != nil {
		return err
	}
	p = h.Append(p)
	if h.Proc == Msg {
		p = r.Call.Reduced(p, func(i int, _ xdr.Bulk) bool { return c.reduced(i) })
	}
	if b == nil {
		c.scratch = p
	}
	c.wrs = append(c.wrs, c.q.e.message(p, b))
	return nil
}

// reduced reports whether a bulk is taken out of the call.
func (c *call) reduced(i int) bool { return i < len(c.moved) && c.moved[i] }

// reduce chooses which bulks are taken out of a stream of so many bytes, the longest
// first, until the rest fits into a Send. It returns how long that is, and how many
// Read segments there are.
func (c *call) reduce(bulks []xdr.Bulk, stream int) (rest, segments int) {
	c.moved = append(c.moved, make([]bool, len(bulks))...)
	for c.hdr.Len()+segments*readSegmentLen+stream > c.q.e.most {
		best := -1
		for i := range bulks {
			if !c.moved[i] && (best < 0 || bulks[i].Len > bulks[best].Len) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		n, pieces := bulks[best].Len, 0
		for _, p := range bulks[best].Pieces {
			pieces += c.segments(len(p))
		}
		if padded(n) <= pieces*readSegmentLen {
			break
		}
		c.moved[best] = true
		stream -= padded(n)
		segments += pieces
	}
	return stream, segments
}

// long puts the call, without the long ones of what is taken out of it, into the Read
// chunk at position zero, with all that fills it up.
func (c *call) long(r *oncrpc.Request, bulks []xdr.Bulk) error {
	n := r.Call.Len()
	for i := range c.moved {
		size := bulks[i].Len
		c.moved[i] = c.moved[i] && size >= leastMoved
		if c.moved[i] {
			n -= padded(size)
		}
	}
	var err error
	if c.longCall, err = c.q.e.mem.get(n); err != nil {
		return err
	}
	p := r.Call.Reduced(c.longCall.mem[:0], func(i int, _ xdr.Bulk) bool { return c.reduced(i) })
	return c.segment(0, p)
}

// segment makes memory a part of the Read chunk at a position.
func (c *call) segment(position uint32, mem []byte) error {
	return c.open(mem, false, func(s Segment) { c.hdr.Read = append(c.hdr.Read, ReadSegment{position, s}) })
}

// read makes a Read chunk. "The Requester SHOULD NOT include the data item's XDR roundup
// padding in the chunk" (RFC 8166 §3.4.5.2).
func (c *call) read(position uint32, b *xdr.Bulk) error {
	for _, p := range b.Pieces {
		if err := c.segment(position, p); err != nil {
			return err
		}
	}
	if fill := padded(b.Len) - b.Len; fill > 0 && c.q.e.cfg.Roundup {
		return c.segment(position, zeros[:fill])
	}
	return nil
}

// invalidations appends the requests that close the open regions.
func (c *call) invalidations() []rnic.SendWR {
	c.wrs = c.wrs[:0]
	for i := range c.regions {
		c.wrs = c.q.memory.invalidation(&c.regions[i], c.wrs)
	}
	return c.wrs
}
