package rdmap

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/stag"
)

// Config says what an RDMAP stream has to work with.
type Config struct {
	Memory *stag.Table // in which STags are looked up
	Scope  stag.Scope  // as whom the stream uses them

	// IRD and ORD are how many Reads and atomics of the peer, and of this side,
	// may be outstanding (RFC 5040 §6.1), 0 to mpa.MaxDepth. What lies outside
	// counts as the nearest of these.
	IRD, ORD int

	// SendRTR, if not zero, is the ready-to-receive indication that opens the
	// stream; ExpectRTR are those of which the peer must send one first
	// (RFC 6581 §9.2). They are the provider's affair: the ULP sees nothing.
	SendRTR, ExpectRTR mpa.RTR

	// Refused are rights, stag.RemoteRead and such, that the peer has not on this
	// stream, whatever STags grant. They may change at any time. Nil: none.
	Refused *atomic.Uint32

	Trace func(Trace) // sees each message with its verdict, if not nil
}

// A Stream is an RDMAP stream over an LLP. One goroutine at a time may transmit
// (Transmit and the LLP's sending methods) while another one receives (Receive,
// TryReceive, Discard). Fail, MayRead, Stats and Abort may be called from anywhere.
// It takes for granted that nothing leaves before the LLP's Flush.
type Stream struct {
	cfg     Config
	ulp     Handler
	llp     lower
	ddp     *ddp.Stream
	depths  *depths
	counts  counts
	sending sending
	intake  intake

	// terminate is the error that the peer is to be told of: the first one
	// (RFC 5040 §7.1 rule 4). closed is set when no message may follow any more.
	terminate atomic.Pointer[Error]
	closed    atomic.Bool
}

// NewStream returns a stream in RDMA mode over an LLP.
func NewStream(llp ddp.LLP, ulp Handler, cfg Config) *Stream {
	cfg.IRD, cfg.ORD = min(max(cfg.IRD, 0), mpa.MaxDepth), min(max(cfg.ORD, 0), mpa.MaxDepth)
	s := &Stream{cfg: cfg, ulp: ulp, llp: lower{LLP: llp}, depths: &depths{ird: cfg.IRD, ord: cfg.ORD}}
	s.ddp = ddp.NewStream(&s.llp, (*receiver)(s), NumQueues)
	s.sending.rtr = cfg.SendRTR
	s.intake.init(cfg)
	return s
}

// MayRead reports whether a Read or an atomic can be begun without exceeding
// ORD.
func (s *Stream) MayRead() bool { return s.depths.mayRead() }

// Outstanding returns how many Reads and atomics of this side wait for their
// responses.
func (s *Stream) Outstanding() int {
	s.depths.mu.Lock()
	defer s.depths.mu.Unlock()
	return s.depths.orq.n
}

// Answering returns how many Reads and atomics of the peer wait for their
// responses.
func (s *Stream) Answering() int {
	s.depths.mu.Lock()
	defer s.depths.mu.Unlock()
	return s.depths.irq.n
}

// Ended reports whether Transmit sends nothing more: a Terminate has been posted
// or received.
func (s *Stream) Ended() bool { return s.closed.Load() }

// Fail ends the stream for an error that this side has found: Transmit sends a
// Terminate for it, if no other error came first and the peer has not sent one
// (RFC 5040 §7.1). It reports whether it was the first.
func (s *Stream) Fail(e *Error) bool {
	if s.closed.Load() || !s.terminate.CompareAndSwap(nil, e) {
		return false
	}
	s.ulp.Wake()
	return true
}

// Failure returns the error that Fail took, or with which Transmit ended the stream: a
// request of the peer's could not be answered. It is nil if there is none.
func (s *Stream) Failure() *Error { return s.terminate.Load() }

// Receive waits for segments, and places and delivers what they carry. It
// returns nil when it has done something. An *Error says which rule the peer
// broke: the caller passes it to Fail, so that the peer is told. Other errors
// are those of the LLP: the stream is lost, or, if one wraps io.EOF, the peer
// has ended its half.
func (s *Stream) Receive() error { return s.received(s.ddp.Receive()) }

// TryReceive is Receive that does not wait: it reports whether there was
// anything.
func (s *Stream) TryReceive() (bool, error) {
	some, err := s.ddp.TryReceive()
	return some, s.received(err)
}

// received returns an error of the layers below as Receive does.
func (s *Stream) received(err error) error {
	s.intake.lease.End()
	s.counts.received.publish()
	if err == nil {
		return nil
	}
	err = asError(err)
	if e, ok := errors.AsType[*Error](err); ok {
		s.traceRefused(e)
	}
	return err
}

// Lease returns the Lease under which a receive buffer opens its memory in Place.
// It ends when the Stream has placed what was at hand.
func (s *Stream) Lease() *stag.Lease { return &s.intake.lease }

// asError makes an *Error of an error that the peer is to be told of.
func asError(err error) error {
	var seg *ddp.SegmentError
	if e := (*Error)(nil); errors.As(err, &e) {
		if errors.As(err, &seg) {
			e.Header, e.SegmentLen = seg.Header, seg.SegmentLen
		}
		return e
	}
	if errors.As(err, &seg) { // an error of the ULP without a code
		return &Error{Code: CodeStreamCatastrophic, Clause: "RFC 5040 §7.1", Header: seg.Header, SegmentLen: seg.SegmentLen, Err: seg.Err}
	}
	if e := (*ddp.Error)(nil); errors.As(err, &e) {
		return &Error{Code: TermCode(e.TermWord()), Clause: e.Clause, Header: e.Header, SegmentLen: e.SegmentLen, Err: err}
	}
	if e := (*mpa.Error)(nil); errors.As(err, &e) && (e.Code == mpa.CodeCRC || e.Code == mpa.CodeMarker) {
		// The stream still works in the other direction (RFC 5044 §8).
		return &Error{Code: TermCode(e.TermWord()), Clause: e.Clause, Err: err}
	}
	return err
}

// TakesReceive reports whether a segment, as the LLP has it, wants a receive of
// the ULP: whether it belongs to a Send or to Immediate Data, and is not the
// ready-to-receive indication. It is the receiver's.
func (s *Stream) TakesReceive(segment []byte) bool {
	const control, qn = 1, 6
	if len(segment) < ddp.UntaggedHeaderLen || ddp.Control(segment[0]).Tagged() || binary.BigEndian.Uint32(segment[qn:]) != QueueSend {
		return false
	}
	return s.intake.expectRTR == 0 || Control(segment[control]).Opcode() != OpSend
}

// Discard drops what the peer still sends, until it ends the stream.
func (s *Stream) Discard() error { return s.ddp.Discard() }

// CloseWrite ends this side's half of the stream gracefully.
func (s *Stream) CloseWrite() error { return s.ddp.CloseWrite() }

// Close closes the LLP stream.
func (s *Stream) Close() error { return s.ddp.Close() }

// Abort tears the stream down at once.
func (s *Stream) Abort() error { return s.ddp.Abort() }
