package conformance

import (
	"encoding/binary"
	"fmt"
	"time"

	"urnic/conformance/wire"
)

// A Stream is a connection in full operation: the tester's end of it.
type Stream struct {
	*wire.Conn
	Role           Roles      // the target's
	Request, Reply wire.Frame // of start-up
	// QP is the target's queue pair, for the test service; 0 without one.
	QP int
	// IRD is how many Reads the target takes at a time, as it has said.
	IRD uint16
	// Spoken says that the target, as the Initiator, has sent its RTR.
	Spoken bool

	t   *T
	msn [4]uint32
}

// stream returns a Stream on a connection, with the first MSN due on each queue.
func (t *T) stream(c *wire.Conn) *Stream {
	first := t.FirstMSN()
	return &Stream{Conn: c, Role: t.role, t: t, msn: [4]uint32{first, first, first, first}}
}

// FirstMSN returns the MSN with which each queue of the target begins, in both
// directions: 1, but for a build that begins near the wrap.
func (t *T) FirstMSN() uint32 { return max(t.opts.FirstMSN, 1) }

// Open starts a connection in the role of this run, up to full operation: the
// tester may send, and the target, if it is the Initiator, has sent. It ends the
// case as inconclusive if that does not succeed.
func (t *T) Open(setup Setup) *Stream {
	c := t.Connect(setup)
	s := t.stream(c)
	if t.role == Responder {
		s.initiate(setup)
	} else {
		s.respond(setup)
	}
	t.Try(t.session.Attach(t.ctx, s), "finding the target's end of the connection")
	return s
}

// NewStream switches a connection whose start-up the case has done itself to
// full operation. The frames are those that were sent and received. With the
// test service, Started identifies the target's queue pair.
func (t *T) NewStream(c *wire.Conn, request, reply wire.Frame) *Stream {
	s := t.NewDoomed(c, request, reply)
	if t.lasting {
		t.Try(t.session.Attach(t.ctx, s), "finding the target's end of the connection")
	}
	return s
}

// NewDoomed is NewStream for a start-up with a fault that the target may find as soon as
// it is in full operation: it does not wait for what a target's program says first.
func (t *T) NewDoomed(c *wire.Conn, request, reply wire.Frame) *Stream {
	s := t.stream(c)
	s.Request, s.Reply = request, reply
	s.operate()
	return s
}

// RequestFor returns the Request that Open sends to a target that is the Responder.
func RequestFor(setup Setup) wire.Frame {
	f := wire.Frame{Key: wire.RequestKey, Rev: 2, Flags: setup.flags()}
	if setup.Revision == 1 {
		f.Rev, f.Private = 1, setup.Private
		return f
	}
	f.Flags |= wire.FlagS
	e := wire.Enhanced{IRD: depth(setup.IRD), ORD: depth(setup.ORD), PeerToPeer: setup.PeerToPeer, RTRWrite: setup.PeerToPeer}
	f.Private = append(e.Octets(), setup.Private...)
	return f
}

// ReplyFor returns the Reply that Open sends to a Request of the target.
func ReplyFor(setup Setup, request wire.Frame) wire.Frame {
	f := wire.Frame{Key: wire.ReplyKey, Rev: request.Rev, Flags: setup.flags(), Private: setup.Private}
	e, _, ok := request.Enhanced()
	if !ok {
		return f
	}
	f.Flags |= wire.FlagS
	// RFC 6581 §9.1: our IRD covers the peer's ORD, our ORD no more than its IRD.
	e.IRD, e.ORD = max(depth(setup.IRD), e.ORD), min(depth(setup.ORD), e.IRD)
	if !e.PeerToPeer {
		e.RTRSend, e.RTRWrite, e.RTRRead = false, false, false
	}
	f.Private = append(e.Octets(), setup.Private...)
	return f
}

func (s Setup) flags() uint8 {
	var f uint8
	if !s.NoCRC {
		f |= wire.FlagC
	}
	if s.Markers {
		f |= wire.FlagM
	}
	return f
}

