package rpcflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

// A direction is what one side calls the other for.
type direction struct {
	caller dissect.Side
	open   map[uint32]*call
	memory memory

	touched touched // what the other side should not have touched

	// limit is how many calls may be open at a time. A lower one holds when the caller
	// must have heard of it: lower replies have granted less since the last that granted
	// limit, and at most lowest.
	limit, lower, lowest uint32
	first                bool // no reply has been seen
	metered              bool // all replies are known
	known                bool // all calls are known
	losses               int  // of the other side's bytes
	forbidden            bool // STags were invalidated that way though it is not agreed on, and that was said
	full                 bool // not all calls were remembered, and that was said
}

// A call is one that waits for its reply.
type call struct {
	from    dissect.Side
	at      capture.At
	header  *rpcrdma.Header
	bad     bool // its header can't be used
	inline  []byte
	regions []*region   // all of them
	write   [][]*region // by chunk
	reply   []*region
	waiting int  // Read segments that were not read to their end
	rpc     *RPC // nil until it is whole, or if it can't be decoded
	losses  int  // those of the direction when it began
	closed  bool
}

// begin remembers a call. It returns false if there are too many.
func (d *direction) begin(c *conn, k *call) bool {
	if d.open == nil {
		d.open = map[uint32]*call{}
	}
	if old := d.open[k.header.XID]; old != nil {
		c.sum.Unanswered++
		d.close(c, old)
	}
	segments := len(k.header.Read) + len(k.header.Reply)
	for _, w := range k.header.Write {
		segments += len(w)
	}
	if c.a.open >= maxOpen || c.a.regions+segments > maxRegions {
		if !d.full {
			d.full = true
			c.r.Note(d.caller, k.at, "too many calls are open: not all are matched with their replies and with memory")
		}
		d.known, d.metered = false, false
		return false
	}
	c.a.open++
	c.a.regions += segments
	k.from, k.losses = d.caller, d.losses
	d.open[k.header.XID] = k
	for i := range k.header.Read {
		s := &k.header.Read[i]
		r := k.region(useRead, s.Segment, fmt.Sprintf("XID %08x, Read chunk at %d", k.header.XID, s.Position))
		if s.Length == 0 {
			r.full = true
		} else {
			k.waiting++
		}
	}
	for i, w := range k.header.Write {
		var chunk []*region
		name := fmt.Sprintf("XID %08x, Write chunk %d", k.header.XID, i+1)
		for _, s := range w {
			chunk = append(chunk, k.region(useWrite, s, name))
		}
		k.write = append(k.write, chunk)
	}
	for _, s := range k.header.Reply {
		k.reply = append(k.reply, k.region(useReply, s, fmt.Sprintf("XID %08x, Reply chunk", k.header.XID)))
	}
	for _, r := range k.regions {
		if !d.memory.add(r) && !d.full {
			d.full = true
			c.r.Note(d.caller, k.at, "more than %d open segments have the STag %v: not all that is done to them is matched", maxShared, r.seg.Handle)
		}
	}
	return true
}

func (k *call) region(u use, s rpcrdma.Segment, name string) *region {
	r := &region{call: k, use: u, seg: s, name: name}
	k.regions = append(k.regions, r)
	return r
}

// close forgets a call.
func (d *direction) close(c *conn, k *call) {
	k.closed = true
	delete(d.open, k.header.XID)
	d.memory.remove(k, c.a)
	c.a.open--
	c.a.regions -= len(k.regions)
	c.a.kept -= len(k.inline)
	for _, r := range k.regions {
		c.a.kept -= len(r.span.data)
		r.span.data = nil
	}
}

// end forgets all calls, and says which have no reply.
func (d *direction) end(c *conn, at capture.At) {
	left := slices.SortedFunc(maps.Values(d.open), func(a, b *call) int { return cmp.Compare(a.at.Packet, b.at.Packet) })
	n := len(left)
	var names []string
	for i, k := range left {
		if i < 4 {
			names = append(names, k.String())
		}
		d.close(c, k)
	}
	c.a.past -= len(d.memory.order)
	d.memory = memory{}
	if n == 0 {
		return
	}
	c.sum.Unanswered += n
	more := ""
	if n > len(names) {
		more = ", ..."
	}
	c.r.Note(d.caller, at, "%d calls of the %v have no reply: %s%s", n, d.caller, strings.Join(names, ", "), more)
}

func (k *call) String() string {
	name := fmt.Sprintf("XID %08x", k.header.XID)
	if k.rpc != nil {
		name += " " + k.rpc.Title()
	}
	return name
}

