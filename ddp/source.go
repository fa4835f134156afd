package ddp

import (
	"errors"
	"fmt"

	"urnic/stag"
)

// A Payload is where the octets of a message come from. It is asked segment by
// segment, so that memory need not be held for longer than that.
type Payload interface {
	// Gather appends to pieces the memory of n octets from offset off of the
	// message. Release says that they are posted: the memory is not used any
	// more, or if it is stable, not after the LLP's next Flush.
	Gather(pieces [][]byte, off, n uint32) ([][]byte, error)
	Release()
	// Stable reports whether nobody changes the memory until then.
	Stable() bool
}

// MaxMessage is the length of the longest ULP message, in octets (RFC 5041
// §5.2).
const MaxMessage = 1<<32 - 1

// A Message is a DDP message on its way out. What the ULP sets stays the same
// in each of its segments (RFC 5041 §4.2, §4.3).
type Message struct {
	Tagged  bool
	RsvdULP [5]byte // of which a tagged message carries the first octet

	STag stag.STag // tagged
	TO   uint64    // tagged: of the first octet

	QN uint32 // untagged

	Length  uint64  // octets, at most MaxMessage
	Payload Payload // may be nil if Length is 0

	begun bool
	msn   uint32
	sent  uint32 // octets posted
}

// Reset makes m ready to describe another message.
func (m *Message) Reset() { *m = Message{} }

// Sent returns how many octets of the message have been posted to the LLP.
func (m *Message) Sent() uint32 { return m.sent }

// MSN returns the message sequence number of an untagged message that has been
// begun.
func (m *Message) MSN() uint32 { return m.msn }

// ErrClosed says that a message was submitted after the ULP had asked for a
// graceful teardown (RFC 5041 §6.2.1).
var ErrClosed = errors.New("ddp: the stream is being torn down: nothing more can be sent")

// A Source is the sending half of a DDP stream: it cuts messages into segments
// (RFC 5041 §5.2). Messages leave in the order in which they are submitted; a
// message must be done before the next one begins, unless it is given up
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

// Send posts segments of m until all of them are posted, which it reports, or
// the LLP has no room. It is called again with the same message then, after a
// Flush.
//
// It fails with ErrClosed after Close, and for messages that are too long or go
// to a queue that there is not; errors of the payload and the LLP are passed on.
func (s *Source) Send(m *Message) (done bool, err error) {
	if !m.begun {
		if err := s.begin(m); err != nil {
			return false, err
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

// post posts the segment with the next n octets of m.
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
		return false, err
	}
	ok, err := s.llp.Post(header, pieces, m.Payload.Stable())
	m.Payload.Release()
	clear(pieces)
	s.pieces = pieces[:0]
	return ok, err
}

// Close makes further messages fail: the ULP has asked for a graceful teardown.
// A message that was begun can be finished.
func (s *Source) Close() { s.closed = true }
