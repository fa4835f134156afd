package ddp

import "slices"

// maxGaps bounds how scattered the segments of a message may arrive. Senders
// "SHOULD transmit … in increasing MO order" (RFC 5041 §5.3), so that there are
// no gaps.
const maxGaps = 64

// An extent is the part of a message that has been placed: all bytes up to
// upto, and ranges beyond, disjoint and in order.
type extent struct {
	upto   uint64
	beyond []span
}

type span struct{ from, to uint64 }

// add adds the bytes from from up to to, and reports whether there are not too
// many gaps.
func (e *extent) add(from, to uint64) bool {
	if from <= e.upto && len(e.beyond) == 0 { // the only case with a sender that conforms to §5.3
		e.upto = max(e.upto, to)
		return true
	}
	if from == to {
		return true
	}
	i, _ := slices.BinarySearchFunc(e.beyond, from, func(s span, from uint64) int {
		if s.to < from {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(e.beyond) && e.beyond[j].from <= to; j++ {
		from, to = min(from, e.beyond[j].from), max(to, e.beyond[j].to)
	}
	e.beyond = slices.Replace(e.beyond, i, j, span{from, to})
	if e.beyond[0].from <= e.upto {
		e.upto = max(e.upto, e.beyond[0].to)
		e.beyond = slices.Delete(e.beyond, 0, 1)
	}
	return len(e.beyond) <= maxGaps
}

// is reports whether the extent is exactly the bytes up to end.
func (e *extent) is(end uint64) bool { return e.upto == end && len(e.beyond) == 0 }

func (e *extent) reset() { e.upto, e.beyond = 0, e.beyond[:0] }
