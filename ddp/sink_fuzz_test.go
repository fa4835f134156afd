package ddp

import (
	"errors"
	"slices"
	"testing"

	"urnic/stag"
)

// A guarded is a ULP that checks what a sink does with it, whatever the peer
// sends. It has some small buffers in two queues, and one tagged one.
type guarded struct {
	*testing.T
	queues [2][]guardedBuffer
	next   [2]uint32 // MSN of the oldest message that is not delivered
	tagged guardedBuffer
	sink   *Sink
	calls  int

	arrived int  // segments
	decline bool // what Buffer is asked for
}

const (
	guardedSTag stag.STag = 0x100
	guardedTO             = 1 << 32
)

// A guardedBuffer knows which of its bytes were placed.
type guardedBuffer struct {
	*guarded
	placed    []bool
	delivered bool
}

func (b *guardedBuffer) Len() uint64 { return uint64(len(b.placed)) }

func (b *guardedBuffer) Place(off uint32, p []byte) error {
	b.alive()
	if b.delivered {
		b.Error("placed into a buffer that was delivered")
	}
	if len(p) == 0 || uint64(off)+uint64(len(p)) > b.Len() {
		b.Fatalf("%d octets are placed at %d of a buffer of %d", len(p), off, b.Len())
	}
	for i := range p {
		b.placed[int(off)+i] = true
	}
	return nil
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{T: t, next: [2]uint32{1, 1}}
	g.tagged = guardedBuffer{guarded: g, placed: make([]bool, 32)}
	for q, sizes := range [][]int{{16, 8, 0, 24}, {40, 1}} {
		for _, n := range sizes {
			g.queues[q] = append(g.queues[q], guardedBuffer{guarded: g, placed: make([]bool, n)})
		}
	}
	return g
}

// alive checks that the ULP is not called any more after an error.
func (g *guarded) alive() {
	g.calls++
	if g.sink.err != nil {
		g.Errorf("the sink goes on after %v", g.sink.err)
	}
}

func (g *guarded) PlaceTagged(h *TaggedHeader, p []byte) error {
	g.alive()
	if len(p) == 0 {
		g.Error("an empty segment is placed")
	}
	if h.STag != guardedSTag {
		return &Error{Code: CodeInvalidSTag, Clause: "RFC 5041 §7.1"}
	}
	if off := h.TO - guardedTO; off > g.tagged.Len() || uint64(len(p)) > g.tagged.Len()-off {
		return &Error{Code: CodeBaseBounds, Clause: "RFC 5041 §7.1"}
	}
	return g.tagged.Place(uint32(h.TO-guardedTO), p)
}

func (g *guarded) Arrived() { g.arrived++ }

func (g *guarded) Buffer(h *UntaggedHeader, ahead uint32) (Buffer, error) {
	g.alive()
	if g.decline {
		return nil, ErrDeclined
	}
	if h.MSN-g.next[h.QN] != ahead {
		g.Errorf("MSN %d is %d ahead of %d", h.MSN, ahead, g.next[h.QN])
	}
	i := uint64(g.next[h.QN]-1) + uint64(ahead)
	if i >= uint64(len(g.queues[h.QN])) {
		return nil, nil
	}
	return &g.queues[h.QN][i], nil
}

func (g *guarded) Admit(h *UntaggedHeader) error {
	g.alive()
	if h.RsvdULP[0] == 0xFF {
		return errRefused
	}
	return nil
}

var errRefused = errors.New("refused")

func (g *guarded) DeliverTagged(*TaggedHeader, int) error {
	g.alive()
	return nil
}

func (g *guarded) DeliverUntagged(h *UntaggedHeader, length uint32) error {
	g.alive()
	if h.MSN != g.next[h.QN] || !h.Control.Last() {
		g.Errorf("%v is delivered where MSN %d is in turn", h, g.next[h.QN])
	}
	b := &g.queues[h.QN][h.MSN-1]
	if uint64(length) > b.Len() || slices.Contains(b.placed[:length], false) {
		g.Errorf("%v is delivered with %d octets; placed were %v", h, length, b.placed)
	}
	b.delivered = true
	g.next[h.QN]++
	return nil
}

