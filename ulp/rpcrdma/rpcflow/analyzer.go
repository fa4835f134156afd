package rpcflow

import (
	"errors"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/oncrpc"
	"urnic/ulp/rpcrdma"
)

// Port is that of NFS over RDMA (RFC 8267 §6).
const Port = 20049

// What an analysis remembers of all connections.
const (
	maxKept    = 64 << 20 // bytes of RPC messages that are not whole yet
	maxRegions = 1 << 16  // segments of calls that are open
	maxOpen    = 1 << 16  // calls that are open
	maxPast    = 1 << 18  // segments of calls that have been answered
	maxCounted = 1 << 16  // procedures that are counted apart
)

// limits bound the headers that are taken: far beyond what any peer takes.
var limits = rpcrdma.Limits{ReadSegments: 1024, WriteChunks: 256, Segments: 1024}

// An Analyzer finds RPC-over-RDMA in a capture: dissect.ULP.
type Analyzer struct {
	// All takes all connections for RPC-over-RDMA. Otherwise those are taken in whose
	// start-up a side sends the private data of RFC 8797, and those whose server has the
	// port of NFS over RDMA.
	All bool

	kept, regions, open, past, counted int
}

// keep reports whether n bytes more may be kept, and counts them.
func (a *Analyzer) keep(n int) bool {
	if a.kept+n > maxKept {
		return false
	}
	a.kept += n
	return true
}

// A conn follows a connection.
type conn struct {
	a       *Analyzer
	r       *dissect.Reporter
	sum     *Summary
	frames  int // start-up frames seen
	private [2]rpcrdma.Private
	found   [2]bool
	dir     [2]direction // by caller
	header  rpcrdma.Header
}

// New returns what follows a connection.
func (a *Analyzer) New(r *dissect.Reporter) dissect.Upper {
	c := &conn{a: a, r: r}
	for i := range c.dir {
		d := &c.dir[i]
		d.caller, d.limit, d.first = dissect.Side(i), 1, true
		d.known, d.metered = true, true
	}
	return c
}

// Frame takes the private data of a start-up frame.
func (c *conn) Frame(from dissect.Side, at capture.At, private []byte) {
	c.frames++
	if c.private[from], c.found[from] = rpcrdma.FindPrivate(private); c.found[from] {
		p := c.private[from]
		c.r.Emit(from, at, &Private{p.Invalidate, p.Send, p.Receive})
	}
}

// Follows reports whether the connection carries RPC-over-RDMA.
func (c *conn) Follows() bool {
	if !c.a.All && !c.found[0] && !c.found[1] && c.r.Port() != Port {
		return false
	}
	c.sum = newSummary(&c.a.counted)
	c.r.Connection().Upper = c.sum
	if !c.r.Whole() {
		c.Lost(dissect.Client)
		c.Lost(dissect.Server)
	}
	return true
}

// Lost takes notice that not all is known of what a side has sent.
func (c *conn) Lost(from dissect.Side) {
	c.dir[from].known = false
	answers := &c.dir[1-from]
	answers.metered = false
	answers.losses++
}

// End takes leave of the connection.
func (c *conn) End(at capture.At) {
	for i := range c.dir {
		c.dir[i].end(c, at)
	}
}

// both reports whether the start-up frames of both sides were seen, so that it is known
// what they have agreed on.
func (c *conn) both() bool { return c.frames == 2 && c.r.Whole() }

// Send takes a Send: a transport header, and perhaps an RPC message behind it.
func (c *conn) Send(from dissect.Side, at capture.At, m *dissect.Sent) {
	c.checkLength(from, at, m)
	if !m.Whole {
		c.Lost(from)
		return
	}
	h := &c.header
	inline, err := h.Decode(m.Octets, limits)
	if err != nil {
		c.badHeader(from, at, err, len(m.Octets))
		return
	}
	t := &Transport{Header: h, Inline: len(inline)}
	c.r.Emit(from, at, t)
	if h.Proc == rpcrdma.NoMsg && len(inline) > 0 {
		c.r.Violate(ruleNoMsg, from, at, "%d bytes follow the header of an RDMA_NOMSG", len(inline))
		inline = nil
	}
	switch {
	case h.Proc == rpcrdma.Error:
		c.refused(from, at, m, h)
	case c.isReply(from, h, inline):
		c.reply(from, at, m, h, inline)
	default:
		c.call(from, at, m, h, inline)
	}
}

// isReply reports whether a message is a reply, which the header does not say.
func (c *conn) isReply(from dissect.Side, h *rpcrdma.Header, inline []byte) bool {
	if h.Proc == rpcrdma.Msg {
		if _, t, err := oncrpc.Peek(inline); err == nil {
			return t == oncrpc.TypeReply
		}
	} else if len(h.Read) > 0 {
		return false // only a call can be read
	}
	if _, open := c.dir[1-from].open[h.XID]; open {
		return true
	}
	return h.Proc == rpcrdma.NoMsg || from == dissect.Server
}

// checkLength judges the length of a Send by what both sides have said that they send and
// receive (RFC 8166 §3.3.2, RFC 8797 §4.2).
func (c *conn) checkLength(from dissect.Side, at capture.At, m *dissect.Sent) {
	if !c.both() || !c.found[0] || !c.found[1] {
		return
	}
	if most := min(c.private[from].Send, c.private[1-from].Receive); m.Length > uint64(most) {
		c.r.Violate(ruleInline, from, at, "a Send of %d bytes; the inline threshold is %d", m.Length, most)
	}
}

// badHeader judges a message whose header can't be used.
func (c *conn) badHeader(from dissect.Side, at capture.At, err error, length int) {
	e, ok := errors.AsType[*rpcrdma.HeaderError](err)
	if !ok {
		return
	}
	rule := dissect.Rule{ID: ruleHeaderID, Clause: "RFC 8166 §" + e.Clause}
	c.sum.BadHeaders++
	if length < 16 {
		c.r.Violate(rule, from, at, "a message of %d bytes: %v", length, e.Err)
		return
	}
	c.r.Violate(rule, from, at, "the header of XID %08x can't be used: %v", e.XID, e.Err)
	if _, answers := c.dir[1-from].open[e.XID]; answers {
		return // it is to be discarded, and the call stays open
	}
	// It may be answered with an RDMA_ERROR.
	c.dir[from].begin(c, &call{at: at, bad: true, header: &rpcrdma.Header{XID: e.XID, Version: e.Version}})
}