func (s *Stream) initiate(setup Setup) {
	t := s.t
	s.Request = RequestFor(setup)
	asked := time.Now()
	t.Try(s.SendFrame(s.Request, ""), "sending the Request")
	var err error
	s.Reply, err = s.ReadFrame(t.opts.Timeout)
	if err == nil {
		t.opts.rtt.add(time.Since(asked))
	}
	if err != nil {
		t.Inconclusive("there is no Reply to an ordinary Request: %v", err)
	}
	if s.Reply.Flags&wire.FlagR != 0 {
		t.Inconclusive("the target rejects an ordinary Request")
	}
	if e, _, ok := s.Reply.Enhanced(); ok {
		s.IRD = e.IRD
	} else {
		s.IRD = DefaultDepth // nobody says
	}
	s.operate()
	if setup.PeerToPeer {
		s.Hello()
	}
}

func (s *Stream) respond(setup Setup) {
	t := s.t
	var err error
	s.Request, err = s.ReadFrame(t.opts.Timeout)
	if err != nil {
		t.Inconclusive("there is no Request: %v", err)
	}
	s.Reply = ReplyFor(setup, s.Request)
	t.Try(s.SendFrame(s.Reply, ""), "sending the Reply")
	e, _, ok := s.Request.Enhanced()
	s.IRD = DefaultDepth
	if ok {
		s.IRD = e.IRD
	}
	s.operate()
	if ok && e.PeerToPeer {
		s.takeRTR()
	}
}

// takeRTR takes the message that makes an Initiator's side ready (RFC 6581 §9.2).
func (s *Stream) takeRTR() {
	began := time.Now()
	a, err := s.Next(s.t.opts.Timeout)
	if err != nil {
		s.t.Inconclusive("the target has sent no RTR: %v", err)
	}
	s.t.opts.rtt.add(time.Since(began))
	s.Spoken = true
	if a.Opcode != wire.ReadRequest {
		return
	}
	if h, err := wire.ParseReadHeader(a.Payload); err == nil {
		s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, nil))
	}
}

// operate turns the connection to full operation by what the frames say.
func (s *Stream) operate() {
	ours, theirs := s.Request, s.Reply
	if s.Role == Initiator {
		ours, theirs = theirs, ours
	}
	crc := (ours.Flags|theirs.Flags)&wire.FlagC != 0
	s.Operate(theirs.Flags&wire.FlagM != 0, ours.Flags&wire.FlagM != 0, crc)
	if s.Role == Responder && s.t.opts.Settle > 0 {
		select {
		case <-time.After(s.t.opts.Settle):
		case <-s.t.ctx.Done():
		}
	}
}

// Hello sends a zero-length RDMA Write, after which a target that is the Responder
// may send (RFC 5044 §7.1.2 rule 4).
func (s *Stream) Hello() { s.Post(wire.Tagged(wire.Write, 0, 0, nil)) }

// Post sends segments, each in its own FPDU. Untagged ones get the MSN that is
// due on their queue. What can't be sent, as the target is gone, is only on the
// tape: a later expectation will fail.
func (s *Stream) Post(segments ...wire.Segment) {
	for _, seg := range segments {
		s.PostFlawed(seg, wire.Flaw{})
	}
}

// PostFlawed is Post with something wrong with the FPDU.
func (s *Stream) PostFlawed(seg wire.Segment, flaw wire.Flaw) {
	s.PostExact(s.Due(seg), flaw)
	if !seg.Tagged && seg.Last && seg.QN < uint32(len(s.msn)) {
		s.msn[seg.QN]++
	}
}

// Due returns the segment with the MSN that is due on its queue.
func (s *Stream) Due(seg wire.Segment) wire.Segment {
	if !seg.Tagged && seg.QN < uint32(len(s.msn)) {
		seg.MSN = s.msn[seg.QN]
	}
	return seg
}

// PostExact sends a segment as it is, MSN and all, and counts nothing.
func (s *Stream) PostExact(seg wire.Segment, flaw wire.Flaw) {
	if err := s.SendSegment(seg, flaw); err != nil {
		return // taped
	}
}

// SetMSN changes the MSN that is due on a queue.
func (s *Stream) SetMSN(qn, msn uint32) { s.msn[qn] = msn }

