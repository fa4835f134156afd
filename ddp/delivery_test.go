package ddp

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"urnic/ddp/ddptest"
	"urnic/stag"
)

// A link is two streams; messages go from a to b.
type link struct {
	testing.TB
	llpA, llpB *ddptest.LLP
	a, b       *Stream
	ulpA, ulpB *upper
}

// newLink links a sender with the ULP u.
func newLink(t testing.TB, o ddptest.Options, u *upper) *link {
	l := &link{TB: t, ulpA: newUpper(slices.Repeat([][]int{{64, 64}}, len(u.queues))...), ulpB: u}
	l.llpA, l.llpB = ddptest.Pair(o)
	l.a = NewStream(l.llpA, l.ulpA, len(u.queues))
	l.b = NewStream(l.llpB, l.ulpB, len(u.queues))
	return l
}

// send sends messages and receives all that comes of them.
func (l *link) send(messages ...Message) {
	l.Helper()
	for i := range messages {
		send(l, &l.a.Source, &messages[i])
	}
	if _, err := l.llpA.Flush(true); err != nil {
		l.Fatal(err)
	}
	l.receive()
}

// receive receives what has arrived.
func (l *link) receive() {
	l.Helper()
	for l.llpB.Waiting() > 0 {
		if err := take(l.b); err != nil {
			l.Fatal(err)
		}
	}
}

func TestAllDataOfAMessageIsSentAndPlaced(t *testing.T) {
	lengths := []int{0, 1, 13, 109, 110, 111, 113, 114, 115, 1000, 70000}
	u := newUpper(lengths)
	tag, mem := u.expose(t, 1<<40, 80000)
	l := newLink(t, ddptest.Options{MULPDU: 128, Room: 5}, u)
	for _, n := range lengths {
		l.send(sized(Message{}, n))
		l.send(sized(Message{Tagged: true, STag: tag, TO: 1<<40 + 1}, n))
		if got := string(mem[1 : 1+n]); got != text(n) {
			t.Errorf("%d octets: placed %.100q", n, got)
		}
		if mem[0] != 0 || mem[1+n] != 0 {
			t.Errorf("%d octets: something was placed beside them", n)
		}
		clear(mem)
	}
	for i, got := range u.messages() {
		if got != text(lengths[i]) {
			t.Errorf("%d octets: delivered %.100q", lengths[i], got)
		}
	}
	if len(u.messages()) != len(lengths) {
		t.Errorf("%d of %d messages were delivered", len(u.messages()), len(lengths))
	}
}

func TestDeliveryReportsTheHeaderFields(t *testing.T) {
	u := newUpper(nil, nil, []int{300, 300})
	tag, _ := u.expose(t, 0, 1000)
	l := newLink(t, ddptest.Options{MULPDU: 128}, u)
	l.send(
		sized(Message{QN: 2, RsvdULP: [5]byte{1, 2, 3, 4, 5}}, 300),
		sized(Message{Tagged: true, STag: tag, TO: 100, RsvdULP: [5]byte{6}}, 200),
		Message{Tagged: true, STag: 7, TO: 8, RsvdULP: [5]byte{9}},
		Message{QN: 2, RsvdULP: [5]byte{5, 4, 3, 2, 1}},
	)
	want := []delivery{
		{untagged: UntaggedHeader{0x41, [5]byte{1, 2, 3, 4, 5}, 2, 1, 220}, n: 300, data: text(300)},
		{tagged: TaggedHeader{0x81, 6, tag, 100}, n: 114},
		{tagged: TaggedHeader{0xC1, 6, tag, 214}, n: 86},
		{tagged: TaggedHeader{0xC1, 9, 7, 8}},
		{untagged: UntaggedHeader{0x41, [5]byte{5, 4, 3, 2, 1}, 2, 2, 0}},
	}
	if !slices.Equal(u.got, want) {
		t.Errorf("delivered %+v; want %+v", u.got, want)
	}
}

func TestUntaggedDeliveryReportsTheMessageLength(t *testing.T) {
	for _, n := range []uint32{0, 1, 109, 110, 111, 5000} {
		u := newUpper([]int{6000})
		l := newLink(t, ddptest.Options{MULPDU: 128}, u)
		l.send(sized(Message{}, int(n)))
		if len(u.got) != 1 || u.got[0].n != n {
			t.Errorf("a message of %d octets was delivered as %+v", n, u.got)
		}
	}
}

// permutations goes through the orders of 0 to n-1.
func permutations(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var permute func(done, left []int) bool
		permute = func(done, left []int) bool {
			if len(left) == 0 {
				return yield(done)
			}
			for i, x := range left {
				if !permute(append(slices.Clone(done), x), slices.Delete(slices.Clone(left), i, i+1)) {
					return false
				}
			}
			return true
		}
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		permute(nil, all)
	}
}

// A mixture is three messages in six segments, with a ULP that has buffers for
// them.
type mixture struct {
	*sinkTest
	segments  [][]byte
	mem       []byte
	delivered []string // what the ULP is told when all segments up to this one are in
}

