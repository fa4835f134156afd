package ddp

import (
	"errors"
	"io"
)

// A Stream is a DDP stream over an LLP: a Source and a Sink. One goroutine at a
// time may use the Source while another one receives.
//
// DDP does not tear a stream down by itself (RFC 5041 §6.2): Receive reports
// what has happened, and the ULP calls CloseWrite, Close or Abort.
type Stream struct {
	Source
	sink  Sink
	llp   LLP
	place func(segment []byte, order uint64) error
}

// MaxQueues is how many queues of untagged buffers a stream may have. RDMAP has
// four.
const MaxQueues = 1 << 16

// NewStream returns a stream with that many queues of untagged buffers in each
// direction, 0 to MaxQueues. Numbers outside are clamped.
func NewStream(llp LLP, ulp Receiver, queues int) *Stream {
	queues = min(max(queues, 0), MaxQueues)
	s := &Stream{Source: newSource(llp, queues), sink: newSink(ulp, queues), llp: llp}
	s.place = s.sink.Segment // made once, so that nothing is allocated per call
	return s
}

// Receive waits for segments, places them and delivers what is complete. It
// returns nil when it has done something, and otherwise one of these errors:
//
//   - an *Error, or a *SegmentError with an error of the ULP: the peer broke a
//     rule. It is returned once; later calls silently drop what arrives.
//     Messages can still be sent, so that the ULP can notify the peer (§7.1).
//   - an error that wraps ErrDeclined: the ULP does not accept a message yet.
//     The next call begins with its segment.
//   - an error of the LLP. If it wraps io.EOF, the peer has torn down its half
//     of the stream gracefully, and sending continues (§6.2.1).
func (s *Stream) Receive() error {
	failed := s.sink.err != nil
	return s.received(failed, s.llp.Receive(s.place))
}

// TryReceive is like Receive, but does not wait. It reports whether a segment
// was accepted.
func (s *Stream) TryReceive() (bool, error) {
	failed := s.sink.err != nil
	some, err := s.llp.TryReceive(s.place)
	return some, s.received(failed, err)
}

// received returns the sink's error, if reception has ended with it just now, or what
// the LLP has returned.
func (s *Stream) received(failed bool, err error) error {
	if !failed && s.sink.err != nil {
		if s.sink.ended { // "MUST cause the DDP Stream to be abortively torn down": §6.2.1
			_ = s.llp.Abort() // the sink's error is the one to report
		}
		return s.sink.err
	}
	if errors.Is(err, io.EOF) {
		s.sink.ended = true
	}
	return err
}

// Posted returns the LLP's position behind what has been posted so far.
func (s *Stream) Posted() uint64 { return s.llp.Posted() }

// Discard drops what the peer still sends, until it ends the stream.
func (s *Stream) Discard() error { return s.llp.Discard() }

// CloseWrite tears this end's half of the stream down gracefully: no more
// message may begin, and the LLP ends the half behind what was posted, once it
// has accepted that (RFC 5041 §6.2.1). Messages that were begun must be done
// before. Close and Abort end the wait.
func (s *Stream) CloseWrite() error {
	s.Source.Close()
	for {
		if done, err := s.llp.Flush(true); err != nil {
			return err
		} else if done {
			return s.llp.CloseWrite()
		}
	}
}

// Close closes the LLP stream.
func (s *Stream) Close() error { return s.llp.Close() }

// Abort tears the stream down abortively (RFC 5041 §6.2.2).
func (s *Stream) Abort() error { return s.llp.Abort() }
