package ddp

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// text returns n bytes, no two neighbouring runs of which are alike.
func text(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}

// both runs a test for an untagged and a tagged message.
func both(t *testing.T, f func(t *testing.T, m Message, headerLen int)) {
	t.Run("untagged", func(t *testing.T) { f(t, Message{QN: 1}, UntaggedHeaderLen) })
	t.Run("tagged", func(t *testing.T) { f(t, Message{Tagged: true, STag: 0x12345678, TO: 16384}, TaggedHeaderLen) })
}

// record sends messages to a tape and returns the segments.
func record(t testing.TB, l *tape, messages ...Message) []Segment {
	t.Helper()
	src := newSource(l, 3)
	for i := range messages {
		send(t, &src, &messages[i])
	}
	var segs []Segment
	for _, b := range l.segments {
		segs = append(segs, parse(t, b))
	}
	return segs
}

// sized returns m with n bytes of payload.
func sized(m Message, n int) Message {
	m.Length, m.Payload = uint64(n), octets(text(n))
	return m
}

func TestMessageIsCutToFitMULPDU(t *testing.T) {
	both(t, func(t *testing.T, m Message, headerLen int) {
		for _, mulpdu := range []int{128, 1500, 64768} {
			fit := mulpdu - headerLen
			for _, n := range []int{1, fit - 1, fit, fit + 1, 2*fit - 1, 2 * fit, 2*fit + 1, 5*fit + 7} {
				l := &tape{mulpdu: mulpdu}
				segs := record(t, l, sized(m, n))
				if want := (n + fit - 1) / fit; len(segs) != want {
					t.Errorf("MULPDU %d: %d octets make %d segments; want %d", mulpdu, n, len(segs), want)
				}
				for i, b := range l.segments {
					if len(b) > mulpdu || i < len(segs)-1 && len(b) != mulpdu {
						t.Errorf("MULPDU %d: segment %d of %d has %d octets", mulpdu, i, len(segs), len(b))
					}
				}
			}
		}
	})
}

// The examples of RFC 5041 §5.2.
func TestSegmentsCarryTheirOffset(t *testing.T) {
	segs := record(t, &tape{mulpdu: 1500}, sized(Message{}, 2048), sized(Message{Tagged: true, TO: 16384}, 2048))
	if len(segs) != 4 {
		t.Fatalf("sent as %d segments", len(segs))
	}
	u, v := segs[:2], segs[2:]
	if u[0].Untagged.MO != 0 || len(u[0].Payload) != 1482 || u[1].Untagged.MO != 1482 || len(u[1].Payload) != 566 {
		t.Errorf("untagged: %d octets at MO %d, %d at %d", len(u[0].Payload), u[0].Untagged.MO, len(u[1].Payload), u[1].Untagged.MO)
	}
	if v[0].Tagged.TO != 16384 || len(v[0].Payload) != 1486 || v[1].Tagged.TO != 17870 || len(v[1].Payload) != 562 {
		t.Errorf("tagged: %d octets at TO %d, %d at %d", len(v[0].Payload), v[0].Tagged.TO, len(v[1].Payload), v[1].Tagged.TO)
	}

	both(t, func(t *testing.T, m Message, _ int) {
		m.TO = 1<<40 + 5
		var sent uint64
		for _, seg := range record(t, &tape{mulpdu: 128}, sized(m, 1000)) {
			at := uint64(seg.Untagged.MO)
			if m.Tagged {
				at = seg.Tagged.TO - m.TO
			}
			if at != sent {
				t.Errorf("a segment has offset %d; want %d", at, sent)
			}
			sent += uint64(len(seg.Payload))
		}
	})
}

func TestLastFlagMarksOnlyTheLastSegment(t *testing.T) {
	both(t, func(t *testing.T, m Message, headerLen int) {
		for _, n := range []int{0, 1, 128 - headerLen, 129 - headerLen, 1000} {
			segs := record(t, &tape{mulpdu: 128, room: 1}, sized(m, n))
			var end, highest uint64
			for i, seg := range segs {
				last := i == len(segs)-1
				if seg.Control.Last() != last {
					t.Errorf("%d octets: L=%v in segment %d of %d", n, seg.Control.Last(), i, len(segs))
				}
				if highest > 0 && uint64(seg.Untagged.MO) < highest {
					t.Errorf("%d octets: MO %d comes after %d", n, seg.Untagged.MO, highest)
				}
				highest = max(highest, uint64(seg.Untagged.MO))
				end += uint64(len(seg.Payload))
			}
			if end != uint64(n) {
				t.Errorf("%d of %d octets are out with the last segment", end, n)
			}
		}
	})
}

