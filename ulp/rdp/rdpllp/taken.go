package rdpllp

// A taken says which segments have been placed, by their numbers from 0.
type taken struct {
	next   uint64              // all before it are
	beyond map[uint64]struct{} // and these
}

// ahead bounds how far a segment may be ahead of one that is missing: RDP's window is less.
const ahead = 1 << 18

// near returns the number of which the last 32 bits are given that is nearest to the next one.
func (t *taken) near(number uint32) uint64 {
	return t.next + uint64(int64(int32(number-uint32(t.next))))
}

// order returns the whole number of a segment. It reports false if the segment has been placed, or can't be on its way yet.
func (t *taken) order(number uint32) (uint64, bool) {
	if int32(number-uint32(t.next)) < 0 {
		return 0, false
	}
	n := t.near(number)
	_, again := t.beyond[n]
	return n, !again && n-t.next < ahead
}

// add notes that a segment was placed.
func (t *taken) add(n uint64) {
	if n != t.next {
		if t.beyond == nil {
			t.beyond = map[uint64]struct{}{}
		}
		t.beyond[n] = struct{}{}
		return
	}
	for t.next++; len(t.beyond) > 0; t.next++ {
		if _, ok := t.beyond[t.next]; !ok {
			return
		}
		delete(t.beyond, t.next)
	}
}

// all reports whether all segments are placed of which there are total.
func (t *taken) all(total uint64) bool { return t.next >= total }

// count returns how many segments are placed.
func (t *taken) count() uint64 { return t.next + uint64(len(t.beyond)) }
