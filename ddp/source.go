package ddp

import (
	"errors"
	"fmt"

	"urnic/internal/host/memfault"
	"urnic/stag"
)

// A Payload is the source of the bytes of a message. It is called for each
// segment, so that memory need not be held for longer than that.
type Payload interface {
	// Gather appends to pieces the memory of n bytes from offset off of the
	// message. Release is called when they are posted: the memory is no longer
	// used or, if it is stable, not after the LLP's next Flush.
	Gather(pieces [][]byte, off, n uint32) ([][]byte, error)
	Release()
	// Stable reports whether the memory does not change until then.
	Stable() bool
}

// MaxMessage is the length of the longest ULP message, in bytes (RFC 5041
// §5.2).
const MaxMessage = 1<<32 - 1

// A Message is a DDP message that is being sent. What the ULP sets is the same
// in each of its segments (RFC 5041 §4.2, §4.3).
type Message struct {
	Tagged  bool
	RsvdULP [5]byte // of which a tagged message carries the first byte

	STag stag.STag // tagged
	TO   uint64    // tagged: of the first byte

	QN uint32 // untagged

	Length  uint64  // bytes, at most MaxMessage
	Payload Payload // may be nil if Length is 0

	begun bool
	msn   uint32
	sent  uint32 // bytes posted
}

// Reset makes m ready to describe another message.
func (m *Message) Reset() { *m = Message{} }

// Sent returns how many bytes of the message have been posted to the LLP.
func (m *Message) Sent() uint32 { return m.sent }

// MSN returns the message sequence number of an untagged message that has been
// begun.
func (m *Message) MSN() uint32 { return m.msn }

// ErrClosed says that a message was submitted after the ULP had asked for a
// graceful teardown (RFC 5041 §6.2.1).
var ErrClosed = errors.New("ddp: the stream is being torn down: nothing more can be sent")

// A Source is the sending half of a DDP stream: it cuts messages into segments
// (RFC 5041 §5.2). Messages are sent in the order in which they are submitted.
// A message must be done before the next one begins, unless it is dropped
// because the stream ends. It is not safe for concurrent use.
type Source struct {
	llp    LLP
	next   []uint32 // MSN of the next message, by QN
	closed bool

	header [UntaggedHeaderLen]byte
	pieces [][]byte
}

func newSource(llp LLP, queues int) Source {
	s := Source{llp: llp, next: make([]uint32, queues)}
	for i := range s.next {
		s.next[i] = 1 // "The initial value for MSN MUST be one": RFC 5041 §4.3
	}
	return s
}

// A MessageError reports that a message could not be sent: it is invalid, or its
// payload could not be read. It is not an error of the LLP.
type MessageError struct {
	Err error
}

// Error returns what was wrong.
func (e *MessageError) Error() string { return e.Err.Error() }

// Unwrap returns what was wrong.
func (e *MessageError) Unwrap() error { return e.Err }

// Send posts segments of m until all are posted or the LLP has no space. It reports
// whether all are posted. If not, it must be called again with the same message, after
// a Flush.
//
// After Close, it fails with a *MessageError that wraps ErrClosed. It fails with other
// *MessageErrors if the message is too long, if its queue does not exist, or if its
// payload can't be read: Gather fails, or the LLP reports a *memfault.Error. Other
// errors of the LLP are passed on.
func (s *Source) Send(m *Message) (done bool, err error) {
	if !m.begun {
		if err := s.begin(m); err != nil {
			return false, &MessageError{err}
		}
	}
	for {
		n := uint32(min(m.Length-uint64(m.sent), uint64(s.llp.MULPDU()-m.headerLen())))
		last := uint64(m.sent)+uint64(n) == m.Length
		ok, err := s.post(m, n, last)
		if !ok || err != nil {
			return false, err
		}
		m.sent += n
		if last {
			return true, nil
		}
	}
}

func (s *Source) begin(m *Message) error {
	switch {
	case s.closed:
		return ErrClosed
	case m.Length > MaxMessage:
		return fmt.Errorf("ddp: a message of %d octets: at most %d are allowed (RFC 5041 §5.2)", m.Length, uint64(MaxMessage))
	case m.Length > 0 && m.Payload == nil:
		return fmt.Errorf("ddp: a message of %d octets without payload", m.Length)
	case m.Tagged:
	case m.QN >= uint32(len(s.next)):
		return fmt.Errorf("ddp: queue %d does not exist: there are %d", m.QN, len(s.next))
	default:
		m.msn = s.next[m.QN]
		s.next[m.QN]++ // modulo 2^32
	}
	m.begun = true
	return nil
}

func (m *Message) headerLen() int {
	if m.Tagged {
		return TaggedHeaderLen
	}
	return UntaggedHeaderLen
}

// post posts the segment with the next n bytes of m.
func (s *Source) post(m *Message, n uint32, last bool) (bool, error) {
	var header []byte
	if m.Tagged {
		header, _ = TaggedHeader{
			Control: NewControl(true, last), RsvdULP: m.RsvdULP[0], STag: m.STag, TO: m.TO + uint64(m.sent),
		}.AppendBinary(s.header[:0])
	} else {
		header, _ = UntaggedHeader{
			Control: NewControl(false, last), RsvdULP: m.RsvdULP, QN: m.QN, MSN: m.msn, MO: m.sent,
		}.AppendBinary(s.header[:0])
	}
	if n == 0 {
		return s.llp.Post(header, nil, false)
	}
	pieces, err := m.Payload.Gather(s.pieces[:0], m.sent, n)
	if err != nil {
		return false, &MessageError{err}
	}
	ok, err := s.llp.Post(header, pieces, m.Payload.Stable())
	m.Payload.Release()
	clear(pieces)
	s.pieces = pieces[:0]
	if err != nil && errors.As(err, new(*memfault.Error)) {
		err = &MessageError{err}
	}
	return ok, err
}

// Close makes further messages fail: the ULP has asked for a graceful teardown.
// A message that was begun can be finished.
func (s *Source) Close() { s.closed = true }