func TestEverySegmentCarriesTheFieldsTheULPGave(t *testing.T) {
	u := Message{QN: 2, RsvdULP: [5]byte{0x41, 1, 2, 3, 4}}
	v := Message{Tagged: true, STag: 0xCAFEBABE, RsvdULP: [5]byte{0x42, 9, 9, 9, 9}}
	segs := record(t, &tape{mulpdu: 128}, sized(u, 1000), sized(v, 1000))
	n := 0
	for _, seg := range segs {
		if seg.Control.Tagged() {
			if h := seg.Tagged; h.RsvdULP != 0x42 || h.STag != 0xCAFEBABE {
				t.Errorf("a segment was sent with %+v", h)
			}
			continue
		}
		n++
		if h := seg.Untagged; h.RsvdULP != u.RsvdULP || h.QN != 2 || h.MSN != 1 {
			t.Errorf("a segment was sent with %+v", h)
		}
	}
	if n != 10 || len(segs)-n != 9 {
		t.Errorf("sent as %d untagged and %d tagged segments; want 10 and 9", n, len(segs)-n)
	}
}

func TestMSNStartsAtOneAndCountsPerQueue(t *testing.T) {
	var messages []Message
	for _, qn := range []uint32{0, 1, 0, 0, 2, 1} {
		messages = append(messages, sized(Message{QN: qn}, 200), Message{Tagged: true})
	}
	got := map[uint32][]uint32{}
	for _, seg := range record(t, &tape{mulpdu: 128}, messages...) {
		if h := seg.Untagged; !seg.Control.Tagged() {
			got[h.QN] = append(got[h.QN], h.MSN)
		}
	}
	for qn, want := range map[uint32][]uint32{0: {1, 1, 2, 2, 3, 3}, 1: {1, 1, 2, 2}, 2: {1, 1}} {
		if !slices.Equal(got[qn], want) {
			t.Errorf("queue %d: the segments have MSNs %d; want %d", qn, got[qn], want)
		}
	}
	if messages[6].MSN() != 3 || messages[10].MSN() != 2 {
		t.Errorf("the messages tell MSN %d and %d; want 3 and 2", messages[6].MSN(), messages[10].MSN())
	}
}

func TestZeroLengthMessageIsOneSegment(t *testing.T) {
	both(t, func(t *testing.T, m Message, headerLen int) {
		for _, m := range []Message{m, sized(m, 0)} {
			l := &tape{}
			segs := record(t, l, m)
			if len(segs) != 1 || len(l.segments[0]) != headerLen || !segs[0].Control.Last() {
				t.Errorf("sent as %x", l.segments)
			}
			s := newSinkTest(t, newUpper(nil, []int{0}))
			s.take(l.segments...)
			if s.sink.err != nil || len(s.ulp.got) != 1 || s.ulp.got[0].n != 0 {
				t.Errorf("delivered %+v, %v", s.ulp.got, s.sink.err)
			}
		}
	})
}

func TestMessagesLeaveInTheOrderSubmitted(t *testing.T) {
	var messages []Message
	for i := range 20 {
		m := sized(Message{Tagged: i%3 == 0, QN: uint32(i % 2)}, i*37%400)
		m.RsvdULP[0] = byte(i)
		messages = append(messages, m)
	}
	var order []byte
	for _, seg := range record(t, &tape{mulpdu: 128, room: 3}, messages...) {
		id := seg.Untagged.RsvdULP[0]
		if seg.Control.Tagged() {
			id = seg.Tagged.RsvdULP
		}
		if n := len(order); n == 0 || order[n-1] != id {
			order = append(order, id)
		}
	}
	for i, id := range order {
		if int(id) != i {
			t.Fatalf("the messages left in the order %d", order)
		}
	}
	if len(order) != len(messages) {
		t.Errorf("%d of %d messages left", len(order), len(messages))
	}
}