// ReadRequest returns a Read Request for n bytes.
func ReadRequest(sinkSTag uint32, sinkTO uint64, n uint32, sourceSTag uint32, sourceTO uint64) wire.Segment {
	h := wire.ReadHeader{SinkSTag: sinkSTag, SinkTO: sinkTO, Length: n, SourceSTag: sourceSTag, SourceTO: sourceTO}
	return wire.Untagged(wire.ReadRequest, h.Octets())
}

// SinkSTag and SinkTO are where the tester's Reads put what they read: nowhere; but
// a response has to name them.
const (
	SinkSTag = 0x51A4C01D
	SinkTO   = 0x1000
)

// Read reads n bytes of the target's memory, and returns them. It ends the case
// as failed if what comes is not the response.
func (s *Stream) Read(stag uint32, to uint64, n int) []byte {
	s.Post(ReadRequest(SinkSTag, SinkTO, uint32(n), stag, to))
	return s.AwaitResponse(SinkSTag, SinkTO, n)
}

// BufferSpec says what memory a case wants.
type BufferSpec struct {
	Length int
	// Access is the rights, in the test service's words; nil stands for remote_read
	// and remote_write.
	Access []string
	// PD is another protection domain than the stream's, if not 0.
	PD int
	// Base is the TO of the first byte, if not 0.
	Base uint64
	// ZeroBased begins the TOs at 0, and so does not want Base.
	ZeroBased bool
	// AtEnd wants the last bytes of the target's buffer, if it has one that is larger than
	// Length, and not the first: what lies behind them must not be open.
	AtEnd bool
	// OtherQP, if not 0, is the queue pair whose stream alone may use it.
	OtherQP int
}

// A Buffer is memory of the target.
type Buffer struct {
	STag   uint32
	TO     uint64 // of its first byte
	Length int    // bytes: as many as were asked for
	MR     int    // its number in the test service
	before []byte
}

// Fill is what a buffer of the test service holds at first.
const Fill = 0xA5

// Buffer opens memory of the target, of n bytes, for remote reads and writes.
// What lies before it is not open; what lies behind it may be.
func (s *Stream) Buffer(n int) *Buffer { return s.BufferOf(BufferSpec{Length: n}) }

// BufferAtEnd is Buffer for memory behind which nothing is open; before it, there may be.
func (s *Stream) BufferAtEnd(n int) *Buffer { return s.BufferOf(BufferSpec{Length: n, AtEnd: true}) }

// BufferOf opens memory as the spec says.
func (s *Stream) BufferOf(spec BufferSpec) *Buffer {
	b, err := s.t.session.Buffer(s.t.ctx, s, spec)
	s.t.Try(err, "opening memory of the target")
	s.t.Note("the target opens STag 0x%08x, TO 0x%x, %d octets", b.STag, b.TO, b.Length)
	if contents, err := s.t.session.Contents(s.t.ctx, b); err == nil {
		b.before = contents
	}
	return b
}

// Pattern returns n bytes that are easily told from others.
func Pattern(n int) []byte {
	b := make([]byte, 0, n+8)
	for i := uint64(0); len(b) < n; i++ {
		b = binary.BigEndian.AppendUint64(b, 0x0123456789ABCDEF+i*0x0101010101010101)
	}
	return b[:n]
}

// Segments cuts a message into segments of at most n bytes of payload.
func Segments(message wire.Segment, n int) []wire.Segment {
	var out []wire.Segment
	rest := message.Payload
	for off := 0; ; {
		seg := message
		seg.Payload = rest[:min(n, len(rest))]
		rest = rest[len(seg.Payload):]
		if message.Tagged {
			seg.TO += uint64(off)
		} else {
			seg.MO += uint32(off)
		}
		seg.Last = message.Last && len(rest) == 0
		out = append(out, seg)
		off += len(seg.Payload)
		if len(rest) == 0 {
			return out
		}
	}
}

// String returns a human-readable name of the buffer.
func (b *Buffer) String() string {
	return fmt.Sprintf("STag 0x%08x, TO 0x%x to 0x%x", b.STag, b.TO, b.TO+uint64(b.Length))
}