func newMixture(t testing.TB) *mixture {
	u := newUpper([]int{6, 6})
	tag, mem := u.expose(t, 0, 8)
	return &mixture{sinkTest: newSinkTest(t, u), mem: mem, segments: [][]byte{
		untagged(0, 1, 0, false, "one"),
		untagged(0, 1, 3, true, "1"),
		tagged(tag, 0, false, "tag"),
		tagged(tag, 3, true, "2"),
		untagged(0, 2, 0, false, "three"),
		untagged(0, 2, 5, true, ""),
	}, delivered: []string{"", "one1", "tag at 0", "2 at 3", "", "three"}}
}

// told returns what the ULP was told, in the words of delivered.
func (m *mixture) told() string {
	var b strings.Builder
	for _, d := range m.ulp.got {
		if h := d.tagged; h.Control.Tagged() {
			fmt.Fprintf(&b, "%s at %d;", m.mem[h.TO:h.TO+uint64(d.n)], h.TO)
		} else {
			b.WriteString(d.data + ";")
		}
	}
	return b.String()
}

// want returns what it should have been told when some segments are in.
func (m *mixture) want(in []int) string {
	var b strings.Builder
	for i := 0; slices.Contains(in, i); i++ {
		if s := m.delivered[i]; s != "" {
			b.WriteString(s + ";")
		}
	}
	return b.String()
}

// Placement is in any order that the LLP likes; delivery is not.
func TestMessageIsDeliveredOnlyWhenWholeAndInTurn(t *testing.T) {
	for order := range permutations(6) {
		m := newMixture(t)
		placed := 0
		for i, x := range order {
			_ = m.sink.Segment(m.segments[x], uint64(x))
			if got, want := m.told(), m.want(order[:i+1]); got != want {
				t.Fatalf("after the segments %d the ULP was told %q; want %q (%v)", order[:i+1], got, want, m.sink.err)
			}
			if placed += len(parse(t, m.segments[x]).Payload); m.ulp.placed != placed {
				t.Fatalf("after the segments %d, %d octets were placed; want %d", order[:i+1], m.ulp.placed, placed)
			}
		}
	}

	t.Run("never whole", func(t *testing.T) {
		s := newSinkTest(t, newUpper([]int{6}))
		s.take(untagged(0, 1, 0, false, "one"), untagged(0, 1, 3, false, "1"))
		s.wantMessages()
	})
	t.Run("with a hole", func(t *testing.T) {
		s := newSinkTest(t, newUpper([]int{6}))
		b := untagged(0, 1, 4, true, "1")
		s.take(untagged(0, 1, 0, false, "one"), b)
		s.wantError(CodeInvalidMO, b)
		if len(s.ulp.got) != 0 {
			t.Errorf("delivered %+v", s.ulp.got)
		}
	})
}

// The LLP may repeat a segment as long as it has not passed all before it
// (RFC 5041 §3 rule 11), and this holds even if it breaks that rule.
func TestMessagesAreDeliveredOnceAndInOrder(t *testing.T) {
	for order := range permutations(6) {
		m := newMixture(t)
		for i, x := range order {
			for _, again := range append([]int{x}, order[:i+1]...) {
				_ = m.sink.Segment(m.segments[again], uint64(again))
			}
			if got, want := m.told(), m.want(order[:i+1]); got != want {
				t.Fatalf("after the segments %d the ULP was told %q; want %q (%v)", order[:i+1], got, want, m.sink.err)
			}
		}
		if m.sink.err != nil || len(m.sink.waiting) != 0 {
			t.Fatalf("order %d: %d segments wait, %v", order, len(m.sink.waiting), m.sink.err)
		}
	}
}

// What is delivered is the ULP's again: a repeated segment does not touch it.
func TestRepeatedSegmentDoesNotTouchADeliveredBuffer(t *testing.T) {
	s := newSinkTest(t, newUpper([]int{4}))
	_ = s.sink.Segment(untagged(0, 1, 0, true, "once"), 0)
	copy(s.ulp.queues[0][0].mem, "mine")
	calls := s.ulp.calls
	_ = s.sink.Segment(untagged(0, 1, 0, true, "once"), 0)
	if got := string(s.ulp.queues[0][0].mem); got != "mine" || s.ulp.calls != calls || s.sink.err != nil {
		t.Errorf("the buffer holds %q; %d calls; %v", got, s.ulp.calls-calls, s.sink.err)
	}
}

func TestULPErrorAtDeliveryNamesItsSegment(t *testing.T) {
	m := newMixture(t)
	m.ulp.deliver = func(d *delivery) error {
		if d.data == "one1" {
			return &Error{Code: CodeInvalidMO, Clause: "RFC 5041 §7.1", Reason: "the ULP does not like it"}
		}
		return nil
	}
	for _, x := range []int{5, 1, 3, 4, 2, 0} { // the first segment completes all of them
		_ = m.sink.Segment(m.segments[x], uint64(x))
	}
	m.wantError(CodeInvalidMO, m.segments[1])
	if got := m.told(); got != "one1;" {
		t.Errorf("the ULP was told %q", got)
	}
}

