package rdsflow

import (
	"errors"
	"hash/maphash"
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// A conn follows a connection, whatever carries it.
type conn struct {
	a         *Analyzer
	r         *dissect.Reporter
	sum       *Summary
	transport dissect.Transport
	pair      *pair
	lower     dissect.Side // which side is the pair's first node
	dir       [2]direction // by sender
	whole     bool         // the capture has the connection from its start on
	life      *life

	metered bool // flow control is in use, and all that was sent is known
}

// A direction is what one side has sent.
type direction struct {
	heard bool // there was a header
	lost  bool // not all is known

	last     uint64 // the last sequence number
	high     uint64 // the highest one of a message that was sent wholly
	fresh    bool   // a message was not marked as sent again
	mayReset bool   // the other side has perhaps restarted: numbers may begin anew, once

	ack   uint64 // the last acknowledgement
	floor uint64 // what was acknowledged first, perhaps of an older connection

	credit  int64 // Sends that the other side has room for
	starved bool  // there were too many, and that was said

	generation uint32
	touched    map[uint32]struct{} // keys of the other side's memory that were used

	msg      *partial
	unplaced *wire.Header // the message of which an unknown part is lost
	unsure   bool         // the next fragment need not be the first of its message
	odd      bool         // there was an extension header that is not known, and that was said
}

// A partial is a message that is on its way.
type partial struct {
	Message
	got    int  // bytes
	unsure bool // fragments in front of the first one may be lost
	hash   maphash.Hash
}

// maxTouched bounds the keys that are remembered of a direction.
const maxTouched = 4096

// begin makes what follows a connection between two nodes.
func (a *Analyzer) begin(c *conn, nodes [2]netip.Addr, tos uint8) {
	c.sum, c.life = &Summary{}, &life{number: c.r.Connection().Number}
	c.r.Connection().Upper = c.sum
	c.pair = a.pair(nodes[dissect.Client], nodes[dissect.Server], c.transport, tos)
	if nodes[dissect.Server].Unmap().Less(nodes[dissect.Client].Unmap()) {
		c.lower = dissect.Server
	}
	c.pair.attach()
}

// node returns what is known of the node on a side.
func (c *conn) node(s dissect.Side) *node {
	if s == c.lower {
		return &c.pair.nodes[0]
	}
	return &c.pair.nodes[1]
}

// end takes notice that nothing more comes.
func (c *conn) end() {
	if c.life != nil && !c.life.ended {
		c.life.ended = true
		c.pair.open--
	}
}

// lose takes notice that from here on not all is known of what a side has sent.
func (c *conn) lose(from dissect.Side) {
	d := &c.dir[from]
	d.lost, c.metered = true, false
	c.node(from).known = false
	d.msg, d.unsure = nil, true
}

// blame reports that a side broke a rule, unless its bytes may be damaged by the capture.
func (c *conn) blame(rule dissect.Rule, from dissect.Side, at capture.At, format string, args ...any) {
	if at.BadChecksum {
		c.r.Note(from, at, "the TCP checksum is wrong, so that this may not be what was sent: "+format, args...)
		return
	}
	c.r.Violate(rule, from, at, format, args...)
}

// header takes a header. It reports whether it can be used.
func (c *conn) header(from dissect.Side, at capture.At, raw []byte) (wire.Header, bool) {
	h, err := wire.ParseHeader(raw)
	if e, ok := errors.AsType[*wire.FormatError](err); ok {
		c.sum.side(from).Bad++
		rule := ruleHeader
		switch e.Fault {
		case wire.WrongChecksum:
			rule = ruleChecksum
		case wire.TooLong:
			rule = ruleLength
		default:
		}
		c.blame(rule, from, at, "%s", e.Reason)
		return h, false
	}
	c.sum.side(from).header(&h)
	if rest := h.Flags.Unknown(); rest != 0 {
		c.blame(ruleHeader, from, at, "the flags 0x%02x are not defined", uint8(rest))
	}
	if h.Padding != [4]byte{} {
		c.blame(ruleHeader, from, at, "the padding is %x, not zero", h.Padding)
	}
	c.acknowledges(from, at, &h)
	c.dir[from].heard = true
	return h, true
}

// acknowledges judges what a header acknowledges. Over TCP, only urnic acknowledges in headers: Linux leaves that
// to TCP, also if it tells its generation.
func (c *conn) acknowledges(from dissect.Side, at capture.At, h *wire.Header) {
	d, sender := &c.dir[from], &c.dir[1-from]
	if c.transport == dissect.TCP && h.Ack == 0 {
		return
	}
	// Over RoCEv2, a packet that was not captured is noticed too late.
	judged := c.whole && c.transport != dissect.RoCEv2 && (c.transport != dissect.TCP || c.node(from).urnic)
	if !d.heard {
		d.floor = max(d.floor, h.Ack)
	}
	switch {
	case h.Ack == d.ack || !judged:
	case h.Ack < d.ack && d.ack == d.floor:
		d.floor = 0 // that was of an earlier life of the other side
	case h.Ack < d.ack:
		c.blame(ruleAck, from, at, "it acknowledges %d, after %d", h.Ack, d.ack)
	case h.Ack > max(d.floor, sender.high) && !sender.lost:
		c.blame(ruleAck, from, at, "it acknowledges %d; the last message that was sent is %d", h.Ack, sender.high)
	}
	d.ack = h.Ack
}

// start judges the first header of a message, and begins it.
func (c *conn) start(from dissect.Side, at capture.At, raw []byte, h *wire.Header) {
	d := &c.dir[from]
	switch h.Kind() {
	case wire.Map:
		if h.Flags&^wire.CongestionBitmap != 0 || h.Len != wire.MapLen || h.Sequence != 0 {
			c.blame(ruleMap, from, at, "a congestion map has %d bytes, no number and no other flags; this is %v", wire.MapLen, h)
		}
	case wire.Ack:
		if h.Flags&(wire.HeartbeatPing|wire.HeartbeatPong) != 0 {
			break // of Oracle's kernels, with a number and CAP_BITS
		}
		if h.Len != 0 || h.Flags != 0 || h.Sequence != 0 || h.Extensions != [wire.ExtensionLen]byte{} {
			c.blame(ruleAckOnly, from, at, "an acknowledgement alone has no data, number, flags or extension headers; this is %v", h)
		}
	default:
		c.sequence(from, at, h)
	}
	d.msg = &partial{Message: Message{Header: *h, Raw: [wire.HeaderLen]byte(raw)}, unsure: d.unsure}
	d.unsure = d.unsure && h.Kind() == wire.Ack // which may stand anywhere
	d.msg.hash.SetSeed(c.a.seed)
	d.unplaced = nil
}

// sequence judges a message's number.
func (c *conn) sequence(from dissect.Side, at capture.At, h *wire.Header) {
	d := &c.dir[from]
	again := h.Flags&wire.Retransmitted != 0
	switch {
	case h.Sequence == 0:
		c.blame(ruleSequence, from, at, "a message from port %d to port %d has the number 0; they start at 1", h.SourcePort, h.DestPort)
		return
	case h.Sequence > d.last:
	case h.Kind() == wire.Probe && again:
		return // it repeats an old number, so as to be the first and not to be taken for new
	case h.Sequence == 1 && d.mayReset:
		d.mayReset, d.high = false, 0
	default:
		c.blame(ruleSequence, from, at, "number %d comes after %d", h.Sequence, d.last)
	}
	d.last = h.Sequence
}

// add adds bytes to the message that is on its way.
func (m *partial) add(b []byte) {
	_, _ = m.hash.Write(b) // it never fails
	if m.Header.Kind() == wire.Map {
		for i, v := range b {
			for bit := 0; v != 0; bit++ {
				if v&1 != 0 {
					m.Congested++
					if at := (m.got+i)*8 + bit; len(m.Ports) < 8 && at < 1<<16 {
						m.Ports = append(m.Ports, uint16(at))
					}
				}
				v >>= 1
			}
		}
	}
	m.got += len(b)
}

// complete takes the message of a side that is there to its end.
func (c *conn) complete(from dissect.Side, at capture.At) {
	d := &c.dir[from]
	m := d.msg
	d.msg = nil
	h := &m.Header
	c.sum.side(from).message(h)
	if h.Kind().Sequenced() {
		c.sequenced(from, at, m)
	}
	x := c.extensions(from, at, h)
	switch h.Kind() {
	case wire.Ping, wire.Probe:
		c.node(from).pinged(c.a, h.SourcePort, at.Time)
	case wire.Pong:
		c.pong(from, at, m)
	default:
	}
	c.r.Emit(from, at, &m.Message)
	c.signed(from, h, &x)
	c.introduced(from, at, &x)
	c.named(from, at, h, &x)
}

// sequenced takes a message with a number.
func (c *conn) sequenced(from dissect.Side, at capture.At, m *partial) {
	d, n, h := &c.dir[from], c.node(from), &m.Header
	again := h.Flags&wire.Retransmitted != 0
	hash := m.hash.Sum64() ^ uint64(h.SourcePort)<<16 ^ uint64(h.DestPort) ^ uint64(h.Len)<<32
	// A node that has restarted begins with 1; and it is enough to say it once.
	if !again && !d.fresh && h.Sequence > 1 && !m.Missing && n.before(c, h.Sequence, hash) {
		c.blame(ruleAgain, from, at, "number %d was sent on an earlier connection, and does not say that it is sent again", h.Sequence)
	}
	if !again {
		d.fresh = true
	}
	if !n.begun {
		n.begun = true
		n.known = h.Sequence == 1 && !again && c.whole && !d.lost
	}
	d.high = max(d.high, h.Sequence)
	if !m.Missing {
		n.remember(c.a, sent{h.Sequence, hash, c.life})
	}
}

// extensions judges the extension headers, and returns those that make sense.
func (c *conn) extensions(from dissect.Side, at capture.At, h *wire.Header) wire.Extensions {
	x, err := wire.ParseExtensions(h.Extensions)
	if e, ok := errors.AsType[*wire.FormatError](err); ok {
		c.blame(ruleExtension, from, at, "%s", e.Reason)
	}
	// The document leaves room for more types, and every receiver skips those that it does not know.
	if t := wire.UnknownExtension(h.Extensions); t != wire.ExtNone && !c.dir[from].odd {
		c.dir[from].odd = true
		c.r.Note(from, at, "an extension header of %v, which is not known", t)
	}
	return x
}

// pong judges a pong.
func (c *conn) pong(from dissect.Side, at capture.At, m *partial) {
	h, pinger := &m.Header, c.node(1-from)
	if h.Len != 0 {
		c.blame(rulePong, from, at, "a pong has no data; this one has %d bytes", h.Len)
	}
	if h.Flags&wire.Retransmitted != 0 {
		return
	}
	p, ok := pinger.ponged(c.a, h.DestPort)
	switch {
	case ok && !p.at.IsZero():
		m.Latency = at.Time.Sub(p.at)
	case ok:
	case c.transport == dissect.RoCEv2: // see acknowledges
	case pinger.known && (!c.pair.multi || h.DestPort == wire.ProbePort):
		c.blame(rulePong, from, at, "a pong to port %d, from which there was no ping", h.DestPort)
	}
}

// signed takes note of whether a node says that it is urnic. After a restart, it may be something else.
func (c *conn) signed(from dissect.Side, h *wire.Header, x *wire.Extensions) {
	n := c.node(from)
	shakes := h.Kind() == wire.Probe || h.Kind() == wire.Pong && h.DestPort == wire.ProbePort
	if shakes && c.life.number >= n.told { // else it comes late
		n.urnic = x.With(wire.ExtUrnic)
	}
}

// introduced takes what a node reports about itself.
func (c *conn) introduced(from dissect.Side, at capture.At, x *wire.Extensions) {
	if x.With(wire.ExtNPaths) && x.Paths == 0 {
		c.blame(rulePaths, from, at, "a node has at least one path; this one says 0")
	}
	if !x.With(wire.ExtGeneration) || x.Generation == 0 {
		return
	}
	d, n := &c.dir[from], c.node(from)
	if d.generation != 0 && d.generation != x.Generation {
		c.blame(ruleGeneration, from, at, "its generation changes from %d to %d within a connection", d.generation, x.Generation)
		return
	}
	if c.life.number < n.told {
		return // it comes late
	}
	n.told = c.life.number
	first := len(n.generations) == 0
	restarted, old := n.introduced(x.Generation)
	switch {
	case old:
		c.blame(ruleGeneration, from, at, "its generation is %d again, after %d", x.Generation, n.generations[len(n.generations)-1])
	case restarted:
		n.forget(c.a)
		c.r.Note(from, at, "the node has restarted: its generation is %d now", x.Generation)
	}
	if d.generation == 0 && (first || restarted) {
		c.dir[1-from].mayReset = true
	}
	d.generation = x.Generation
}

// named takes the keys that a message names.
func (c *conn) named(from dissect.Side, at capture.At, h *wire.Header, x *wire.Extensions) {
	d := &c.dir[from]
	if x.With(wire.ExtRDMADest) {
		c.node(from).offered(c.a, x.Dest, h.Sequence)
	}
	if !x.With(wire.ExtRDMA) {
		return
	}
	_, used := d.touched[x.RKey]
	if !used && c.whole && !d.lost && len(d.touched) < maxTouched && h.Flags&wire.Retransmitted == 0 {
		c.blame(ruleRDMA, from, at, "it says that it has used key 0x%08x, and no RDMA operation did", x.RKey)
	}
	delete(d.touched, x.RKey)
}

// touch takes an RDMA operation of a side on the other's memory, and returns what the memory
// was offered for.
func (c *conn) touch(from dissect.Side, key uint32) string {
	d := &c.dir[from]
	if d.touched == nil {
		d.touched = map[uint32]struct{}{}
	}
	if len(d.touched) < maxTouched {
		d.touched[key] = struct{}{}
	}
	return c.node(1 - from).use(key)
}
