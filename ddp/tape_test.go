package ddp

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"urnic/internal/host/memfault"
)

// A tape is a lower layer that keeps what is posted.
type tape struct {
	LLP      // nil: the sender needs no more than what is below
	mulpdu   int
	room     int // segments it takes until the next Flush; 0: any number
	used     int
	segments [][]byte
	stable   []bool
	err      error // that Post fails with
}

func (l *tape) MULPDU() int {
	if l.mulpdu == 0 {
		return 1500
	}
	return l.mulpdu
}

func (l *tape) Post(header []byte, payload [][]byte, stable bool) (bool, error) {
	if l.err != nil {
		return false, l.err
	}
	if l.room > 0 && l.used == l.room {
		return false, nil
	}
	l.used++
	l.segments = append(l.segments, slices.Concat(append([][]byte{header}, payload...)...))
	l.stable = append(l.stable, stable)
	return true, nil
}

func (l *tape) Flush(bool) (bool, error) {
	l.used = 0
	return true, nil
}

// bytes is a payload that comes in several pieces.
type octets string

func (o octets) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	b := []byte(o[off : off+n])
	if n > 2 {
		pieces = append(pieces, b[:n/3])
		b = b[n/3:]
	}
	return append(pieces, b), nil
}
func (octets) Release()     {}
func (octets) Stable() bool { return true }

// A held is a payload that counts how often it is held.
type held struct {
	octets
	held, most, gathered int
	err                  error // that Gather fails with from the second call on
}

func (h *held) Gather(pieces [][]byte, off, n uint32) ([][]byte, error) {
	if h.gathered++; h.gathered > 1 && h.err != nil {
		return pieces, h.err
	}
	h.held++
	h.most = max(h.most, h.held)
	return h.octets.Gather(pieces, off, n)
}
func (h *held) Release() { h.held-- }

// send sends a message wholly.
func send(t testing.TB, s *Source, m *Message) {
	t.Helper()
	if err := sendWholly(s, m); err != nil {
		t.Fatal(err)
	}
}

func sendWholly(s *Source, m *Message) error {
	for {
		if done, err := s.Send(m); done || err != nil {
			return err
		}
		if _, err := s.llp.Flush(true); err != nil {
			return err
		}
	}
}

// parse reads a segment that was sent.
func parse(t testing.TB, b []byte) Segment {
	t.Helper()
	seg, err := ParseSegment(b)
	if err != nil {
		t.Fatal(err)
	}
	return seg
}

func TestPayloadIsHeldSegmentBySegment(t *testing.T) {
	l := &tape{mulpdu: 128, room: 1}
	src := newSource(l, 1)
	p := &held{octets: octets(make([]byte, 1000))}
	send(t, &src, &Message{Length: 1000, Payload: p})
	if p.held != 0 || p.most != 1 {
		t.Errorf("the payload is held %d times, at most %d at once; want 0 and 1", p.held, p.most)
	}
	if slices.Contains(l.stable, false) {
		t.Error("stable payload was posted as if it could change")
	}
	if src.pieces = src.pieces[:cap(src.pieces)]; slices.ContainsFunc(src.pieces, func(p []byte) bool { return p != nil }) {
		t.Error("the source keeps payload alive that it has released")
	}
}

func TestPayloadThatFailsIsAnErrorOfSend(t *testing.T) {
	gone := errors.New("the memory is gone")
	l := &tape{mulpdu: 128}
	src := newSource(l, 1)
	p := &held{octets: octets(make([]byte, 1000)), err: gone}
	m := &Message{Length: 1000, Payload: p}
	if done, err := src.Send(m); done || !ofMessage(err) || !errors.Is(err, gone) || err.Error() != gone.Error() {
		t.Errorf("Send = %v, %v", done, err)
	}
	if p.held != 0 || len(l.segments) != 1 || m.Sent() != 110 {
		t.Errorf("the payload is held %d times; %d segments were posted; %d octets are sent", p.held, len(l.segments), m.Sent())
	}
}

func TestLLPErrorIsAnErrorOfSend(t *testing.T) {
	lost := errors.New("lost")
	src := newSource(&tape{err: lost}, 1)
	p := &held{octets: "x"}
	for _, m := range []Message{{Length: 1, Payload: p}, {}} {
		if done, err := src.Send(&m); done || ofMessage(err) || !errors.Is(err, lost) || p.held != 0 {
			t.Errorf("Send = %v, %v; the payload is held %d times", done, err, p.held)
		}
	}
}

// An LLP that can't read the payload is not lost.
func TestPayloadThatTheLLPCannotReadIsAnErrorOfTheMessage(t *testing.T) {
	l := &tape{err: fmt.Errorf("post: %w", &memfault.Error{Addr: 1})}
	src := newSource(l, 1)
	p := &held{octets: "x"}
	if done, err := src.Send(&Message{Length: 1, Payload: p}); done || !ofMessage(err) || !errors.As(err, new(*memfault.Error)) || p.held != 0 {
		t.Errorf("Send = %v, %v; the payload is held %d times", done, err, p.held)
	}
}

// ofMessage reports whether an error of Send is one of the message, not of the LLP.
func ofMessage(err error) bool { return errors.As(err, new(*MessageError)) }

func TestMessageThatCannotBeSentIsRefused(t *testing.T) {
	l := &tape{}
	src := newSource(l, 2)
	for name, m := range map[string]*Message{
		"queue that there is not": {QN: 2},
		"no payload":              {Length: 1},
		"no payload, tagged":      {Tagged: true, Length: 1},
	} {
		if done, err := src.Send(m); done || !ofMessage(err) {
			t.Errorf("%s: Send = %v, %v", name, done, err)
		}
	}
	if len(l.segments) != 0 {
		t.Errorf("%d segments were posted", len(l.segments))
	}
	m := &Message{QN: 1}
	if send(t, &src, m); m.MSN() != 1 {
		t.Errorf("the next message has MSN %d", m.MSN())
	}
	if m.Reset(); *m != (Message{}) {
		t.Errorf("after Reset the message is %+v", m)
	}
}
