package ddp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// newUntaggedTest has two buffers of 16 bytes in queue 0, one of 8 in queue 1,
// none in queue 2, and no queue 3.
func newUntaggedTest(t testing.TB) *sinkTest {
	return newSinkTest(t, newUpper([]int{16, 16}, []int{8}, nil))
}

func TestUntaggedChecksInOrder(t *testing.T) {
	version2 := func(b []byte) []byte { b[0]++; return b }
	for _, tt := range []struct {
		name     string
		before   [][]byte
		segments map[string][]byte // each is refused
		want     Code
	}{
		{
			name: "QN not valid",
			segments: map[string][]byte{
				"the first one there is not": untagged(3, 1, 0, true, "x"),
				"the last one":               untagged(math.MaxUint32, 1, 0, true, "x"),
				"and no MSN":                 untagged(3, 0, 0, true, "x"),
				"and no MO":                  untagged(3, 1, 1000, true, "x"),
				"all at once":                untagged(3, 77, math.MaxUint32, true, strings.Repeat("x", 20)),
				"empty":                      untagged(3, 1, 0, true, ""),
			},
			want: CodeInvalidQN,
		}, {
			name: "no buffer",
			segments: map[string][]byte{
				"empty queue":     untagged(2, 1, 0, true, "x"),
				"one too many":    untagged(0, 3, 0, true, "x"),
				"far ahead":       untagged(0, 1<<31, 0, true, "x"),
				"and no MO":       untagged(2, 1, 17, true, "x"),
				"and too long":    untagged(2, 1, 0, true, strings.Repeat("x", 20)),
				"and out of turn": untagged(2, 2, 1000, true, "x"),
				"empty":           untagged(2, 1, 0, true, ""),
			},
			want: CodeMSNNoBuffer,
		}, {
			name: "MO out of range",
			segments: map[string][]byte{
				"one too far":     untagged(0, 1, 17, true, "x"),
				"the last one":    untagged(0, 1, math.MaxUint32, true, "x"),
				"sum wraps":       untagged(0, 1, math.MaxUint32, true, "xx"),
				"and too long":    untagged(0, 1, 17, true, strings.Repeat("x", 17)),
				"and out of turn": untagged(0, 2, 17, true, "x"),
				"smaller buffer":  untagged(1, 1, 9, true, "x"),
			},
			want: CodeInvalidMO,
		}, {
			name: "too long for buffer",
			segments: map[string][]byte{
				"from the beginning":       untagged(0, 1, 0, true, strings.Repeat("x", 17)),
				"by one octet":             untagged(0, 1, 15, true, "xx"),
				"behind the last octet":    untagged(0, 1, 16, true, "x"),
				"not the last":             untagged(0, 1, 10, false, "1234567"),
				"and out of turn":          untagged(0, 2, 15, true, "xx"),
				"smaller buffer":           untagged(1, 1, 0, true, "123456789"),
				"smaller buffer, at an MO": untagged(1, 1, 7, true, "12"),
			},
			want: CodeMessageTooLong,
		}, {
			name:   "MSN out of range",
			before: [][]byte{untagged(1, 1, 0, true, "x")},
			segments: map[string][]byte{
				"delivered":                  untagged(1, 1, 0, true, "x"),
				"delivered, and no MO":       untagged(1, 1, 1000, true, "x"),
				"before the first":           untagged(0, 0, 0, true, "x"),
				"far before the first":       untagged(0, 1+1<<31, 0, true, "x"),
				"gap":                        untagged(0, 2, 0, true, "x"),
				"gap, with an empty segment": untagged(0, 2, 0, true, ""),
			},
			want: CodeMSNRange,
		}, {
			name: "version, and everything else",
			segments: map[string][]byte{
				"QN":  version2(untagged(3, 1, 0, true, "x")),
				"MSN": version2(untagged(2, 1, 0, true, "x")),
				"MO":  version2(untagged(0, 1, 77, true, "x")),
			},
			want: CodeUntaggedVersion,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, b := range tt.segments {
				t.Run(name, func(t *testing.T) {
					s := newUntaggedTest(t)
					s.take(tt.before...)
					placed, got := s.ulp.placed, len(s.ulp.got)
					s.ulp.admit = func(*UntaggedHeader) error {
						t.Error("the ULP was asked about a segment that DDP refuses")
						return errors.New("not admitted")
					}
					s.take(b)
					s.wantError(tt.want, b)
					if s.ulp.placed != placed || len(s.ulp.got) != got {
						t.Error("the segment was placed or delivered")
					}
				})
			}
		})
	}
}

