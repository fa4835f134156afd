package rxflow

import "slices"

// maxHoles bounds the holes that are remembered of a series.
const maxHoles = 64

// A series is a set of numbers that should all come, from 1 on, in any order.
type series struct {
	high  uint32 // the highest one that came; 0 before the first
	holes []span // below high, in order
	lost  uint32 // holes up to here are forgotten
}

// A span is a range of numbers, both ends included.
type span struct{ from, to uint32 }

// add adds a number, and reports whether it is new.
func (s *series) add(n uint32) bool {
	if n == 0 {
		return false
	}
	if n > s.high {
		if n > s.high+1 {
			s.holes = append(s.holes, span{s.high + 1, n - 1})
		}
		s.high = n
		s.forget()
		return true
	}
	i, _ := slices.BinarySearchFunc(s.holes, n, func(h span, n uint32) int {
		if h.to < n {
			return -1
		}
		return 1
	})
	if i == len(s.holes) || s.holes[i].from > n {
		return false
	}
	h := s.holes[i]
	switch {
	case h.from == h.to:
		s.holes = slices.Delete(s.holes, i, i+1)
	case n == h.from:
		s.holes[i].from++
	case n == h.to:
		s.holes[i].to--
	default:
		s.holes = slices.Insert(s.holes, i+1, span{n + 1, h.to})
		s.holes[i].to = n - 1
		s.forget()
	}
	return true
}

// forget lets go of the lowest hole if there are too many.
func (s *series) forget() {
	if len(s.holes) > maxHoles {
		s.lost = s.holes[0].to
		s.holes = slices.Delete(s.holes, 0, 1)
	}
}

// has reports whether a number came, as far as that is remembered.
func (s *series) has(n uint32) bool {
	if n == 0 || n > s.high {
		return false
	}
	return !slices.ContainsFunc(s.holes, func(h span) bool { return h.from <= n && n <= h.to })
}

// next is the lowest number that has not come.
func (s *series) next() uint32 {
	if len(s.holes) > 0 {
		return s.holes[0].from
	}
	return s.high + 1
}

// missing is the highest number below high that has not come; 0 if there is none.
func (s *series) missing() uint32 {
	if n := len(s.holes); n > 0 {
		return s.holes[n-1].to
	}
	return s.lost
}

// maxRecent bounds how many numbers of a direction are remembered with what they stood for.
const maxRecent = 256

// recent remembers what the last numbers stood for.
type recent struct{ slots []sent }

// A sent is something that was sent under a number.
type sent struct {
	number  uint32
	hash    uint64
	partial bool // the capture has only a part of it
	ping    bool // it asks for a ping response
}

// find returns what was sent under a number, or nil if that is not known.
func (r *recent) find(n uint32) *sent {
	if len(r.slots) == 0 {
		return nil
	}
	if s := &r.slots[n%uint32(len(r.slots))]; s.number == n && n != 0 {
		return s
	}
	return nil
}

// put remembers what was sent under a number.
func (r *recent) put(s sent) {
	for {
		n := uint32(len(r.slots))
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
				r.slots[o.number%uint32(len(r.slots))] = o
			}
		}
	}
}
