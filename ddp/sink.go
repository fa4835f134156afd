package ddp

import (
	"errors"
	"fmt"
)

// A Buffer is an untagged buffer.
type Buffer interface {
	// Len returns the size of the buffer in bytes.
	Len() uint64
	// Place copies p to offset off. The range lies inside the buffer.
	Place(off uint32, p []byte) error
}

// A Receiver is the ULP at the Data Sink.
//
// Segments are validated before they are placed. Delivery is in the sender's
// order, whatever the order of placement. An error that a method returns ends
// the stream's reception; it reaches the caller of Stream.Receive with header
// and length of the segment.
type Receiver interface {
	// Arrived is called for each segment before it is validated or placed, and again
	// for one that was declined.
	Arrived()

	// PlaceTagged carries out the checks of RFC 5041 §7.1 on the STag, the TO
	// and the length of a tagged segment that is not empty, and places it.
	PlaceTagged(h *TaggedHeader, payload []byte) error

	// Buffer returns the buffer of a message of a queue: ahead 0 is the oldest one
	// that has not been delivered, and so on. If there is none, it returns nil and no
	// error, which ends the stream (CodeMSNNoBuffer). If the ULP does not accept the
	// message yet, it returns an error that wraps ErrDeclined: the segment stays with
	// the LLP, and the next call of Stream.Receive calls Buffer again.
	//
	// It is called before the MSN is validated, so a peer can cause a call with any
	// number: a call must not consume anything. A message has begun once something is
	// placed, which happens with ahead above 0 only if the LLP changes the order.
	Buffer(h *UntaggedHeader, ahead uint32) (Buffer, error)
	// Admit validates the ULP's part of an untagged header before the payload
	// is placed.
	Admit(h *UntaggedHeader) error

	// DeliverTagged is called for each tagged segment, in order. The message
	// ends with the one that has the Last flag. n is the length of its payload.
	DeliverTagged(h *TaggedHeader, n int) error
	// DeliverUntagged delivers a message with the header of its last segment
	// and the length of the message in bytes.
	DeliverUntagged(h *UntaggedHeader, length uint32) error
}

// ErrDeclined says that the ULP does not accept a message yet, see Receiver.Buffer. It
// is not an error of the stream.
var ErrDeclined = errors.New("ddp: the ULP does not take the message yet")

// DefaultWindow is how many segments an LLP may be ahead of the first one that
// is missing.
const DefaultWindow = 4096

// A Sink is the receiving half of a DDP stream (RFC 5041 §5.3, §5.4, §7.1). It
// is not safe for concurrent use.
type Sink struct {
	ulp    Receiver
	queues []queue
	window uint64

	next    uint64             // order of the next segment to deliver
	waiting map[uint64]arrival // placed, but not yet in turn
	err     error              // the first error, with which reception ended
	ended   bool               // the peer has torn down its half

	// What is being processed. It is here so that passing it to the ULP
	// allocates nothing.
	seg  Segment // the one that has arrived
	turn arrival // the one that is being placed or delivered
}

// A queue is the sink's state of one queue of untagged buffers.
type queue struct {
	first   uint32 // MSN of the oldest message that is not delivered
	covered extent // of that message, as far as it is in turn
}

// An arrival is a segment that was placed, without its payload.
type arrival struct {
	tagged   TaggedHeader
	untagged UntaggedHeader
	n        int
}

func newSink(ulp Receiver, queues int) Sink {
	s := Sink{ulp: ulp, queues: make([]queue, queues), window: DefaultWindow}
	for i := range s.queues {
		s.queues[i].first = 1
	}
	return s
}