func TestUntaggedSegmentsAtTheLimitsArePlaced(t *testing.T) {
	for _, b := range [][]byte{
		untagged(0, 1, 0, true, "0123456789abcdef"), // all of the buffer
		untagged(0, 1, 15, false, "x"),
		untagged(1, 1, 7, false, "x"),
	} {
		s := newUntaggedTest(t)
		if s.take(b); s.sink.err != nil || s.ulp.placed != len(b)-UntaggedHeaderLen {
			t.Errorf("%x: %d octets were placed, %v", b, s.ulp.placed, s.sink.err)
		}
	}
}

func TestSegmentThatComesEarlyMustHaveABuffer(t *testing.T) {
	early := untagged(0, 3, 0, true, "x")
	s := newUntaggedTest(t)
	_ = s.sink.Segment(early, 2)
	s.wantError(CodeMSNNoBuffer, early)
}

// An MSN that only turns out to be wrong when the segment is in turn is
// reported for that segment, not for the one that came last.
func TestEarlySegmentIsJudgedWhenItIsInTurn(t *testing.T) {
	early := untagged(0, 2, 0, true, "early")
	s := newUntaggedTest(t)
	_ = s.sink.Segment(early, 1)
	s.wantMessages()
	_ = s.sink.Segment(untagged(1, 1, 0, true, "other"), 0)
	s.wantError(CodeMSNRange, early)
	if got := s.ulp.messages(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("delivered %q", got)
	}
}

func TestEarlySegmentOfAMessageThatHasEndedIsAnError(t *testing.T) {
	early := untagged(0, 1, 1, false, "y")
	s := newUntaggedTest(t)
	_ = s.sink.Segment(early, 1)
	_ = s.sink.Segment(untagged(0, 1, 0, true, "x"), 0)
	s.wantError(CodeMSNRange, early)
	if got := s.ulp.messages(); !slices.Equal(got, []string{"x"}) {
		t.Errorf("delivered %q", got)
	}
}

// A message needs a segment: so many can't be under way as there are buffers, if fewer
// segments are missing.
func TestEarlySegmentBelongsToNoMessageBeyondWhatIsMissing(t *testing.T) {
	for order := range uint64(3) {
		for msn := range uint32(3) {
			s := newSinkTest(t, newUpper([]int{4, 4, 4}))
			b := untagged(0, 1+msn, 0, true, "x")
			if _ = s.sink.Segment(b, order); uint64(msn) <= order {
				if s.sink.err != nil || s.ulp.placed != 1 {
					t.Errorf("order %d, MSN %d: %v", order, 1+msn, s.sink.err)
				}
				continue
			}
			if s.wantError(CodeMSNRange, b); s.ulp.placed != 0 {
				t.Errorf("order %d, MSN %d: it was placed", order, 1+msn)
			}
		}
	}
}

// A message that was delivered has no buffer any more: a segment of it fails when it
// comes, not when it is in turn (RFC 5041 §7.1).
func TestEarlySegmentOfADeliveredMessageFailsAtOnce(t *testing.T) {
	s := newUntaggedTest(t)
	s.take(untagged(0, 1, 0, true, "x"))
	late := untagged(0, 1, 1, true, "y")
	_ = s.sink.Segment(late, 3)
	s.wantError(CodeMSNRange, late)
}

func TestSegmentBeyondTheWindowFails(t *testing.T) {
	s := newUntaggedTest(t)
	s.take(untagged(0, 1, 0, true, "x"))
	far := untagged(0, 2, 0, true, "y")
	_ = s.sink.Segment(far, 1+DefaultWindow+1)
	s.wantError(CodeLocalCatastrophic, far)
	if want := fmt.Sprintf("came %d segments early", DefaultWindow+1); s.sink.err == nil || !strings.Contains(s.sink.err.Error(), want) {
		t.Errorf("the error is %v; want %q in it", s.sink.err, want)
	}
}

func TestULPJudgesItsPartBeforePlacement(t *testing.T) {
	refused := errors.New("refused")
	for _, payload := range []string{"x", ""} {
		s := newUntaggedTest(t)
		s.ulp.admit = func(h *UntaggedHeader) error {
			if h.RsvdULP[0] == 7 {
				return refused
			}
			return nil
		}
		b := untagged(0, 1, 0, true, payload)
		b[1] = 7
		s.take(b)
		var e *SegmentError
		if !errors.As(s.sink.err, &e) || !errors.Is(e, refused) || e.Error() != "refused" ||
			!slices.Equal(e.Header, b[:UntaggedHeaderLen]) || e.SegmentLen != len(b) {
			t.Errorf("the sink ended with %+v", s.sink.err)
		}
		if s.ulp.placed != 0 || len(s.ulp.got) != 0 {
			t.Error("the segment was placed or delivered")
		}
	}
}

