package dissect

import (
	"io"
	"net/netip"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

// A ULP knows an upper layer protocol, and finds the connections that carry it. One
// ULP serves one analysis at a time.
type ULP interface {
	// New returns what is to follow a connection that has been recognised.
	New(r *Reporter) Upper
}

// An Upper follows the upper layer protocol of one connection. Its methods are called
// in the order of the capture; what they are given is valid during the call only.
type Upper interface {
	// Frame takes the private data of a start-up frame.
	Frame(from Side, at capture.At, private []byte)
	// Follows reports whether the connection carries the protocol. It is asked before
	// the first message; if it does not, nothing else is called.
	Follows() bool
	// Send takes a Send message.
	Send(from Side, at capture.At, m *Sent)
	// Write takes a part of an RDMA Write into the other side's memory, and returns what
	// the message is for, in a few words.
	Write(from Side, at capture.At, tag stag.STag, to uint64, data []byte) (use string)
	// Read takes a Read Request for the other side's memory. The source is handed on to
	// ReadData.
	Read(from Side, at capture.At, tag stag.STag, to uint64, size uint32) (source any, use string)
	// ReadData takes a part of what answers a Read, which begins offset bytes behind
	// the beginning of the Read's source. It comes from the side that was read.
	ReadData(from Side, at capture.At, source any, offset uint64, data []byte)
	// Lost reports that from here on not all is known of what a side has sent.
	Lost(from Side)
	// End reports that nothing more comes.
	End(at capture.At)
}

// A Sent is a Send message.
type Sent struct {
	Octets     []byte // nil without Whole
	Whole      bool   // all of it was captured, in order, and is not longer than is kept
	Length     uint64
	Invalidate stag.STag // with Invalidates
	// Invalidates reports that it is a Send with Invalidate.
	Invalidates bool
}

// An UpperEvent is something that an Upper found. It is also written as JSON.
type UpperEvent interface {
	Name() string   // the name of the event in JSON
	String() string // it in one line
}

// An UpperDetail is an UpperEvent that may be a part of another one, and is then shown only
// where segments are.
type UpperDetail interface {
	UpperEvent
	Detail() bool
}

// An UpperSummary sums up what a connection carried. It is also written as JSON.
type UpperSummary interface {
	Name() string // of the protocol
	WriteTable(w io.Writer) error
}

// An UpperCounter is an UpperSummary that counts what its connection carried. It is asked where there is no
// RDMAP whose messages count.
type UpperCounter interface {
	UpperSummary
	Carried() Carried
}

// Carried is how much both sides of a connection have sent.
type Carried struct {
	Segments int
	Messages int    // that are there to their end
	Bytes    uint64 // of the ULP's data
}

// Carried returns how much both sides have sent: by RDMAP, or else by the ULP, if it counts.
func (c *Connection) Carried() Carried {
	if u, ok := c.Upper.(UpperCounter); ok && c.Transport != IWARP && c.Transport != RDP {
		return u.Carried()
	}
	return Carried{Segments: c.Segments.Total() + c.Other, Messages: c.Messages.Total(), Bytes: c.Payload}
}

// What is kept of Sends.
const (
	maxSent    = 1 << 20 // bytes of one
	maxSending = 64 << 20
)

// A Reporter is how an Upper reports what it finds in its connection.
type Reporter struct{ f *follower }

// Connection returns the connection's summary.
func (r *Reporter) Connection() *Connection { return r.f.con }

// Port returns the server's TCP port.
func (r *Reporter) Port() uint16 { return r.f.tcp.Ends[1-r.f.client].Port() }

// Addr returns the address and port of a side.
func (r *Reporter) Addr(s Side) netip.AddrPort { return r.f.tcp.Ends[r.side(s)] }

// FromStart reports whether the capture holds the beginnings of both TCP streams.
func (r *Reporter) FromStart() bool { return r.f.tcp.FromStart == [2]bool{true, true} }

// Lacks reports that n bytes could not be decoded.
func (r *Reporter) Lacks(n int) { r.f.con.Undecoded += uint64(n) }

// Whole reports whether the connection was captured from its start on.
func (r *Reporter) Whole() bool { return r.f.request != nil && r.f.reply != nil && !r.f.unknown }

// Emit hands on what was found.
func (r *Reporter) Emit(from Side, at capture.At, u UpperEvent) {
	r.f.a.emit(&Event{Kind: KindUpper, Conn: r.f.con, At: at, From: from, Upper: u})
}

// Violate reports that a side broke a rule.
func (r *Reporter) Violate(rule Rule, from Side, at capture.At, format string, args ...any) {
	r.f.violate(rule, r.side(from), at, format, args...)
}

// Note tells something that a reader should know.
func (r *Reporter) Note(from Side, at capture.At, format string, args ...any) {
	r.f.note(r.side(from), at, format, args...)
}

func (r *Reporter) side(s Side) capture.Side {
	if s == Client {
		return r.f.client
	}
	return 1 - r.f.client
}

// above returns what follows the ULP of the connection, or nil.
func (f *follower) above() Upper {
	if f.upper == nil {
		return nil
	}
	if !f.decided {
		f.decided = true
		if !f.upper.Follows() {
			f.upper = nil
			return nil
		}
		if u, ok := f.upper.(*anyUpper); ok {
			f.upper = u.Upper
		}
	}
	for i := range f.streams {
		s := &f.streams[i]
		if s.losses == s.toldLosses && s.lost == s.toldLost {
			continue
		}
		s.toldLosses, s.toldLost = s.losses, s.lost
		f.upper.Lost(f.side(s.id))
	}
	return f.upper
}

// frameAbove shows the ULP the private data of a start-up frame.
func (f *follower) frameAbove(s *stream, at capture.At, frame *mpa.Frame) {
	if f.upper != nil {
		f.upper.Frame(f.side(s.id), at, frame.ULPData())
	}
}

// writeAbove shows the ULP a segment of a Write.
func (s *stream) writeAbove(at capture.At, m *Message, seg *Segment) {
	if u := s.f.above(); u != nil && m.Op == rdmap.OpWrite && m.Tagged {
		m.Use = u.Write(s.f.side(s.id), at, seg.DDP.Tagged.STag, seg.DDP.Tagged.TO, seg.DDP.Payload)
	}
}

// readAbove shows the ULP a Read Request.
func (s *stream) readAbove(at capture.At, m *Message, p *pending) {
	if u := s.f.above(); u != nil {
		p.source, p.use = u.Read(s.f.side(s.id), at, p.read.SrcSTag, p.read.SrcTO, p.read.Size)
		m.Use = p.use
	}
}

// dataAbove shows the ULP a segment of a Read Response.
func (s *stream) dataAbove(at capture.At, m *Message, seg *Segment) {
	p := m.answers
	if p == nil || p.atomic || m.Op != rdmap.OpReadResponse || !m.Tagged {
		return
	}
	offset, n := seg.DDP.Tagged.TO-p.read.SinkTO, uint64(len(seg.DDP.Payload))
	if n == 0 || offset >= uint64(p.read.Size) || n > uint64(p.read.Size)-offset || seg.DDP.Tagged.STag != p.read.SinkSTag {
		return
	}
	if u := s.f.above(); u != nil {
		u.ReadData(s.f.side(s.id), at, p.source, offset, seg.DDP.Payload)
	}
}

// sends reports whether m is a Send.
func (m *Message) sends() bool {
	switch m.Op {
	case rdmap.OpSend, rdmap.OpSendInvalidate, rdmap.OpSendSE, rdmap.OpSendSEInvalidate:
		return !m.Tagged && m.QN == m.Op.Queue()
	default:
		return false
	}
}

// gather keeps a segment of a Send until the ULP can be shown all of it.
func (s *stream) gather(m *Message, seg *Segment) {
	if !m.sends() || s.f.above() == nil {
		return
	}
	a, n := s.f.a, len(seg.DDP.Payload)
	switch {
	case m.torn:
	case m.Partial || uint64(seg.DDP.Untagged.MO) != uint64(len(m.sent)) || len(m.sent)+n > maxSent || a.sending+n > maxSending:
		m.torn = true
		s.release(m)
	default:
		a.sending += n
		m.sent = append(m.sent, seg.DDP.Payload...)
	}
}

// release forgets what is kept of a Send.
func (s *stream) release(m *Message) {
	s.f.a.sending -= len(m.sent)
	m.sent = nil
}

// sendAbove shows the ULP a Send that is there to its end.
func (s *stream) sendAbove(at capture.At, m *Message) {
	if !m.sends() {
		return
	}
	if u := s.f.above(); u != nil {
		u.Send(s.f.side(s.id), at, &Sent{
			Octets: m.sent, Whole: !m.torn, Length: m.Length,
			Invalidates: m.Op.Invalidates(), Invalidate: m.Invalidate,
		})
	}
	s.release(m)
}
