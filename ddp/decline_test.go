package ddp

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"urnic/ddp/ddptest"
)

// A message that the ULP declines stays with the LLP, with what follows it, until the
// ULP takes it. Nothing of the stream changes meanwhile.
func TestDeclinedMessageStaysWithTheLLP(t *testing.T) {
	for _, reorder := range []int{1, 5} {
		for _, why := range []error{ErrDeclined, fmt.Errorf("wait: %w", ErrDeclined)} {
			u := newUpper([]int{16, 16})
			tag, mem := u.expose(t, 0, 4)
			l := newLink(t, ddptest.Options{MULPDU: 128, Reorder: reorder, Seed: 3}, u)
			for _, m := range []Message{sized(Message{}, 4), sized(Message{}, 6), sized(Message{Tagged: true, STag: tag}, 4)} {
				send(t, &l.a.Source, &m)
			}
			if _, err := l.llpA.Flush(true); err != nil {
				t.Fatal(err)
			}
			waiting := 0
			for u.decline = why; ; {
				waiting = l.llpB.Waiting()
				if err := take(l.b); err != nil {
					break // a tagged segment may have come first
				}
			}
			for range 5 {
				if err := take(l.b); err != why { //nolint:errorlint // as it is
					t.Fatalf("Receive = %v; want %v", err, why)
				}
			}
			if n := l.llpB.Waiting(); n != waiting || len(u.got) != 0 {
				t.Errorf("%d of %d segments are with the LLP; delivered %+v", n, waiting, u.got)
			}
			if some, err := l.b.TryReceive(); some || !errors.Is(err, ErrDeclined) {
				t.Errorf("TryReceive = %v, %v", some, err)
			}
			u.decline = nil
			l.receive()
			if got := u.messages(); !slices.Equal(got, []string{text(4), text(6)}) || string(mem) != text(4) {
				t.Errorf("delivered %q, placed %q", got, mem)
			}
		}
	}
}

// What is wrong with a segment before its buffer is looked for is told though the ULP
// declines all messages, and so is what is wrong with its queue's order.
func TestDeclinedOrNotABadSegmentIsAnError(t *testing.T) {
	for want, b := range map[Code][]byte{
		CodeInvalidQN:   untagged(3, 1, 0, true, "x"),
		CodeMSNRange:    untagged(0, 0, 0, true, "x"),
		CodeInvalidMO:   untagged(0, 1, 40, true, "x"),
		CodeMSNNoBuffer: untagged(2, 1, 0, true, "x"),
	} {
		s := newUntaggedTest(t)
		s.ulp.decline = ErrDeclined
		if err := s.sink.Segment(b, 0); want == CodeInvalidMO || want == CodeMSNNoBuffer {
			if !errors.Is(err, ErrDeclined) || s.sink.err != nil {
				t.Errorf("%v: Segment = %v", want, err)
			}
			s.ulp.decline = nil
			_ = s.sink.Segment(b, 0)
		}
		s.wantError(want, b)
	}
}

// Another error of Buffer is the ULP's, and ends reception.
func TestErrorOfBufferEndsReception(t *testing.T) {
	s := newUntaggedTest(t)
	refused := errors.New("refused")
	s.ulp.decline = refused
	b := untagged(0, 1, 0, true, "x")
	err := s.sink.Segment(b, 0)
	var e *SegmentError
	if !errors.As(err, &e) || !errors.Is(e, refused) || !slices.Equal(e.Header, b[:UntaggedHeaderLen]) || e.SegmentLen != len(b) {
		t.Errorf("Segment = %+v", err)
	}
	s.ulp.decline = nil
	if err := s.sink.Segment(b, 0); err != nil || s.ulp.placed != 0 {
		t.Errorf("then Segment = %v; %d octets placed", err, s.ulp.placed)
	}
}

// The ULP is told of each segment before anything is asked of it.
func TestULPIsToldOfEachSegmentFirst(t *testing.T) {
	s := newUntaggedTest(t)
	s.ulp.decline = ErrDeclined
	_ = s.sink.Segment(untagged(0, 1, 0, true, "x"), 0) // asks for a buffer
	s.ulp.decline = nil
	_ = s.sink.Segment(untagged(0, 1, 0, true, "x"), 0) // buffer, Admit, delivery
	_ = s.sink.Segment(tagged(0, 0, true, ""), 1)       // delivery
	_ = s.sink.Segment([]byte{0}, 2)                    // an error
	_ = s.sink.Segment(tagged(0, 0, true, ""), 3)       // dropped
	if want := []int{0, 1, 4, 5, 5}; !slices.Equal(s.ulp.arrived, want) {
		t.Errorf("calls before each segment: %d; want %d", s.ulp.arrived, want)
	}
}
