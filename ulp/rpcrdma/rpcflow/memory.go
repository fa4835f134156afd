package rpcflow

import (
	"sort"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/stag"
	"urnic/ulp/rpcrdma"
)

// What a region is part of.
type use uint8

const (
	useRead use = iota
	useWrite
	useReply
)

var useNames = [...]string{"Read chunk", "Write chunk", "Reply chunk"}

// A region is a segment of a chunk, while its call is open.
type region struct {
	call *call
	use  use
	seg  rpcrdma.Segment
	span span
	name string // what it is for, human-readable
	full bool   // all of a Read segment was read
}

// holds reports whether n bytes at a place lie in the region, and where.
func (r *region) holds(tag stag.STag, to, n uint64) (offset uint64, ok bool) {
	offset, size := to-r.seg.Offset, uint64(r.seg.Length)
	return offset, r.seg.Handle == tag && offset <= size && n <= size-offset
}

// A piece is a part of a region that was moved.
type piece struct{ from, to uint64 }

// A span says which bytes of a region were moved, and keeps what was in them.
type span struct {
	pieces []piece // in order, apart from each other
	total  uint64  // bytes in them
	data   []byte  // the bytes from 0 on
	thin   bool    // data lacks something that was moved
	many   bool    // there were too many pieces to tell
}

const maxPieces = 256

// add notes that bytes were moved, and keeps them if keep says so and they come in order.
func (s *span) add(from uint64, data []byte, keep func(n int) bool) {
	to := from + uint64(len(data))
	if from == to {
		return
	}
	switch {
	case s.thin:
	case from == uint64(len(s.data)) && keep(len(data)):
		s.data = append(s.data, data...)
	case to <= uint64(len(s.data)): // the same place again
		copy(s.data[from:], data)
	default:
		s.thin = true
	}
	if n := len(s.pieces); n > 0 && s.pieces[n-1].to == from {
		s.pieces[n-1].to = to
		s.total += to - from
		return
	}
	i := sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].to >= from })
	j := i
	for j < len(s.pieces) && s.pieces[j].from <= to {
		from, to = min(from, s.pieces[j].from), max(to, s.pieces[j].to)
		s.total -= s.pieces[j].to - s.pieces[j].from
		j++
	}
	if i == j && len(s.pieces) == maxPieces {
		s.many = true
		return
	}
	s.total += to - from
	s.pieces = append(s.pieces[:i], append([]piece{{from, to}}, s.pieces[j:]...)...)
}

// moved returns how many bytes were moved, and how many of them lie together at the
// front.
func (s *span) moved() (n, front uint64) {
	if len(s.pieces) > 0 && s.pieces[0].from == 0 {
		front = s.pieces[0].to
	}
	return s.total, front
}

// What is looked through and remembered of regions.
const (
	maxShared = 256  // open segments with the same STag
	maxClosed = 4096 // segments of calls that have been answered, in a direction
)

// A memory is what one side has named of its memory.
type memory struct {
	open map[stag.STag][]*region
	// closed says which XID a segment was for; order has them in the order of closing.
	closed map[stag.STag]uint32
	order  []stag.STag
	next   int
	crowd  bool // too many segments share an STag, so that not all accesses can be matched
}

func (m *memory) add(r *region) bool {
	if m.open == nil {
		m.open, m.closed = map[stag.STag][]*region{}, map[stag.STag]uint32{}
	}
	same := m.open[r.seg.Handle]
	if len(same) >= maxShared {
		m.crowd = true
		return false
	}
	m.open[r.seg.Handle] = append(same, r)
	return true
}

// remove closes the regions of a call.
func (m *memory) remove(c *call, a *Analyzer) {
	for _, r := range c.regions {
		tag := r.seg.Handle
		same := m.open[tag]
		kept := same[:0]
		for _, o := range same {
			if o != r {
				kept = append(kept, o)
			}
		}
		clear(same[len(kept):])
		if len(kept) > 0 {
			m.open[tag] = kept
			continue
		}
		delete(m.open, tag)
		if _, again := m.closed[tag]; again || m.makeRoom(tag, a) {
			m.closed[tag] = c.header.XID
		}
	}
}

