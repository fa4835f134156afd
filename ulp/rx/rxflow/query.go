package rxflow

import (
	"fmt"
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// What is remembered of requests.
const maxAsked = 64

// A query follows the debug and version packets of two endpoints, and what they send that is
// too short for Rx.
type query struct {
	line
	key     [2]netip.AddrPort
	client  netip.AddrPort
	asked   []request
	version byte // of the debug protocol, as the server has told
	row     replyRow
}

// A request is a debug request.
type request struct {
	header wire.Header
	wire.DebugRequest
}

// A replyRow counts replies that answer one another.
type replyRow struct {
	n    int
	from dissect.Side
	last wire.Header
}

// end takes leave of the two.
func (q *query) end() {
	delete(q.a.queries, q.key)
	q.r.End()
}

// datagram takes a datagram. err says that it is too short for a header.
func (q *query) datagram(at capture.At, d *capture.Datagram, h *wire.Header, body []byte, err error) {
	from := dissect.Client
	if d.Src != q.client {
		from = dissect.Server
	}
	n := q.sum.side(from)
	n.Datagrams++
	n.Largest = max(n.Largest, len(d.Data)+d.Missing)
	if at.BadChecksum {
		q.r.Note(from, at, "the UDP checksum is wrong, so that %d bytes have not arrived", len(d.Data))
		return
	}
	if d.Missing > 0 {
		q.r.Lacks(d.Missing)
	}
	if err != nil {
		if d.Missing == 0 {
			q.r.Violate(ruleHeader, from, at, "%s", reason(err))
		}
		return
	}
	p := &Packet{Header: *h, Body: body, Length: len(body) + d.Missing, Missing: d.Missing}
	n.packet(p)
	if d.Missing == 0 {
		if h.Type == wire.TypeVersion {
			q.versioned(from, at, p)
		} else {
			q.debug(from, at, p)
		}
		q.loop(from, at, h, wire.VersionKeepalive(h, body))
	}
	if !q.a.Calls {
		q.r.Emit(from, at, p)
	}
	q.tell()
}

// versioned takes a version packet.
func (q *query) versioned(from dissect.Side, at capture.At, p *Packet) {
	switch {
	case wire.VersionKeepalive(&p.Header, p.Body):
		p.Text = "keeps the path open"
	case p.Header.FromClient():
		p.Text = "asks for the version"
	default:
		p.Text = fmt.Sprintf("%q", wire.ParseVersion(p.Body))
		if len(p.Body) != wire.VersionLen {
			q.blame(ruleVersion, from, at, "a version has %d bytes; this has %d", wire.VersionLen, len(p.Body))
		}
	}
}

// debug takes a debug packet.
func (q *query) debug(from dissect.Side, at capture.At, p *Packet) {
	if p.Header.FromClient() {
		r, err := wire.ParseDebugRequest(p.Body)
		p.Text = fmt.Sprintf("asks for %v %d", r.Type, r.Index)
		if err != nil {
			q.blame(ruleDebug, from, at, "%s", reason(err))
			p.Text = ""
		}
		if len(q.asked) == maxAsked {
			q.asked = append(q.asked[:0], q.asked[maxAsked/2:]...)
		}
		q.asked = append(q.asked, request{p.Header, r})
		return
	}
	for i := len(q.asked) - 1; i >= 0; i-- {
		if ids(&q.asked[i].header) == ids(&p.Header) {
			q.answer(from, at, p, q.asked[i].Type)
			return
		}
	}
	p.Text = "the request was not captured"
}

// answer takes the reply to a debug request.
func (q *query) answer(from dissect.Side, at capture.At, p *Packet, t wire.DebugType) {
	if wire.IsDebugBadType(p.Body) {
		p.Text = "there is no " + t.String()
		return
	}
	var err error
	switch t {
	case wire.DebugGetBasic:
		var d wire.DebugBasic
		if d, err = wire.ParseDebugBasic(p.Body); err == nil {
			q.version = d.Version
			p.Text = fmt.Sprintf("version %c, %d calls, %d packets, %d of them free, %d idle threads", d.Version, d.CallsExecuted, d.Packets, d.FreePackets, d.IdleThreads)
		}
	case wire.DebugGetConn, wire.DebugGetAllConns:
		var d wire.DebugConn
		if d, err = wire.ParseDebugConn(p.Body, max(q.version, wire.DebugVersionMin)); err != nil {
			break
		}
		p.Text = fmt.Sprintf("connection %08x/%08x with %v, serial %d, calls %d", d.Epoch, d.CID, d.Addr(), d.Serial, d.Calls)
		if d.End() {
			p.Text = "no more connections"
		}
	case wire.DebugGetStats:
		var d wire.DebugStats
		if d, err = wire.ParseDebugStats(p.Body); err == nil {
			p.Text = fmt.Sprintf("%d data packets read, %d sent, %d again, %d peers", d.DataRead, d.DataSent, d.DataResent, d.Peers)
		}
	case wire.DebugGetPeer:
		var d wire.DebugPeer
		if d, err = wire.ParseDebugPeer(p.Body); err != nil {
			break
		}
		p.Text = fmt.Sprintf("peer %v, %d data packets sent, %d again", d.Addr(), d.Sent, d.Resent)
		if d.End() {
			p.Text = "no more peers"
		}
	case 0: // OpenAFS reads on behind a short request
	default:
		p.Text = "answers " + t.String()
	}
	if err != nil {
		q.blame(ruleDebug, from, at, "what answers %v: %s", t, reason(err))
	}
}

// loop judges whether replies answer one another: nothing but a request is answered.
func (q *query) loop(from dissect.Side, at capture.At, h *wire.Header, keepalive bool) {
	r := &q.row
	switch {
	case h.FromClient() || keepalive:
		r.n = 0
	case r.n > 0 && r.from != from && ids(&r.last) == ids(h):
		r.n++
	default:
		r.n = 1
	}
	r.from, r.last = from, *h
	if r.n == 3 {
		q.blame(ruleUnasked, from, at, "the third %v packet in a row by turns without CLIENT-INITIATED: only requests are answered", h.Type)
	}
}

// ids is what a reply copies of its request.
func ids(h *wire.Header) [6]uint32 {
	return [6]uint32{h.Epoch, h.CID, h.Call, h.Seq, h.Serial, uint32(h.Type)}
}