// Segment processes one segment from the LLP. An error that wraps ErrDeclined says
// that it was not accepted, and that nothing has changed. Any other error ends
// reception: from then on Segment silently drops segments (RFC 5041 §7.1).
func (s *Sink) Segment(b []byte, order uint64) error {
	s.ulp.Arrived()
	if s.err != nil {
		return nil
	}
	if s.ended {
		s.err = &Error{
			Code: CodeLocalCatastrophic, Clause: "RFC 5041 §6.2.1", SegmentLen: len(b),
			Reason: "a segment came after the peer had torn the stream down gracefully",
		}
		return s.err
	}
	if s.seg, s.err = ParseSegment(b); s.err != nil {
		return s.err
	}
	err := s.take(&s.seg, order)
	s.seg.Payload = nil
	if err == nil || errors.Is(err, ErrDeclined) {
		return err
	}
	s.err = s.turn.describe(err)
	return s.err
}

// take places a segment and delivers what is then in turn.
func (s *Sink) take(seg *Segment, order uint64) error {
	if order < s.next {
		return nil // an LLP that repeats a segment breaks §3 rule 11; it is delivered once
	}
	s.turn = arrival{seg.Tagged, seg.Untagged, len(seg.Payload)}
	if order-s.next > s.window {
		return &Error{
			Code: CodeLocalCatastrophic, Clause: "RFC 5041 §3",
			Reason: fmt.Sprintf("a segment came %d segments early; at most %d are kept track of", order-s.next, s.window),
		}
	}
	if err := s.place(seg, order-s.next); err != nil {
		return err
	}
	if order != s.next {
		if s.waiting == nil {
			s.waiting = make(map[uint64]arrival)
		}
		s.waiting[order] = s.turn
		return nil
	}
	for {
		s.next++
		if err := s.deliver(&s.turn); err != nil || len(s.waiting) == 0 {
			return err
		}
		var ok bool
		if s.turn, ok = s.waiting[s.next]; !ok {
			return nil
		}
		delete(s.waiting, s.next)
	}
}

// place validates a segment that arrives that many segments early, and places its
// payload.
func (s *Sink) place(seg *Segment, early uint64) error {
	if v := seg.Control.Version(); v != Version {
		code := CodeUntaggedVersion
		if seg.Control.Tagged() {
			code = CodeTaggedVersion
		}
		return &Error{Code: code, Clause: "RFC 5041 §4.1", Reason: fmt.Sprintf("DV is %d; it must be %d", v, Version)}
	}
	if !seg.Control.Tagged() {
		return s.placeUntagged(&seg.Untagged, seg.Payload, early)
	}
	if len(seg.Payload) == 0 {
		return nil // "STag and TO fields MUST NOT be checked": §5.2
	}
	return s.ulp.PlaceTagged(&seg.Tagged, seg.Payload)
}

// placeUntagged runs the checks of RFC 5041 §7.1 in their order.
func (s *Sink) placeUntagged(h *UntaggedHeader, payload []byte, early uint64) error {
	fail := func(code Code, format string, args ...any) error {
		return &Error{Code: code, Clause: "RFC 5041 §7.1", Reason: fmt.Sprintf(format, args...)}
	}
	// 1. The QN is valid for this stream.
	if h.QN >= uint32(len(s.queues)) {
		return fail(CodeInvalidQN, "queue %d does not exist: there are %d", h.QN, len(s.queues))
	}
	q := &s.queues[h.QN]
	// 2. QN and MSN have a buffer. A message that was delivered had one: that
	// the buffer is gone is for check 5 to say.
	ahead := h.MSN - q.first
	delivered := int32(ahead) < 0
	var buf Buffer
	if !delivered {
		var err error
		switch buf, err = s.ulp.Buffer(h, ahead); {
		case err != nil:
			return err
		case buf == nil:
			return fail(CodeMSNNoBuffer, "no buffer is posted to queue %d for MSN %d; the oldest open one is %d", h.QN, h.MSN, q.first)
		}
		// 3. MO and 4. MO + length are within the buffer.
		switch size, n := min(buf.Len(), MaxMessage), uint64(len(payload)); {
		case n == 0: // judged for non-empty segments only
		case uint64(h.MO) > size:
			return fail(CodeInvalidMO, "MO %d lies outside a buffer of %d octets", h.MO, size)
		case n > size-uint64(h.MO):
			return fail(CodeMessageTooLong, "%d octets at MO %d exceed a buffer of %d octets", n, h.MO, size)
		}
	}
	// 5. The MSN is in the range of the available buffers; and a segment that is
	// in turn belongs to the oldest open message, one that is early to none that the
	// missing segments can't end. Without the latter, deliver
	// would refuse the segment as well, but it would have been placed in the
	// buffer of a later message by then, and a peer could have any number of buffers used.
	if delivered || uint64(ahead) > early {
		return fail(CodeMSNRange, "MSN %d came on queue %d where %d is in turn", h.MSN, h.QN, q.first)
	}
	if err := s.ulp.Admit(h); err != nil {
		return err
	}
	if len(payload) == 0 {
		return nil
	}
	return buf.Place(h.MO, payload)
}

