package ddp

import (
	"slices"
	"testing"
)

// An octetMap is an extent in plain: one flag a byte.
type octetMap [256]bool

func (m *octetMap) add(from, to uint64) {
	for i := from; i < to; i++ {
		m[i] = true
	}
}

// spans returns the end of what is there from the beginning, and the rest.
func (m *octetMap) spans() (upto uint64, beyond []span) {
	var runs []span
	for i := range uint64(len(m)) {
		if !m[i] {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].to == i {
			runs[n-1].to++
		} else {
			runs = append(runs, span{i, i + 1})
		}
	}
	if len(runs) > 0 && runs[0].from == 0 {
		return runs[0].to, runs[1:]
	}
	return 0, runs
}

// checkExtent adds ranges, pairs of beginning and end, to both and compares.
func checkExtent(t *testing.T, ranges []byte) {
	t.Helper()
	var e extent
	var m octetMap
	for i := 0; i+1 < len(ranges); i += 2 {
		from, to := uint64(min(ranges[i], ranges[i+1])), uint64(max(ranges[i], ranges[i+1]))
		ok := e.add(from, to)
		m.add(from, to)
		upto, beyond := m.spans()
		if ok != (len(beyond) <= maxGaps) {
			t.Fatalf("[%d,%d) with %d gaps: add = %v", from, to, len(beyond), ok)
		}
		if e.upto != upto || !slices.Equal(e.beyond, beyond) {
			t.Fatalf("after [%d,%d): %d and %v; want %d and %v", from, to, e.upto, e.beyond, upto, beyond)
		}
		for end := range uint64(256) {
			if e.is(end) != (upto == end && len(beyond) == 0) {
				t.Fatalf("after [%d,%d): the extent is all up to %d: %v", from, to, end, e.is(end))
			}
		}
		if !ok {
			return
		}
	}
	if e.reset(); !e.is(0) {
		t.Fatalf("after reset: %+v", e)
	}
}

func TestExtentOfRanges(t *testing.T) {
	for _, ranges := range [][]byte{
		{0, 0},
		{0, 5, 5, 9, 9, 10},
		{5, 9, 0, 5},
		{5, 9, 0, 4, 4, 5},
		{5, 9, 20, 22, 11, 13, 9, 11, 13, 20, 0, 5},
		{5, 6, 8, 9, 11, 12, 6, 11, 0, 255},
		{5, 9, 5, 9, 6, 7, 7, 7, 200, 200},
		{5, 9, 0, 6, 3, 20, 20, 20, 21, 22},
		{10, 20, 30, 40, 0, 35},
	} {
		checkExtent(t, ranges)
	}
}

func FuzzExtent(f *testing.F) {
	f.Add([]byte{5, 6, 8, 9, 11, 12, 6, 11, 0, 255})
	var scattered, reverse []byte
	for i := byte(1); i < 140; i += 2 {
		scattered = append(scattered, i, i+1)
		reverse = append(reverse, 254-i, 255-i)
	}
	f.Add(scattered)
	f.Add(reverse)
	f.Fuzz(checkExtent)
}
