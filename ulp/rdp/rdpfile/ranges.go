package rdpfile

import (
	"cmp"
	"slices"
)

// A span is bytes of a file: those from one offset on that are before another one.
type span struct{ from, to int64 }

// ranges are spans in rising order, which do not touch each other.
type ranges []span

// add adds a span.
func (r *ranges) add(from, to int64) {
	if from >= to {
		return
	}
	// The spans that touch it are those from i to j.
	i, _ := slices.BinarySearchFunc(*r, from, func(s span, from int64) int { return cmp.Compare(s.to, from) })
	j := i
	for j < len(*r) && (*r)[j].from <= to {
		from, to = min(from, (*r)[j].from), max(to, (*r)[j].to)
		j++
	}
	*r = slices.Replace(*r, i, j, span{from, to})
}

// end returns where the last span ends.
func (r ranges) end() int64 {
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1].to
}

// whole reports whether they are one span from 0 on, or nothing.
func (r ranges) whole() bool { return len(r) == 0 || len(r) == 1 && r[0].from == 0 }