// call takes a call.
func (c *conn) call(from dissect.Side, at capture.At, m *dissect.Sent, h *rpcrdma.Header, inline []byte) {
	d := &c.dir[from]
	c.sum.ask(h.Credits)
	if m.Invalidates {
		c.r.Violate(ruleInvalidate, from, at, "a Send with Invalidate carries a call (XID %08x); only replies may be sent so", h.XID)
	}
	if old := d.open[h.XID]; old != nil && !old.bad && d.metered {
		c.r.Violate(ruleXID, from, at, "XID %08x is in use: its call in packet %d has no reply", h.XID, old.at.Packet)
	}
	c.checkSegments(from, at, h)
	k := &call{at: at, header: clone(h)}
	if len(h.Read) > 0 && c.a.keep(len(inline)) {
		k.inline = append([]byte(nil), inline...)
	}
	if !d.begin(c, k) {
		c.a.kept -= len(k.inline)
		return
	}
	c.checkCredits(d, at, h)
	c.sum.open(len(d.open))
	if k.waiting > 0 {
		return
	}
	if len(h.Read) > 0 {
		inline = k.inline
	}
	c.decodeCall(k, inline, at)
}

// checkSegments judges the segments that a call names.
func (c *conn) checkSegments(from dissect.Side, at capture.At, h *rpcrdma.Header) {
	bad := func(s rpcrdma.Segment) bool { return s.Length > 0 && s.Offset+uint64(s.Length-1) < s.Offset }
	for i := range h.Read {
		if bad(h.Read[i].Segment) {
			c.r.Violate(ruleMemory, from, at, "a segment of XID %08x goes beyond 2^64: %s", h.XID, segmentString(h.Read[i].Segment))
		}
	}
	for _, w := range append(slices.Clip(h.Write), h.Reply) {
		for _, s := range w {
			if bad(s) {
				c.r.Violate(ruleMemory, from, at, "a segment of XID %08x goes beyond 2^64: %s", h.XID, segmentString(s))
			}
		}
	}
}

// checkCredits judges whether a call may be sent (RFC 8166 §3.3.1, §3.3.3).
func (c *conn) checkCredits(d *direction, at capture.At, h *rpcrdma.Header) {
	open := uint32(len(d.open))
	switch {
	case !d.metered:
	case h.Credits == 0:
		c.r.Violate(ruleCredits, d.caller, at, "XID %08x asks for no credits; it takes one itself", h.XID)
	case d.first && open > 1:
		c.r.Violate(ruleFirst, d.caller, at, "XID %08x is the call number %d, and no reply has granted more than one credit", h.XID, open)
	case open > min(d.limit, h.Credits) && !d.first:
		c.r.Violate(ruleCredits, d.caller, at, "XID %08x makes %d calls that are open; %d are granted, %d asked for", h.XID, open, d.limit, h.Credits)
	}
}

// granted takes the credits of a reply.
func (d *direction) granted(n uint32) {
	if n >= d.limit || d.first {
		d.limit, d.lower, d.lowest, d.first = n, 0, 0, false
		return
	}
	// Those who sent calls before they have heard of this are not to blame: at most
	// limit replies can be on their way.
	d.lower++
	d.lowest = max(d.lowest, n)
	if d.lower >= d.limit {
		d.limit, d.lower, d.lowest = d.lowest, 0, 0
	}
}

// answer finds the call that a message answers, and judges credits and invalidation.
func (c *conn) answer(from dissect.Side, at capture.At, m *dissect.Sent, h *rpcrdma.Header) *call {
	d := &c.dir[1-from]
	c.sum.grant(h.Credits)
	if h.Credits == 0 {
		c.r.Violate(ruleCredits, from, at, "the reply to XID %08x grants no credits", h.XID)
	}
	d.granted(h.Credits)
	k := d.open[h.XID]
	if k == nil && d.known {
		c.r.Violate(ruleXID, from, at, "a reply to XID %08x, and there is no such call", h.XID)
	}
	if m.Invalidates {
		c.checkInvalidate(from, at, k, m.Invalidate, h.XID)
	}
	return k
}

// checkInvalidate judges a Send with Invalidate (RFC 8797 §4.1).
func (c *conn) checkInvalidate(from dissect.Side, at capture.At, k *call, tag stag.STag, xid uint32) {
	if d := &c.dir[1-from]; !d.forbidden && c.both() && (!c.private[0].Invalidate || !c.private[1].Invalidate) {
		who := "neither side has"
		switch {
		case c.private[from].Invalidate:
			who = fmt.Sprintf("the %v has not", 1-from)
		case c.private[1-from].Invalidate:
			who = fmt.Sprintf("the %v has not", from)
		}
		d.forbidden = true // one report does for all
		c.r.Violate(ruleInvalidate, from, at, "the reply to XID %08x invalidates an STag, but %s set R in the private data", xid, who)
	}
	if k != nil && !k.bad && !has(k.header, tag) {
		c.r.Violate(ruleInvalidate, from, at, "the reply to XID %08x invalidates STag %v, which is none of its chunks'", xid, tag)
	}
}