// What is posted stays as it is; what follows, be it of the same message, fits
// the new MULPDU.
func TestMULPDUChangeAffectsOnlyLaterSegments(t *testing.T) {
	both(t, func(t *testing.T, m Message, headerLen int) {
		l := &tape{mulpdu: 1000, room: 2}
		src := newSource(l, 2)
		m = sized(m, 5000)
		if done, err := src.Send(&m); done || err != nil {
			t.Fatalf("Send = %v, %v", done, err)
		}
		before := []string{string(l.segments[0]), string(l.segments[1])}
		l.mulpdu = 500 // while the third segment waits for room
		send(t, &src, &m)
		l.mulpdu = 2000
		next := sized(Message{QN: 1}, 2100)
		send(t, &src, &next)

		var lengths []int
		var data strings.Builder
		for i, b := range l.segments {
			if i < len(before) && string(b) != before[i] {
				t.Errorf("segment %d was changed after it had been posted", i)
			}
			lengths = append(lengths, len(b))
			data.Write(parse(t, b).Payload)
		}
		var want []int
		for left := 5000 - 2*(1000-headerLen); left > 0; left -= 500 - headerLen {
			want = append(want, min(left+headerLen, 500))
		}
		want = append(append([]int{1000, 1000}, want...), 2000, 2100-(2000-UntaggedHeaderLen)+UntaggedHeaderLen)
		if !slices.Equal(lengths, want) {
			t.Errorf("segments of %d octets were posted; want %d", lengths, want)
		}
		if data.String() != text(5000)+text(2100) {
			t.Error("the segments don't carry the two messages")
		}
	})
}

// An endless is a payload of any length, and an LLP that counts what it gets.
type endless struct {
	LLP
	*testing.T
	tagged   bool
	next     uint64 // offset of the next byte
	segments int
	last     bool
}

var noughts [1 << 20]byte

func (*endless) Gather(pieces [][]byte, _, n uint32) ([][]byte, error) {
	return append(pieces, noughts[:n]), nil
}
func (*endless) Release()     {}
func (*endless) Stable() bool { return true }
func (*endless) MULPDU() int  { return 1 << 20 }

func (e *endless) Post(header []byte, payload [][]byte, _ bool) (bool, error) {
	seg := parse(e, header)
	if off := uint64(seg.Untagged.MO) + seg.Tagged.TO; off != e.next || seg.Control.Tagged() != e.tagged || e.last {
		e.Errorf("a segment begins at %d; want %d", off, e.next)
	}
	e.next += uint64(len(payload[0]))
	e.segments++
	e.last = seg.Control.Last()
	return true, nil
}

func TestMessageOf4GiBIsRefused(t *testing.T) {
	both(t, func(t *testing.T, m Message, headerLen int) {
		m.TO, m.QN = 0, 0
		l := &endless{T: t, tagged: m.Tagged}
		src := newSource(l, 1)
		for _, n := range []uint64{1 << 32, 1<<32 + 1, math.MaxUint64} {
			m := m
			m.Length, m.Payload = n, l
			if done, err := src.Send(&m); done || err == nil || !strings.Contains(err.Error(), "RFC 5041 §5.2") {
				t.Errorf("a message of %d octets: Send = %v, %v", n, done, err)
			}
		}
		if l.segments != 0 {
			t.Errorf("%d segments were posted", l.segments)
		}
		m.Length, m.Payload = 1<<32-1, l
		send(t, &src, &m)
		fit := uint64(1<<20 - headerLen)
		if want := (1<<32 - 1 + fit - 1) / fit; l.next != 1<<32-1 || !l.last || uint64(l.segments) != want {
			t.Errorf("the longest message went as %d octets in %d segments (last: %v); want %d segments", l.next, l.segments, l.last, want)
		}
		if !m.Tagged && m.MSN() != 1 {
			t.Errorf("it has MSN %d: messages that were refused have been counted", m.MSN())
		}
	})
}

func TestReservedBitsAreSentZeroAndIgnored(t *testing.T) {
	for _, seg := range record(t, &tape{mulpdu: 128}, sized(Message{}, 1000), sized(Message{Tagged: true}, 1000)) {
		if seg.Control.Reserved() != 0 {
			t.Errorf("a segment was sent with the reserved bits %#x", seg.Control.Reserved())
		}
	}
	u := newUpper(slices.Repeat([]int{4}, 16))
	tag, mem := u.expose(t, 0, 16)
	s := newSinkTest(t, u)
	for i := range 16 {
		a, b := tagged(tag, uint64(i), true, string(rune('A'+i))), untagged(0, uint32(i+1), 0, true, "x")
		a[0] |= byte(i) << 2
		b[0] |= byte(i) << 2
		s.take(a, b)
	}
	s.wantMessages(slices.Repeat([]string{"x"}, 16)...)
	if string(mem) != "ABCDEFGHIJKLMNOP" || len(u.got) != 32 {
		t.Errorf("placed %q; %d deliveries", mem, len(u.got))
	}
	for i, d := range u.got {
		if c := d.tagged.Control | d.untagged.Control; c.Reserved() != uint8(i/2) {
			t.Errorf("delivery %d has the reserved bits %#x", i, c.Reserved())
		}
	}
}