// makeRoom has an STag remembered, perhaps in place of that which has been there longest.
func (m *memory) makeRoom(tag stag.STag, a *Analyzer) bool {
	switch {
	case len(m.order) < maxClosed && a.past < maxPast:
		a.past++
		m.order = append(m.order, tag)
	case len(m.order) > 0:
		m.next %= len(m.order)
		delete(m.closed, m.order[m.next])
		m.order[m.next] = tag
		m.next++
	default:
		return false
	}
	return true
}

// find returns the region for n bytes at a place, for a Read or a Write, and where in it
// they are. Of several, that whose place was not yet moved comes first.
func (m *memory) find(tag stag.STag, to, n uint64, read bool) (*region, uint64) {
	var found *region
	var at uint64
	for _, r := range m.open[tag] {
		offset, ok := r.holds(tag, to, n)
		if !ok || (r.use == useRead) != read {
			continue
		}
		if _, front := r.span.moved(); front <= offset {
			return r, offset
		}
		if found == nil {
			found, at = r, offset
		}
	}
	return found, at
}

// A touched is memory that was touched, and should not have been.
type touched struct {
	tag  stag.STag
	next uint64 // where it would continue
}

// blame judges an access to memory that no open chunk has named. What continues where the
// last such access ended was blamed with it.
func (c *conn) blame(d *direction, from dissect.Side, at capture.At, what string, tag stag.STag, to, n uint64) {
	m, before := &d.memory, d.touched
	d.touched = touched{tag, to + n}
	if before == (touched{tag, to}) {
		return
	}
	switch same := m.open[tag]; {
	case m.crowd || !d.known:
	case len(same) > 0:
		r := same[0]
		c.r.Violate(ruleMemory, from, at, "%s of %d bytes at STag %v TO 0x%x, where the %s of XID %08x is %s",
			what, n, tag, to, useNames[r.use], r.call.header.XID, segmentString(r.seg))
	default:
		if xid, ok := m.closed[tag]; ok {
			c.r.Violate(ruleAfterReply, from, at, "%s of %d bytes at STag %v TO 0x%x, which was for XID %08x: that has been answered", what, n, tag, to, xid)
			return
		}
		c.r.Violate(ruleMemory, from, at, "%s of %d bytes at STag %v TO 0x%x, which no chunk has named", what, n, tag, to)
	}
}

// Write takes a part of an RDMA Write.
func (c *conn) Write(from dissect.Side, at capture.At, tag stag.STag, to uint64, data []byte) string {
	if len(data) == 0 {
		return "" // it touches nothing, and may be the ready-to-receive indication
	}
	d := &c.dir[1-from]
	r, offset := d.memory.find(tag, to, uint64(len(data)), false)
	if r == nil {
		c.blame(d, from, at, "a Write", tag, to, uint64(len(data)))
		return ""
	}
	r.span.add(offset, data, c.a.keep)
	return r.name
}

// Read takes a Read Request.
func (c *conn) Read(from dissect.Side, at capture.At, tag stag.STag, to uint64, size uint32) (any, string) {
	if size == 0 {
		return nil, ""
	}
	d := &c.dir[1-from]
	r, offset := d.memory.find(tag, to, uint64(size), true)
	if r == nil {
		c.blame(d, from, at, "a Read", tag, to, uint64(size))
		return nil, ""
	}
	return &source{r, offset}, r.name
}

// A source is where in a region a Read began.
type source struct {
	region *region
	offset uint64
}

// ReadData takes a part of what a Read has asked for.
func (c *conn) ReadData(from dissect.Side, at capture.At, src any, offset uint64, data []byte) {
	s, ok := src.(*source)
	if !ok {
		return
	}
	r := s.region
	call := r.call
	if call.closed {
		return
	}
	r.span.add(s.offset+offset, data, c.a.keep)
	if n, _ := r.span.moved(); !r.full && n == uint64(r.seg.Length) {
		r.full = true
		if call.waiting--; call.waiting == 0 {
			c.decodeCall(call, call.inline, at)
		}
	}
}
