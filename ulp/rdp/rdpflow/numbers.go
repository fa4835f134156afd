package rdpflow

import (
	"slices"

	"urnic/ulp/rdp/wire"
)

// Sequence numbers wrap. Within a connection, the analysis has them as 64-bit numbers that do not:
// the low 32 bits are those of the wire.

// firstNumber is where the 64-bit numbers begin. There is room below, for what comes late.
const firstNumber = 1 << 33

// far is a distance that no two numbers have that are in use at the same time: twice the double of
// the largest window.
const far = 4 * (1<<16 - 1)

// extend returns the 64-bit number for n that is nearest to ref.
func extend(ref uint64, n uint32) uint64 { return ref + uint64(int64(wire.Diff(n, uint32(ref)))) }

// near reports whether two numbers may be in use at the same time.
func near(a, b uint64) bool { return int64(a-b) <= far && int64(b-a) <= far }

// maxSpans bounds the spans of a set.
const maxSpans = 256

// A set is a set of numbers, most of which follow one another.
type set struct{ spans []span }

// A span is a range of numbers, both ends included.
type span struct{ from, to uint64 }

// add adds a number, and reports whether it is new. If there are too many spans, the two lowest
// become one.
func (s *set) add(n uint64) bool {
	i := s.at(n)
	if i < len(s.spans) && s.spans[i].from <= n {
		return false
	}
	before := i > 0 && s.spans[i-1].to+1 == n
	behind := i < len(s.spans) && s.spans[i].from == n+1
	switch {
	case before && behind:
		s.spans[i-1].to = s.spans[i].to
		s.spans = slices.Delete(s.spans, i, i+1)
	case before:
		s.spans[i-1].to = n
	case behind:
		s.spans[i].from = n
	default:
		s.spans = slices.Insert(s.spans, i, span{n, n})
	}
	if len(s.spans) > maxSpans {
		s.spans[1].from = s.spans[0].from
		s.spans = slices.Delete(s.spans, 0, 1)
	}
	return true
}

// at returns the place of the first span that does not end below n.
func (s *set) at(n uint64) int {
	i, _ := slices.BinarySearchFunc(s.spans, n, func(p span, n uint64) int {
		if p.to < n {
			return -1
		}
		return 1
	})
	return i
}

// has reports whether n is in the set.
func (s *set) has(n uint64) bool {
	i := s.at(n)
	return i < len(s.spans) && s.spans[i].from <= n
}

// count returns how many numbers from the first to the last one are in the set.
func (s *set) count(first, last uint64) uint64 {
	n := uint64(0)
	for i := s.at(first); i < len(s.spans) && s.spans[i].from <= last; i++ {
		n += min(s.spans[i].to, last) - max(s.spans[i].from, first) + 1
	}
	return n
}

// forget removes the numbers up to n.
func (s *set) forget(n uint64) {
	i := s.at(n + 1)
	s.spans = slices.Delete(s.spans, 0, i)
	if len(s.spans) > 0 {
		s.spans[0].from = max(s.spans[0].from, n+1)
	}
}

// maxRecent bounds how many numbers of a direction are remembered with what they stood for.
const maxRecent = 1 << 10

// recent remembers what the last numbers stood for.
type recent struct{ slots []sent }

// A sent is what was sent under a number.
type sent struct {
	number uint64
	hash   uint64
	length int
}

// find returns what was sent under a number, or nil if that is not known.
func (r *recent) find(n uint64) *sent {
	if len(r.slots) == 0 {
		return nil
	}
	if s := &r.slots[n%uint64(len(r.slots))]; s.number == n {
		return s
	}
	return nil
}

// put remembers what was sent under a number.
func (r *recent) put(s sent) {
	for {
		n := uint64(len(r.slots))
		if n > 0 {
			slot := &r.slots[s.number%n]
			if slot.number == 0 || slot.number == s.number || n >= maxRecent {
				*slot = s
				return
			}
		}
		old := r.slots
		r.slots = make([]sent, max(4, 2*n))
		for _, o := range old {
			if o.number != 0 {
				r.slots[o.number%uint64(len(r.slots))] = o
			}
		}
	}
}