func TestPlacementThatFailsEndsReception(t *testing.T) {
	lost := errors.New("memory is gone")
	s := newUntaggedTest(t)
	s.ulp.queues[0][0].err = lost
	s.take(untagged(0, 1, 0, true, "x"), untagged(0, 1, 0, true, "x"))
	if !errors.Is(s.sink.err, lost) || len(s.ulp.got) != 0 {
		t.Errorf("the sink ended with %v; delivered %d", s.sink.err, len(s.ulp.got))
	}
}

func TestMSNWrapsToZero(t *testing.T) {
	tape := &tape{}
	src := newSource(tape, 1)
	src.next[0] = math.MaxUint32 // as after 2^32-2 messages
	for range 3 {
		send(t, &src, &Message{Length: 1, Payload: octets("x")})
	}
	var got []uint32
	s := newSinkTest(t, newUpper([]int{1, 1, 1, 1}))
	s.sink.queues[0].first = math.MaxUint32
	for _, b := range tape.segments {
		got = append(got, parse(t, b).Untagged.MSN)
		s.take(b)
	}
	if !slices.Equal(got, []uint32{math.MaxUint32, 0, 1}) {
		t.Errorf("sent with MSNs %d", got)
	}
	s.wantMessages("x", "x", "x")

	again := untagged(0, math.MaxUint32, 0, true, "x") // three back, not 2^32-3 ahead
	s.take(again)
	s.wantError(CodeMSNRange, again)
}

func TestMessageOffsets(t *testing.T) {
	const msg = "0123456789"
	type piece struct{ from, to uint32 }
	for _, tt := range []struct {
		name   string
		pieces []piece // the last one has the Last flag
		bad    bool
	}{
		{"in order", []piece{{0, 4}, {4, 8}, {8, 10}}, false},
		{"in decreasing order but for the last", []piece{{6, 8}, {4, 6}, {0, 4}, {8, 10}}, false},
		{"scattered", []piece{{4, 5}, {2, 3}, {6, 8}, {0, 2}, {3, 4}, {5, 6}, {8, 10}}, false},
		{"overlapping", []piece{{0, 6}, {3, 9}, {1, 2}, {8, 10}}, false},
		{"twice the same", []piece{{0, 6}, {0, 6}, {6, 10}}, false},
		{"last is empty", []piece{{0, 10}, {10, 10}}, false},
		{"with empty segments", []piece{{0, 0}, {7, 7}, {0, 10}, {3, 3}, {10, 10}}, false},
		{"gap at the beginning", []piece{{1, 5}, {5, 10}}, true},
		{"gap in the middle", []piece{{0, 4}, {5, 10}}, true},
		{"gap of the last, which is empty", []piece{{0, 9}, {10, 10}}, true},
		{"only the last", []piece{{9, 10}}, true},
		{"only the last, empty", []piece{{5, 5}}, true},
		{"last is not the highest", []piece{{0, 4}, {6, 10}, {4, 6}}, true},
		{"last is inside", []piece{{0, 10}, {2, 4}}, true},
		{"last is before a gap", []piece{{0, 4}, {6, 10}, {2, 4}}, true},
		{"last is inside, empty", []piece{{0, 10}, {4, 4}}, true},
		{"last is empty and one too far", []piece{{0, 8}, {9, 9}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newUntaggedTest(t)
			var b []byte
			for i, p := range tt.pieces {
				if b = untagged(0, 1, p.from, i == len(tt.pieces)-1, msg[p.from:p.to]); i < len(tt.pieces)-1 {
					s.take(b)
					s.wantMessages()
				}
			}
			if s.take(b); !tt.bad {
				s.wantMessages(msg)
				s.take(untagged(0, 2, 0, true, "next"))
				s.wantMessages(msg, "next")
				return
			}
			s.wantError(CodeInvalidMO, b)
			if len(s.ulp.got) != 0 {
				t.Error("a message that is not whole was delivered")
			}
		})
	}
}

func TestTooManyGapsInAMessageEndReception(t *testing.T) {
	for _, gaps := range []uint32{maxGaps, maxGaps + 1} {
		s := newSinkTest(t, newUpper([]int{1000}))
		var b []byte
		for i := range gaps {
			b = untagged(0, 1, 2*i+1, false, "x")
			s.take(b)
		}
		if gaps > maxGaps {
			s.wantError(CodeInvalidMO, b)
			continue
		}
		for i := range gaps {
			s.take(untagged(0, 1, 2*i, false, "x"))
		}
		s.take(untagged(0, 1, 2*gaps, true, ""))
		s.wantMessages(strings.Repeat("x", int(2*gaps)))
	}
}