// refused takes an RDMA_ERROR (RFC 8166 §4.5).
func (c *conn) refused(from dissect.Side, at capture.At, m *dissect.Sent, h *rpcrdma.Header) {
	d := &c.dir[1-from]
	k := c.answer(from, at, m, h)
	c.sum.Errors++
	if k != nil {
		if h.Version != k.header.Version && k.header.Version != 0 {
			c.r.Violate(ruleError, from, at, "the RDMA_ERROR to XID %08x has version %d, the call has %d", h.XID, h.Version, k.header.Version)
		}
		d.close(c, k)
	}
}

// reply takes a reply.
func (c *conn) reply(from dissect.Side, at capture.At, m *dissect.Sent, h *rpcrdma.Header, inline []byte) {
	d := &c.dir[1-from]
	k := c.answer(from, at, m, h)
	if len(h.Read) > 0 {
		c.r.Violate(ruleReadList, from, at, "the reply to XID %08x has a Read list", h.XID)
	}
	if k == nil {
		c.decodeReply(nil, h, inline, from, at)
		return
	}
	if !k.bad {
		if k.waiting > 0 {
			c.unread(k, from, at)
		}
		if d.losses == k.losses { // otherwise Writes may be missing
			c.checkChunks(k, h, from, at)
		}
	}
	c.decodeReply(k, h, inline, from, at)
	d.close(c, k)
}

// unread takes notice of a call that is answered, though its Read chunks were not read to
// their end: it need not be wrong, if the call was refused for another reason.
func (c *conn) unread(k *call, from dissect.Side, at capture.At) {
	var have, all uint64
	for _, r := range k.regions {
		if r.use == useRead {
			n, _ := r.span.moved()
			have += n
			all += uint64(r.seg.Length)
		}
	}
	d := &c.dir[k.from]
	if d.losses == k.losses && c.dir[1-k.from].losses == 0 {
		c.r.Note(from, at, "XID %08x is answered, though only %d of %d bytes of its Read chunks were read", k.header.XID, have, all)
	}
	if k.header.Proc == rpcrdma.Msg {
		c.decodeCall(k, k.inline, at) // what is there
	}
}

// checkChunks compares the chunks in a reply with those of the call, and with what was
// written (RFC 8166 §3.4.6, §4.3.3).
func (c *conn) checkChunks(k *call, h *rpcrdma.Header, from dissect.Side, at capture.At) {
	if len(h.Write) != len(k.write) {
		c.r.Violate(ruleWriteList, from, at, "the reply to XID %08x has %d Write chunks, the call has %d", h.XID, len(h.Write), len(k.write))
	}
	for i := range min(len(h.Write), len(k.write)) {
		c.checkChunk(ruleWriteList, fmt.Sprintf("Write chunk %d", i+1), k.write[i], h.Write[i], h.XID, from, at)
	}
	switch {
	case h.HasReply != k.header.HasReply:
		c.r.Violate(ruleReplyChunk, from, at, "the reply to XID %08x and its call are not one in whether there is a Reply chunk", h.XID)
	case h.HasReply:
		c.checkChunk(ruleReplyChunk, "the Reply chunk", k.reply, h.Reply, h.XID, from, at)
		if h.Proc == rpcrdma.Msg && sum(h.Reply) > 0 {
			c.r.Violate(ruleReplyChunk, from, at, "the reply to XID %08x is an RDMA_MSG, and says that %d bytes are in the Reply chunk", h.XID, sum(h.Reply))
		}
	}
}

// checkChunk compares a chunk in a reply with that of the call.
func (c *conn) checkChunk(rule dissect.Rule, name string, offered []*region, said []rpcrdma.Segment, xid uint32, from dissect.Side, at capture.At) {
	if len(offered) != len(said) {
		c.r.Violate(rule, from, at, "%s in the reply to XID %08x has %d segments, the call's has %d", name, xid, len(said), len(offered))
		return
	}
	used, gap := sum(said) > 0, false
	for i, s := range said {
		r := offered[i]
		if s.Handle != r.seg.Handle || s.Offset != r.seg.Offset || s.Length > r.seg.Length {
			c.r.Violate(rule, from, at, "segment %d of %s in the reply to XID %08x is %s, the call's is %s", i+1, name, xid, segmentString(s), segmentString(r.seg))
			continue
		}
		if gap && s.Length > 0 {
			c.r.Violate(ruleWritten, from, at, "segment %d of %s in the reply to XID %08x is used, though the one before is not full", i+1, name, xid)
		}
		gap = gap || s.Length < r.seg.Length
		n, front := r.span.moved()
		switch {
		case r.span.many:
		case front < uint64(s.Length):
			c.r.Violate(ruleWritten, from, at, "the reply to XID %08x says that segment %d of %s has %d bytes; %d were written", xid, i+1, name, s.Length, n)
		case n > uint64(s.Length) && used:
			c.r.Violate(ruleWritten, from, at, "%d bytes were written to segment %d of %s, of which the reply to XID %08x says %d", n, i+1, name, xid, s.Length)
		}
	}
}
