package rdsflow

import (
	"net/netip"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
)

// maxGap is how far behind the last number the next one may be that is found behind a hole.
const maxGap = 1 << 20

// maxSequence is more than any number: urnic begins at the time in microseconds.
const maxSequence = 1 << 52

// Begins reports whether a stream begins with a header. On another port than that of RDS it
// must be one that Linux would send first: a congestion map, or a message.
func (a *Analyzer) Begins(ends [2]netip.AddrPort, start bool, b []byte) (func(*dissect.Reporter) dissect.StreamUpper, bool) {
	known := ends[capture.Acceptor].Port() == Port || a.All
	if !start {
		known = known || ends[capture.Opener].Port() == Port // who has opened it is a guess
		if !known || len(b) < wire.HeaderLen || !sound(b) {
			return nil, false
		}
		return a.stream, false
	}
	if len(b) > 0 && b[0] != 0 || len(b) > 1 && b[1] >= maxSequence>>48 { // no number is so high
		return nil, false
	}
	switch {
	case len(b) < wire.HeaderLen:
		return nil, true
	case known && ends[capture.Acceptor].Port() == Port, sound(b):
		return a.stream, false
	}
	return nil, false
}

// sound reports whether b begins with a header as it is sent over TCP, and nothing else looks like
// that.
func sound(b []byte) bool {
	h, err := wire.ParseHeader(b)
	if err != nil || h.Padding != [4]byte{} || h.Credit != 0 || h.Check() != nil || h.Flags > wire.Retransmitted|wire.AckRequired {
		return false
	}
	k := h.Kind()
	return (k == wire.Map || k.Sequenced() && h.Sequence < maxSequence) && wire.UnknownExtension(h.Extensions) == wire.ExtNone
}

// A stream follows a connection of RDS over TCP.
type stream struct {
	conn
	parts [2]part
}

// A part is what there is of a side's stream that can't be used yet.
type part struct {
	head     [wire.HeaderLen]byte // the beginning of a header
	n        int                  // bytes of it
	hunting  bool                 // where the next header begins is not known
	answered bool                 // a message was sent on a connection that ought to have been refused
	closed   bool
}

func (a *Analyzer) stream(r *dissect.Reporter) dissect.StreamUpper {
	a.init()
	s := &stream{conn: conn{a: a, r: r, transport: dissect.TCP, whole: r.FromStart()}}
	a.begin(&s.conn, [2]netip.Addr{r.Addr(dissect.Client).Addr(), r.Addr(dissect.Server).Addr()}, 0)
	if !s.whole {
		s.lose(dissect.Client)
		s.lose(dissect.Server)
		s.parts[0].hunting, s.parts[1].hunting = true, true
	}
	return s
}

// Data takes the next bytes of a side.
func (s *stream) Data(from dissect.Side, at capture.At, b []byte) {
	p, d := &s.parts[from], &s.dir[from]
	if p.hunting && !s.resume(from, b) {
		s.r.Lacks(len(b))
		return
	}
	for len(b) > 0 {
		if m := d.msg; m != nil {
			n := min(int(m.Header.Len)-m.got, len(b))
			m.add(b[:n])
			b = b[n:]
		} else {
			n := copy(p.head[p.n:], b)
			p.n, b = p.n+n, b[n:]
			if p.n < wire.HeaderLen {
				return
			}
			p.n = 0
			if !s.begins(from, at) {
				s.r.Lacks(wire.HeaderLen + len(b))
				return
			}
		}
		if m := d.msg; m.got == int(m.Header.Len) {
			s.complete(from, at)
		}
	}
}

// begins takes a header. It reports whether what follows can be found.
func (s *stream) begins(from dissect.Side, at capture.At) bool {
	p := &s.parts[from]
	s.dialled(from, at)
	h, ok := s.header(from, at, p.head[:])
	if !ok {
		s.lose(from)
		p.hunting = true
		return false
	}
	s.start(from, at, p.head[:], &h)
	return true
}

// dialed judges who has opened the connection. The node with the lower address does; it
// refuses what the other one opens, and opens a connection itself.
func (s *stream) dialled(from dissect.Side, at capture.At) {
	p := &s.parts[from]
	if from != dissect.Server || p.answered || !s.whole {
		return
	}
	p.answered = true
	client, server := s.r.Addr(dissect.Client).Addr().Unmap(), s.r.Addr(dissect.Server).Addr().Unmap()
	if server.Less(client) {
		s.blame(ruleDialler, from, at, "it uses a connection that %v has opened: its own address, %v, is the lower one, so that it dials and refuses that", client, server)
	}
}

// resume looks for a header at the beginning of a segment.
func (s *stream) resume(from dissect.Side, b []byte) bool {
	if len(b) < wire.HeaderLen || !sound(b) {
		return false
	}
	h, _ := wire.ParseHeader(b)
	d := &s.dir[from]
	if h.Kind().Sequenced() && d.last > 0 && (h.Sequence <= d.last || h.Sequence > d.last+maxGap) {
		return false
	}
	s.parts[from].hunting = false
	return true
}

// Hole takes notice that n bytes of a side were not captured.
func (s *stream) Hole(from dissect.Side, at capture.At, n int) {
	p, d := &s.parts[from], &s.dir[from]
	if m := d.msg; m != nil && !p.hunting && n <= int(m.Header.Len)-m.got {
		m.Missing = true
		m.got += n
		if m.got < int(m.Header.Len) {
			return
		}
		// Its end is gone; what it was is known.
		s.complete(from, at)
		return
	}
	s.lose(from)
	p.n, p.hunting = 0, true
}

// Close takes notice that a side has closed its stream, or reset the connection.
func (s *stream) Close(from dissect.Side, _ capture.At, reset bool) {
	s.parts[from].closed = true
	if reset || s.parts[1-from].closed {
		s.end()
	}
}

// End takes leave of the connection.
func (s *stream) End(at capture.At) {
	for side := range s.dir {
		if m := s.dir[side].msg; m != nil {
			s.r.Note(dissect.Side(side), at, "message %d is not there to its end: %d of %d bytes are", m.Header.Sequence, m.got, m.Header.Len)
		}
	}
	s.end()
}
