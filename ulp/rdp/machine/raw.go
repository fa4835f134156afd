package machine

import "urnic/ulp/rdp/wire"

// A rawSegment is one that is sent once, and belongs to no connection any more, or to none yet.
type rawSegment struct {
	name     Name
	flags    wire.Flags
	seq, ack uint32
	syn      limits // of a SYN,ACK
}

// limits are what a SYN says of its sender.
type limits struct {
	window    uint16 // max outstanding
	segment   uint16 // max segment size
	sequenced bool
}

// usable reports whether a segment with data fits: else nothing, not even an acknowledgement,
// would be in the window of such a peer.
func (l limits) usable() bool { return l.window > 0 && l.segment >= minSegment }

func limitsOf(h *wire.Header) limits { return limits{h.MaxOutstanding, h.MaxSegment, h.Sequenced} }

// put puts the limits into the header of a SYN.
func (l limits) put(h *wire.Header) {
	h.MaxOutstanding, h.MaxSegment, h.Sequenced = l.window, l.segment, l.sequenced
}

// sendRaw queues a segment to send. It is for what follows from a call, or ends a connection:
// their numbers bound it.
func (m *Machine) sendRaw(r rawSegment) { m.raw.Push(r) }

// maxAnswers bounds the answers that wait to be sent.
const maxAnswers = 1024

// answer answers a segment that belongs to no connection, if there have not been too many
// answers. An answer is an RST, or the SYN,ACK for a SYN: it is never larger than the segment
// that it answers.
func (m *Machine) answer(r rawSegment) bool {
	if m.raw.Len() >= maxAnswers || !m.answers.take(m.now) {
		m.counters.Unanswered++
		return false
	}
	m.counters.Answered++
	m.raw.Push(r)
	return true
}

// reject answers an unknown segment, as in CLOSED (RFC 908 p.24).
func (m *Machine) reject(n Name, h *wire.Header) {
	switch {
	case h.Flags&wire.RST != 0: // C1
	case h.Flags&wire.ACK != 0: // C2: data, NUL, SYN,ACK, ACK
		m.answer(rawSegment{name: n, flags: wire.RST, seq: h.Ack + 1})
	default: // C3; RFC 1151 p.3: the acknowledgement number is SEG.SEQ
		m.refuse(n, h)
	}
}

// refuse answers a SYN that is not accepted, and whatever else has no acknowledgement (C3).
func (m *Machine) refuse(n Name, h *wire.Header) {
	m.answer(rawSegment{name: n, flags: wire.RST | wire.ACK, ack: h.Seq})
}

// pull puts the segment into b.
func (r *rawSegment) pull(m *Machine, b []byte) []byte {
	h := m.header(r.name, r.flags)
	h.Seq, h.Ack = r.seq, r.ack
	r.syn.put(h)
	return m.compose(b, h, nil, r.name.Path)
}

// header begins the header of a segment.
func (m *Machine) header(n Name, f wire.Flags) *wire.Header {
	m.out = wire.Header{Version: n.Version, Flags: f, Source: n.Local, Dest: n.Remote, EACKs: m.out.EACKs[:0]}
	return &m.out
}

// compose puts a segment into b.
func (m *Machine) compose(b []byte, h *wire.Header, data []byte, p Path) []byte {
	m.counters.Sent++
	return h.AppendTo(b[:0], data, m.pseudoOf(p.Local, p.Remote.Addr()))
}
