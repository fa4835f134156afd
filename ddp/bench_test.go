package ddp

import (
	"fmt"
	"testing"

	"urnic/stag"
)

// A shortcut is a lower layer that costs nothing: it puts the header in front
// of the payload where that lies, and hands the segment to a sink at once.
type shortcut struct {
	LLP
	mulpdu int
	memory []byte // the message, with room for a header before it
	sink   *Sink
	order  uint64
}

const headroom = UntaggedHeaderLen

func (l *shortcut) MULPDU() int { return l.mulpdu }

func (l *shortcut) Post(header []byte, payload [][]byte, _ bool) (bool, error) {
	n := 0
	if len(payload) > 0 {
		n = len(payload[0])
	}
	b := l.memory[headroom-len(header) : headroom+n]
	copy(b, header)
	err := l.sink.Segment(b, l.order)
	l.order++
	return true, err
}

// The message is the same bytes over and over.
func (l *shortcut) Gather(pieces [][]byte, _, n uint32) ([][]byte, error) {
	return append(pieces, l.memory[headroom:headroom+n]), nil
}
func (*shortcut) Release()     {}
func (*shortcut) Stable() bool { return true }

// A basin is a ULP that takes everything into the same memory.
type basin struct {
	upper
	mem       []byte
	delivered int
}

func (b *basin) Len() uint64 { return MaxMessage }

func (b *basin) Place(_ uint32, p []byte) error {
	copy(b.mem, p)
	return nil
}

func (*basin) Arrived()                                         {}
func (b *basin) Buffer(*UntaggedHeader, uint32) (Buffer, error) { return b, nil }
func (b *basin) Admit(*UntaggedHeader) error                    { return nil }

func (b *basin) PlaceTagged(h *TaggedHeader, p []byte) error {
	pin, err := b.table.Acquire(h.STag, b.scope, stag.RemoteWrite, h.TO, uint64(len(p)))
	if err != nil {
		return err
	}
	copy(pin.Bytes(), p)
	pin.Release()
	return nil
}

func (b *basin) DeliverTagged(h *TaggedHeader, _ int) error {
	if h.Control.Last() {
		b.delivered++
	}
	return nil
}

func (b *basin) DeliverUntagged(*UntaggedHeader, uint32) error {
	b.delivered++
	return nil
}

// A course is a stream from a source to a sink.
type course struct {
	src  Source
	sink Sink
	llp  shortcut
	ulp  basin
	msg  Message
}

// newCourse sends messages of that length in segments of that size.
func newCourse(t testing.TB, isTagged bool, mulpdu, length int) *course {
	c := &course{llp: shortcut{mulpdu: mulpdu, memory: make([]byte, headroom+mulpdu)}}
	c.ulp = basin{upper: *newUpper(nil), mem: make([]byte, mulpdu)}
	c.msg = Message{Length: uint64(length), Payload: &c.llp}
	if isTagged {
		tag, _ := c.ulp.expose(t, 1<<32, length)
		c.msg.Tagged, c.msg.STag, c.msg.TO = true, tag, 1<<32
	}
	c.src, c.sink = newSource(&c.llp, 1), newSink(&c.ulp, 1)
	c.llp.sink = &c.sink
	return c
}

// run sends one message.
func (c *course) run(t testing.TB) {
	m := c.msg
	if done, err := c.src.Send(&m); !done || err != nil {
		t.Fatalf("Send = %v, %v", done, err)
	}
}

func kind(isTagged bool) string {
	if isTagged {
		return "tagged"
	}
	return "untagged"
}

func TestSegmentsInOrderCauseNoAllocation(t *testing.T) {
	for _, isTagged := range []bool{false, true} {
		for _, length := range []int{1, 10, 100, 5000} { // up to 46 segments
			c := newCourse(t, isTagged, 128, length)
			m := &c.msg
			allocs := testing.AllocsPerRun(100, func() {
				*m = Message{Tagged: m.Tagged, STag: m.STag, TO: m.TO, Length: m.Length, Payload: m.Payload}
				if done, err := c.src.Send(m); !done || err != nil {
					t.Fatalf("Send = %v, %v", done, err)
				}
			})
			if allocs != 0 || c.ulp.delivered != 101 {
				t.Errorf("%s message of %d octets: %v allocations; %d deliveries", kind(isTagged), length, allocs, c.ulp.delivered)
			}
		}
	}
}

// Segments out of order need memory for what is missing, but not forever more.
func TestSegmentsOutOfOrderCauseNoAllocationInTheLongRun(t *testing.T) {
	ulp := &basin{upper: *newUpper(nil), mem: make([]byte, 1)}
	sink, order, msn := newSink(ulp, 1), uint64(0), uint32(1)
	segment := func(mo uint32, last bool) []byte { return untagged(0, msn, mo, last, "x") }
	a, b, c := segment(0, false), segment(1, false), segment(2, true)
	allocs := testing.AllocsPerRun(1000, func() {
		for _, seg := range [][]byte{a, b, c} {
			seg[10], seg[11], seg[12], seg[13] = byte(msn>>24), byte(msn>>16), byte(msn>>8), byte(msn)
		}
		_ = sink.Segment(c, order+2)
		_ = sink.Segment(b, order+1)
		_ = sink.Segment(a, order)
		order, msn = order+3, msn+1
	})
	if allocs != 0 || sink.err != nil || ulp.delivered != 1001 {
		t.Errorf("%v allocations a message; %d deliveries, %v", allocs, ulp.delivered, sink.err)
	}
}

func BenchmarkSourceAndSink(b *testing.B) {
	for _, isTagged := range []bool{false, true} {
		for _, size := range []int{128, 512, 1448, 4096, 8948, 65482 - 714} { // the last is MPA's longest
			b.Run(fmt.Sprintf("%s/segment=%d", kind(isTagged), size), func(b *testing.B) {
				headerLen := UntaggedHeaderLen
				if isTagged {
					headerLen = TaggedHeaderLen
				}
				const segments = 16
				length := segments * (size - headerLen)
				c := newCourse(b, isTagged, size, length)
				b.SetBytes(int64(length))
				b.ReportAllocs()
				for b.Loop() {
					c.run(b)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*segments), "ns/segment")
			})
		}
	}
}