// deliver takes a segment whose predecessors have all been through here.
func (s *Sink) deliver(a *arrival) error {
	if a.tagged.Control.Tagged() {
		return s.ulp.DeliverTagged(&a.tagged, a.n)
	}
	h := &a.untagged
	q := &s.queues[h.QN]
	// Check 5 of placeUntagged has judged the MSN of a segment that came in turn. On an
	// LLP that keeps the order, as MPA on TCP does, all segments come in turn, and
	// this check never fails. It is for those that were placed early (§5.3).
	if h.MSN != q.first {
		return &Error{
			Code: CodeMSNRange, Clause: "RFC 5041 §4.3",
			Reason: fmt.Sprintf("MSN %d was sent on queue %d where %d is in turn", h.MSN, h.QN, q.first),
		}
	}
	// Segments are delivered in the sender's order whatever the LLP does, so gaps are
	// the sender's: it need not send in increasing MO order (§5.3). A gap that stays is
	// found when the message ends. The bound is for messages that never end.
	end := uint64(h.MO) + uint64(a.n)
	if !q.covered.add(uint64(h.MO), end) {
		return badMO(h, "too many gaps in a message")
	}
	if !h.Control.Last() {
		return nil
	}
	// Delivered "if and only if … all … have been Placed" (§5.4), and the last
	// segment "MUST carry the highest MO" (§4.1).
	if !q.covered.is(end) {
		return badMO(h, fmt.Sprintf("the message ends at octet %d, but its segments cover something else", end))
	}
	q.covered.reset()
	q.first++ // modulo 2^32
	return s.ulp.DeliverUntagged(h, uint32(end))
}

func badMO(h *UntaggedHeader, reason string) error {
	return &Error{Code: CodeInvalidMO, Clause: "RFC 5041 §5.4", Reason: fmt.Sprintf("queue %d, MSN %d, MO %d: %s", h.QN, h.MSN, h.MO, reason)}
}

// describe adds to an error what a Terminate message contains of the segment.
func (a *arrival) describe(err error) error {
	var header []byte
	if a.tagged.Control.Tagged() {
		header, _ = a.tagged.AppendBinary(nil)
	} else {
		header, _ = a.untagged.AppendBinary(nil)
	}
	var e *Error
	if !errors.As(err, &e) {
		return &SegmentError{Header: header, SegmentLen: len(header) + a.n, Err: err}
	}
	if e.SegmentLen = len(header) + a.n; e.Code != CodeLocalCatastrophic {
		e.Header = header
	}
	return err
}

// A SegmentError is an error that the ULP found in a segment or message, with
// the DDP header of the segment and its length.
type SegmentError struct {
	Header     []byte
	SegmentLen int
	Err        error
}

// Error is that of the ULP.
func (e *SegmentError) Error() string { return e.Err.Error() }

// Unwrap returns the ULP's error.
func (e *SegmentError) Unwrap() error { return e.Err }