func TestSegmentBeyondTheWindowEndsReception(t *testing.T) {
	for _, ahead := range []uint64{DefaultWindow, DefaultWindow + 1, 1<<64 - 1} {
		u := newUpper([]int{4, 4, 4})
		s := newSinkTest(t, u)
		s.take(untagged(0, 1, 0, true, "a"))
		b := untagged(0, 3, 0, true, "c")
		_ = s.sink.Segment(b, max(1+ahead, ahead))
		if ahead <= DefaultWindow {
			s.wantMessages("a")
			continue
		}
		s.wantError(CodeLocalCatastrophic, b)
		if u.placed != 1 {
			t.Errorf("%d octets were placed", u.placed)
		}
	}
}

func TestWholeWindowInReverseOrder(t *testing.T) {
	u := newUpper([]int{DefaultWindow + 1})
	s := newSinkTest(t, u)
	msg := text(DefaultWindow + 1)
	for i := DefaultWindow; i >= 0; i-- {
		_ = s.sink.Segment(untagged(0, 1, uint32(i), i == DefaultWindow, msg[i:i+1]), uint64(i))
	}
	s.wantMessages(msg)
	if len(s.sink.waiting) != 0 {
		t.Errorf("%d segments are still kept", len(s.sink.waiting))
	}
}

// verdict says what becomes of the first segment of a stream whose ULP has one
// queue with two buffers of 16 bytes, and 64 bytes at lowBase under tag.
func verdict(b []byte, tag stag.STag) (code Code, fails, placed bool) {
	n := uint64(len(b))
	switch {
	case n == 0, b[0]&0x80 != 0 && n < 14, b[0]&0x80 == 0 && n < 18:
		return CodeLocalCatastrophic, true, false
	case b[0]&0x80 != 0:
		n -= 14
		to := binary.BigEndian.Uint64(b[6:])
		switch {
		case b[0]&3 != 1:
			return CodeTaggedVersion, true, false
		case n == 0:
			return 0, false, true
		case binary.BigEndian.Uint32(b[2:]) != uint32(tag):
			return CodeInvalidSTag, true, false
		case to < lowBase || to+n > lowBase+64:
			return CodeBaseBounds, true, false
		}
		return 0, false, true
	}
	n -= 18
	qn, msn, mo := binary.BigEndian.Uint32(b[6:]), binary.BigEndian.Uint32(b[10:]), uint64(binary.BigEndian.Uint32(b[14:]))
	switch {
	case b[0]&3 != 1:
		return CodeUntaggedVersion, true, false
	case qn != 0:
		return CodeInvalidQN, true, false
	case msn == 0 || msn > 1<<31:
		return CodeMSNRange, true, false
	case msn > 2:
		return CodeMSNNoBuffer, true, false
	case n > 0 && mo > 16:
		return CodeInvalidMO, true, false
	case n > 0 && mo+n > 16:
		return CodeMessageTooLong, true, false
	case msn == 2:
		return CodeMSNRange, true, false
	case b[0]&0x40 != 0 && mo != 0:
		return CodeInvalidMO, true, true // there is a gap before it
	}
	return 0, false, true
}

func TestEveryChangeOfAHeaderOctet(t *testing.T) {
	for _, isTagged := range []bool{false, true} {
		for _, payload := range []string{"", "payload"} {
			u := newUpper([]int{16, 16})
			tag, mem := u.expose(t, lowBase, 64)
			valid := untagged(0, 1, 0, true, payload)
			if isTagged {
				valid = tagged(tag, lowBase+8, true, payload)
			}
			try := func(b []byte) {
				t.Helper()
				u.got, u.placed, u.delivered[0] = nil, 0, 0
				clear(mem)
				s := newSinkTest(t, u)
				s.take(b)
				code, fails, placed := verdict(b, tag)
				if !placed && u.placed > 0 {
					t.Errorf("%x: %d octets were placed", b, u.placed)
				}
				if fails {
					if s.wantError(code, b); len(u.got) != 0 {
						t.Errorf("%x: %d deliveries", b, len(u.got))
					}
					return
				}
				seg := parse(t, b)
				if s.sink.err != nil || u.placed != len(seg.Payload) {
					t.Errorf("%x: %d octets were placed, %v", b, u.placed, s.sink.err)
				}
				want := []delivery{{tagged: seg.Tagged, n: uint32(len(seg.Payload))}}
				if !seg.Control.Tagged() {
					want = []delivery{{untagged: seg.Untagged, n: uint32(len(seg.Payload)), data: string(seg.Payload)}}
					if !seg.Control.Last() {
						want = nil
					}
				}
				if !slices.Equal(u.got, want) {
					t.Errorf("%x: delivered %+v; want %+v", b, u.got, want)
				}
			}
			for i := range len(valid) - len(payload) {
				for v := range 256 {
					b := slices.Clone(valid)
					b[i] = byte(v)
					try(b)
				}
			}
			for i := range len(valid) + 1 {
				try(valid[:i])
			}
		}
	}
}
