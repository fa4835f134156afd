package rdmap

import (
	"errors"
	"sync/atomic"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/stag"
)

// Config has the parameters of an RDMAP stream.
type Config struct {
	Memory *stag.Table // in which STags are looked up
	Scope  stag.Scope  // in which the stream uses them

	// IRD and ORD are how many Reads and atomics of the peer, and of this side,
	// may be outstanding (RFC 5040 §6.1), 0 to mpa.MaxDepth. Numbers outside
	// are clamped.
	IRD, ORD int

	// SendRTR, if not zero, is the ready-to-receive indication that opens the
	// stream; ExpectRTR are those of which the peer must send one first (RFC
	// 6581 §9.2). The provider handles them: the ULP does not see them.
	SendRTR, ExpectRTR mpa.RTR

	// Refused are rights, such as stag.RemoteRead, that the peer does not have
	// on this stream, whatever STags grant. They may change at any time. Nil
	// stands for none.
	Refused *atomic.Uint32

	Trace func(Trace) // called for each message with its verdict, if not nil
}

// A Stream is an RDMAP stream over an LLP. One goroutine at a time may transmit
// (Transmit and the LLP's sending methods) while another one receives (Receive,
// TryReceive, Discard). Fail, MayRead, Stats and Abort may be called from any
// goroutine. It relies on the LLP sending nothing before its Flush.
type Stream struct {
	cfg     Config
	ulp     Handler
	ddp     *ddp.Stream
	depths  *depths
	counts  counts
	sending sending
	intake  intake

	// terminate is the error to report to the peer: the first one (RFC 5040
	// §7.1 rule 4). closed is set when no message may follow any more.
	terminate atomic.Pointer[Error]
	closed    atomic.Bool
}

// NewStream returns a stream in RDMA mode over an LLP.
func NewStream(llp ddp.LLP, ulp Handler, cfg Config) *Stream {
	cfg.IRD, cfg.ORD = min(max(cfg.IRD, 0), mpa.MaxDepth), min(max(cfg.ORD, 0), mpa.MaxDepth)
	s := &Stream{cfg: cfg, ulp: ulp, depths: &depths{ird: cfg.IRD, ord: cfg.ORD}}
	s.ddp = ddp.NewStream(llp, (*receiver)(s), NumQueues)
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
	return s.depths.orq.Len()
}

// Answering returns how many Reads and atomics of the peer wait for their
// responses.
func (s *Stream) Answering() int {
	s.depths.mu.Lock()
	defer s.depths.mu.Unlock()
	return s.depths.irq.Len()
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

// Failure returns the error that was passed to Fail, or with which Transmit ended the
// stream because it could not answer a request of the peer. It is nil if there is
// none.
func (s *Stream) Failure() *Error { return s.terminate.Load() }

// Receive waits for segments, and places and delivers what they carry. It returns
// nil when it has done something. An *Error says which rule the peer broke: the
// caller passes it to Fail, which reports it to the peer. An error that wraps
// ddp.ErrDeclined is the Handler's: a message waits with the LLP, and the next call
// begins with it. Other errors are those of the LLP: the stream is lost, or, if one
// wraps io.EOF, the peer has ended its half.
func (s *Stream) Receive() error { return s.received(s.ddp.Receive()) }

// TryReceive is like Receive, but does not wait. It reports whether there was
// anything.
func (s *Stream) TryReceive() (bool, error) {
	some, err := s.ddp.TryReceive()
	return some, s.received(err)
}

// received converts an error of the layers below to what Receive returns.
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

// Lease returns the Lease under which a receive buffer opens its memory in
// Place. It ends when the Stream has placed what had arrived.
func (s *Stream) Lease() *stag.Lease { return &s.intake.lease }

// asError converts an error to an *Error to report to the peer.
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

// Discard drops what the peer still sends, until it ends the stream.
func (s *Stream) Discard() error { return s.ddp.Discard() }

// CloseWrite ends this side's half of the stream gracefully.
func (s *Stream) CloseWrite() error { return s.ddp.CloseWrite() }

// Close closes the LLP stream.
func (s *Stream) Close() error { return s.ddp.Close() }

// Abort tears the stream down at once.
func (s *Stream) Abort() error { return s.ddp.Abort() }
