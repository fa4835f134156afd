package machine

import (
	"time"

	"urnic/ulp/rdp/wire"
)

// A cookie is the initial sequence number of a SYN,ACK for which no state is kept. The first
// segment that acknowledges it brings back what the SYN has said, rounded down. From the left:
//
//	15 bits  a keyed hash of the connection's name, our own limits, the time, and the 9 bits at the end
//	 8 bits  the low byte of the peer's initial number, plus 8 bits of the same hash
//	 2 bits  the time, in units of cookieTime
//	 3 bits  the peer's window
//	 3 bits  the peer's maximum segment size
//	 1 bit   whether the peer has asked for sequenced delivery
//
// The low byte shows whether a segment is the peer's first one: if not, the first was lost or
// is late, and must not be skipped.
type cookie uint32

// cookieTime is how long a cookie is good for at least; it is good for twice that at most. A
// connection that one has opened stays in CLOSE-WAIT for as long, as its first segment would open it again.
const cookieTime = 16 * time.Second

// What the peer's limits are rounded down to.
var (
	cookieWindows  = [8]uint16{1, 2, 4, 8, 16, 32, 64, 256}
	cookieSegments = [8]uint16{minSegment, 128, 296, 576, 1280, 1400, 1472, 8972}
)

// down returns the index of the highest value that is not above v.
func down(values *[8]uint16, v uint16) uint32 {
	i := len(values) - 1
	for i > 0 && values[i] > v {
		i--
	}
	return uint32(i)
}

// cookieHint is the last 9 bits of a cookie.
const cookieHint = 1<<9 - 1

// period numbers the time in units of cookieTime.
func (m *Machine) period() uint32 { return uint32(m.now / m.cookieTime) }

// cookie makes the cookie of a name. The hint is the last 9 bits.
func (l *Listener) cookie(n Name, irs, hint uint32) cookie {
	m := l.m
	period := m.period() - (m.period()-hint>>7)&3
	sum := m.hash(n, 'c', uint64(l.p.MaxSegment)<<48|uint64(l.p.Window)<<32|uint64(period<<9|hint))
	return cookie(uint32(sum>>32)<<17 | (irs+uint32(sum))&0xff<<9 | hint)
}

// sendCookie answers a SYN without keeping state.
func (l *Listener) sendCookie(n Name, h *wire.Header) {
	m := l.m
	hint := m.period()&3<<7 | down(&cookieWindows, h.MaxOutstanding)<<4 | down(&cookieSegments, h.MaxSegment)<<1
	if h.Sequenced {
		hint |= 1
	}
	ours := limits{uint16(l.p.Window), uint16(l.p.MaxSegment), l.p.Sequenced || h.Sequenced}
	if m.answer(rawSegment{name: n, flags: wire.SYN | wire.ACK, seq: uint32(l.cookie(n, h.Seq, hint)), ack: h.Seq, syn: ours}) {
		m.counters.Cookies++
	}
}

// redeem processes a segment with an acknowledgement for the listener. It reports whether that is
// of a cookie: then there is now a connection, if the segment is the peer's first and there is a
// slot.
func (l *Listener) redeem(n Name, h *wire.Header, data []byte) bool {
	m := l.m
	if m.cfg.Cookies == CookiesNever || h.Flags&wire.ACK == 0 || h.Flags&(wire.SYN|wire.RST|wire.EACK) != 0 {
		return false
	}
	hint := h.Ack & cookieHint
	if (m.period()-hint>>7)&3 > 1 {
		return false // too old
	}
	want := uint32(l.cookie(n, h.Seq-1, hint))
	if (want^h.Ack)>>17 != 0 {
		return false
	}
	if want != h.Ack || l.queue.Len() >= l.cfg.Backlog || len(m.conns) >= m.cfg.MaxConns {
		return true // a later segment, or one too many: it comes again, or the first one does
	}
	m.counters.CookiesUsed++
	c := m.conn(n, &l.p)
	c.listener = l
	c.lingers = m.now + 2*m.cookieTime
	l.pending++
	m.conns[n] = c
	c.begin(h.Ack)
	c.adopt(h.Seq-1, limits{cookieWindows[hint>>4&7], cookieSegments[hint>>1&7], hint&1 != 0})
	c.state = SynRcvd
	c.arrive(h, data)
	return true
}