// hostile makes the bytes that fuzz the sink: per segment, how its order
// differs from the number of segments before it, its length, and the segment.
func hostile(orders []int8, segments ...[]byte) (b []byte) {
	for i, seg := range segments {
		b = append(b, byte(orders[i]), byte(len(seg)))
		b = append(b, seg...)
	}
	return b
}

func FuzzSink(f *testing.F) {
	f.Add(hostile([]int8{0, 0, 0, 0},
		untagged(0, 1, 0, false, "0123456789"), untagged(0, 1, 10, true, "abcdef"),
		tagged(guardedSTag, guardedTO, true, "tagged"), untagged(1, 1, 0, true, "other queue")))
	f.Add(hostile([]int8{3, 1, -1, -3, 0},
		untagged(0, 2, 0, true, "12345678"), untagged(0, 1, 10, true, "abcdef"), untagged(0, 1, 5, false, "56789"),
		untagged(0, 1, 0, false, "01234"), untagged(0, 3, 0, true, "")))
	f.Add(hostile([]int8{0, -1, 0, 127, -128},
		untagged(0, 1, 0, true, "1"), untagged(0, 1, 0, true, "1"), untagged(0, 1, 0, true, "1"),
		tagged(guardedSTag, guardedTO+30, true, "123"), untagged(0, 2, 0, false, "1")))
	f.Add(hostile([]int8{1, 0}, untagged(0, 2, 0, true, "early"), untagged(0, 1, 4, true, "hole")))
	f.Fuzz(func(t *testing.T, data []byte) {
		g := newGuarded(t)
		sink := newSink(g, len(g.queues))
		g.sink, sink.window = &sink, 16
		var first error
		for n := int64(0); len(data) >= 2; n++ {
			order := n + int64(int8(data[0])) // as an unsigned number, far ahead if it is negative
			length := min(int(data[1]), len(data)-2)
			seg := slices.Clone(data[2 : 2+length])
			data = data[2+length:]
			before := g.arrived
			if err := declinedFirst(g, seg, uint64(order)); first != nil && err != nil || first == nil && err != sink.err { //nolint:errorlint // the very same
				t.Fatalf("Segment = %v; before it %v, after it %v", err, first, sink.err)
			}
			if g.arrived != before+2 {
				t.Fatalf("the ULP was told of %d segments", g.arrived-before)
			}
			clear(seg) // it is the lower layer's again
			if first == nil && sink.err != nil {
				first = sink.err
				checkHostileError(t, first)
			} else if sink.err != first { //nolint:errorlint // the very same
				t.Fatalf("after %v there is a second error: %v", first, sink.err)
			}
		}
		if n := uint64(len(sink.waiting)); n > sink.window {
			t.Fatalf("%d segments are kept", n)
		}
	})
}

// declinedFirst hands the sink a segment twice, of which the ULP declines the first if it
// is asked. If it is not, the second is another one, that is dropped.
func declinedFirst(g *guarded, seg []byte, order uint64) error {
	g.decline = true
	err := g.sink.Segment(seg, order)
	g.decline = false
	if errors.Is(err, ErrDeclined) {
		return g.sink.Segment(seg, order)
	}
	g.Arrived()
	return err
}

// checkHostileError checks that an error tells the segment it is about.
func checkHostileError(t *testing.T, err error) {
	t.Helper()
	header, segmentLen := []byte(nil), 0
	switch e := err.(type) { //nolint:errorlint // what Receive returns is one of these
	case *Error:
		header, segmentLen = e.Header, e.SegmentLen
		if e.Code == CodeLocalCatastrophic {
			if header != nil {
				t.Errorf("%v has a header", err)
			}
			return
		}
	case *SegmentError:
		header, segmentLen = e.Header, e.SegmentLen
	default:
		t.Fatalf("the sink failed with a %T: %v", err, err)
	}
	seg, perr := ParseSegment(header)
	if perr != nil || len(header) != seg.HeaderLen() || segmentLen < len(header) {
		t.Errorf("%v is about header %x of a segment of %d octets", err, header, segmentLen)
	}
}