// The checks are for segments that are not empty (RFC 5041 §7.1).
func TestOffsetOfAnEmptySegmentIsNotChecked(t *testing.T) {
	s := newUntaggedTest(t)
	s.take(untagged(0, 1, 17, false, ""), untagged(0, 1, math.MaxUint32, false, ""), untagged(0, 1, 0, true, "x"))
	s.wantMessages("x")
}

// Queues are independent: a gap or an open message in one says nothing of
// another.
func TestNumberOfQueuesIsKeptInBounds(t *testing.T) {
	for queues, want := range map[int]int{math.MinInt: 0, -1: 0, 4: 4, MaxQueues: MaxQueues, MaxQueues + 1: MaxQueues, math.MaxInt: MaxQueues} {
		s := NewStream(nil, nil, queues)
		if _, err := s.Send(&Message{QN: uint32(want)}); err == nil {
			t.Errorf("%d queues: a message to queue %d was sent", queues, want)
		}
		if len(s.sink.queues) != want || len(s.next) != want {
			t.Errorf("%d queues asked for: %d and %d; want %d", queues, len(s.sink.queues), len(s.next), want)
		}
	}
}

func TestQueuesCountByThemselves(t *testing.T) {
	s := newSinkTest(t, newUpper([]int{4, 4}, []int{4, 4}))
	s.take(
		untagged(1, 1, 0, true, "b1"),
		untagged(1, 2, 0, true, "b2"),
		untagged(0, 1, 0, true, "a1"),
		untagged(0, 2, 0, true, "a2"),
	)
	s.wantMessages("b1", "b2", "a1", "a2")
}

// A counter is a buffer of any size that keeps nothing.
type counter struct {
	size, n uint64
}

func (c *counter) Len() uint64 { return c.size }
func (c *counter) Place(off uint32, p []byte) error {
	if uint64(off) != c.n || uint64(len(p)) > c.size-c.n {
		return fmt.Errorf("%d octets came at %d; want %d", len(p), off, c.n)
	}
	c.n += uint64(len(p))
	return nil
}

// A counting is a ULP with one such buffer.
type counting struct {
	upper
	buffer  counter
	lengths []uint32
}

func (c *counting) Buffer(_ *UntaggedHeader, ahead uint32) (Buffer, error) {
	if ahead > 0 {
		return nil, nil
	}
	return &c.buffer, nil
}

func (c *counting) DeliverUntagged(_ *UntaggedHeader, length uint32) error {
	c.lengths = append(c.lengths, length)
	return nil
}

// feed makes the sink take bytes from MO mo up to end.
func feed(s *Sink, order *uint64, mo, end uint64, last bool) (segment []byte) {
	b := make([]byte, UntaggedHeaderLen+4<<20)
	for mo < end && s.err == nil {
		n := min(end-mo, uint64(len(b)-UntaggedHeaderLen))
		h := UntaggedHeader{Control: NewControl(false, last && mo+n == end), MSN: 1, MO: uint32(mo)}
		_, _ = h.AppendBinary(b[:0])
		segment = b[:UntaggedHeaderLen+n]
		_ = s.Segment(segment, *order)
		*order++
		mo += n
	}
	return segment
}

func TestLongestMessageIsDelivered(t *testing.T) {
	u := &counting{buffer: counter{size: MaxMessage}}
	s, order := newSink(u, 1), uint64(0)
	feed(&s, &order, 0, MaxMessage, true)
	if s.err != nil || u.buffer.n != MaxMessage || !slices.Equal(u.lengths, []uint32{MaxMessage}) {
		t.Errorf("%d octets were placed, lengths %d delivered, %v", u.buffer.n, u.lengths, s.err)
	}
}

// MO is a number of 32 bits: a longer message would be told a wrong length,
// even where the buffer has room for it.
func TestMessageBeyond4GiBIsRefused(t *testing.T) {
	u := &counting{buffer: counter{size: 1 << 33}}
	s, order := newSink(u, 1), uint64(0)
	feed(&s, &order, 0, MaxMessage, false)
	if s.err != nil || u.buffer.n != MaxMessage {
		t.Fatalf("%d octets were placed, %v", u.buffer.n, s.err)
	}
	b := feed(&s, &order, MaxMessage, MaxMessage+1, true)
	wantError(t, s.err, CodeMessageTooLong, b)
	if u.buffer.n != MaxMessage || u.lengths != nil {
		t.Errorf("%d octets were placed, lengths %d delivered", u.buffer.n, u.lengths)
	}
}
