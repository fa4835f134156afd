package rdpflow

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rdp/rdpllp/llpwire"
	"urnic/ulp/rdp/wire"
)

const (
	// maxAhead bounds how far a segment may be ahead of one that is missing: RDP's window is less.
	maxAhead = far
	// maxWaiting bounds how many bytes of segments wait for those before them, in all connections.
	maxWaiting = 64 << 20
)

// A turn puts the segments of a direction into the order of their numbers. It also accounts for the numbers of RDP: what
// follows one that is not known may have been sent behind a segment that is not known.
type turn struct {
	taken
	torn    gaps      // numbers of RDP under which something was sent that is not known
	lacks   bool      // there were some
	acked   uint64    // the other side has acknowledged all numbers up to this one
	lacking bool      // some of them are not here,
	since   time.Time // from here on

	counted bool   // next says something
	next    uint64 // the segment that is delivered next
	last    uint64 // the number of RDP of the one before it
	packet  int    // the last one that brought a segment before it
	loose   bool   // some segments before it are not known
	waiting []waiting
	bytes   int // of waiting
}

// A waiting is a segment that waits for those before it.
type waiting struct {
	segment uint64
	number  uint64 // of RDP
	at      capture.At
	body    []byte
}

// taken says which numbers of RDP are accounted for.
type taken struct {
	begun  bool
	done   uint64              // all up to this one
	beyond map[uint64]struct{} // and these
}

// begin says that no number before first matters.
func (t *taken) begin(first uint64) { t.begun, t.done = true, first-1 }

// add accounts for a number. It reports whether that is new.
func (t *taken) add(n uint64) bool {
	if _, again := t.beyond[n]; again || n <= t.done {
		return false
	}
	if t.beyond == nil {
		t.beyond = map[uint64]struct{}{}
	}
	t.beyond[n] = struct{}{}
	for {
		if _, ok := t.beyond[t.done+1]; !ok {
			return true
		}
		t.done++
		delete(t.beyond, t.done)
	}
}

// skip accounts for all numbers up to limit, which is above those that are. It adds those that were missing to torn, and returns
// how many they are.
func (t *taken) skip(limit uint64, torn *gaps) int {
	missing := 0
	gap := func(to uint64) {
		if to > t.done {
			torn.add(span{t.done + 1, to})
			missing += int(to - t.done)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(t.beyond)) {
		if n > limit && n > t.done+1 {
			break
		}
		gap(n - 1)
		t.done = n
		delete(t.beyond, n)
	}
	if gap(limit); t.done < limit {
		t.done = limit
	}
	return missing
}

// gaps are numbers under which something was sent that is not known.
type gaps []span

// add adds some. If there are too many, some that are known count as well.
func (g *gaps) add(s span) {
	if n := len(*g); n > 0 && (*g)[n-1].to+1 == s.from || n >= maxSpans {
		last := &(*g)[n-1]
		last.from, last.to = min(last.from, s.from), max(last.to, s.to)
		return
	}
	*g = append(*g, s)
}

// within reports whether some lie from one number to another.
func (g gaps) within(from, to uint64) bool {
	return slices.ContainsFunc(g, func(s span) bool { return s.from <= to && s.to >= from })
}

// forget removes those up to n.
func (g *gaps) forget(n uint64) {
	if len(*g) > 0 {
		*g = slices.DeleteFunc(*g, func(s span) bool { return s.to <= n })
	}
}

// tear notes that what was sent under a number is not known.
func (t *turn) tear(number uint64) {
	t.lacks = true
	t.torn.add(span{number, number})
}

// segmentNumber returns the whole number of a segment of which the last 32 bits are given. If the capture lacks the first
// segments, what comes first is next.
func (t *turn) segmentNumber(n uint32) uint64 {
	if !t.counted {
		t.counted, t.next = true, firstNumber|uint64(n)
	}
	return t.next + uint64(int64(wire.Diff(n, uint32(t.next))))
}

// has reports whether a segment was there before.
func (t *turn) has(segment uint64) bool {
	if segment < t.next {
		return !t.loose && t.next-segment < maxAhead
	}
	_, found := t.find(segment)
	return found
}

// find returns the place of a segment among those that wait.
func (t *turn) find(segment uint64) (int, bool) {
	return slices.BinarySearchFunc(t.waiting, segment, func(w waiting, n uint64) int {
		switch {
		case w.segment < n:
			return -1
		case w.segment > n:
			return 1
		}
		return 0
	})
}

// put takes a segment that has arrived, and delivers it if it is its turn.
func (p *ddp) put(from dissect.Side, at capture.At, segment, number uint64, body []byte) {
	d := &p.dirs[from]
	w := waiting{segment, number, at, body}
	if len(d.waiting) == 0 && !p.held(from) && !p.hasHead(1-from) && p.turn(from, &w) && p.ready(from, at, &w) {
		p.deliver(from, at, &w)
		return
	}
	w.body = bytes.Clone(body)
	i, _ := d.find(segment)
	d.waiting = slices.Insert(d.waiting, i, w)
	d.bytes += len(body)
	if p.c.a.waiting += len(body); p.c.a.waiting > maxWaiting {
		p.giveUp(from, at, true)
	}
}

// advance delivers what is ready, in the order in which it became so: what one side sends may answer the other one.
func (p *ddp) advance(at capture.At) {
	for {
		from, found := p.head()
		if !found || !p.ready(from, at, &p.dirs[from].waiting[0]) {
			break
		}
		d := &p.dirs[from]
		w := d.waiting[0]
		d.waiting[0].body = nil
		d.waiting = d.waiting[1:]
		d.bytes -= len(w.body)
		p.c.a.waiting -= len(w.body)
		p.deliver(from, at, &w)
	}
	p.finish(dissect.Client, at)
	p.finish(dissect.Server, at)
}

// head returns whose segment is the next one to be delivered of both sides.
func (p *ddp) head() (from dissect.Side, found bool) {
	for i := range p.dirs {
		side := dissect.Side(i)
		if p.hasHead(side) && (!found || p.dirs[side].complete() < p.dirs[from].complete()) {
			from, found = side, true
		}
	}
	return from, found
}

// hasHead reports whether it is the turn of a segment of a side that waits.
func (p *ddp) hasHead(side dissect.Side) bool {
	d := &p.dirs[side]
	return len(d.waiting) > 0 && !p.held(side) && p.turn(side, &d.waiting[0])
}

// complete returns the packet that completed the first segment that waits, and all before it.
func (t *turn) complete() int { return max(t.packet, t.waiting[0].at.Packet) }

// held reports whether what a side sends has to wait, as it may answer something of the other side that is still to come.
func (p *ddp) held(from dissect.Side) bool { return p.dirs[1-from].lacking && !p.over }

// ready reports whether a segment whose turn it is can be delivered: nothing that the capture may lack makes it look wrong.
func (p *ddp) ready(from dissect.Side, at capture.At, w *waiting) bool {
	if p.c.a.Complete || !p.d.Doubtful(from, w.body) || p.whole(1-from) {
		return true
	}
	// If the other side has sent something that explains it, an acknowledgement tells soon.
	return !p.over && at.Time.Sub(w.at.Time) >= settleAfter && len(p.dirs[1-from].beyond) == 0
}

// whole reports whether the capture has all that a side has sent: its end tells, or the number of its RST.
func (p *ddp) whole(from dissect.Side) bool {
	d, c := &p.dirs[from], &p.c.dirs[from]
	return d.end != nil && d.end.number <= d.done || c.rst && c.rstNumber <= d.done+1
}

// turn reports whether it is a segment's turn: it is the next one, or those between were not captured, or not sent.
func (p *ddp) turn(from dissect.Side, w *waiting) bool {
	d := &p.dirs[from]
	if w.segment == d.next && p.started(from) != nil {
		return true
	}
	return w.number <= d.done && (w.segment == d.next || d.torn.within(d.last+1, w.number) || p.over || d.end != nil && d.end.number <= d.done)
}

// deliver delivers a segment.
func (p *ddp) deliver(from dissect.Side, now capture.At, w *waiting) {
	d := &p.dirs[from]
	gap := d.torn.within(d.last+1, w.number)
	switch {
	case w.segment != d.next && !gap && !d.loose:
		p.c.r.Violate(ruleDDPNumber, from, w.at, "segment %d, where %d is next, and nothing was sent between the two", uint32(w.segment), uint32(d.next))
		p.lose(from)
	case w.segment != d.next:
		p.lose(from)
	case d.next == 0 && !gap && p.started(from) == nil && !d.toldOrder && p.known():
		d.toldOrder = true
		p.c.r.Violate(ruleDDPOrder, from, w.at, "the first message of the %v is segment 0, and none of start-up", from)
	}
	d.next, d.last = w.segment+1, max(d.last, w.number)
	d.packet = max(d.packet, w.at.Packet)
	d.torn.forget(d.last)
	p.d.Deliver(from, w.at, now, w.segment, w.body)
}

// lose takes notice of segments that are not known.
func (p *ddp) lose(from dissect.Side) {
	p.dirs[from].loose = true
	p.d.Lose(from)
}

// acknowledges takes what a segment acknowledges.
func (p *ddp) acknowledges(from dissect.Side, s *Segment) {
	if !s.has(wire.ACK) || s.has(wire.RST) {
		return
	}
	o, d := &p.c.dirs[1-from], &p.dirs[1-from]
	if n := extend(o.ref, s.Header.Ack); near(n, o.ref) {
		d.acked = max(d.acked, n)
	}
}

// lacks looks for what the other side has acknowledged and the capture does not have. It may be out of order.
func (p *ddp) lacks(at capture.At) {
	for i := range p.dirs {
		d := &p.dirs[i]
		switch acked := d.acked; {
		case !d.begun || acked <= d.done || p.c.a.Complete && acked >= p.c.dirs[i].next:
			d.lacking = false
		case !d.lacking && !p.c.a.Complete:
			d.lacking, d.since = true, at.Time
		case p.c.a.Complete || at.Time.Sub(d.since) >= settleAfter:
			p.giveUp(dissect.Side(i), at, false)
		}
	}
}

// giveUp gives up the numbers that the other side has acknowledged, or all.
func (p *ddp) giveUp(from dissect.Side, at capture.At, all bool) {
	d := &p.dirs[from]
	d.lacking = false
	limit := d.acked
	if all {
		limit = 0 // at the end, what was acknowledged and not sent is another rule's
		for i := range d.waiting {
			limit = max(limit, d.waiting[i].number)
		}
		if d.end != nil {
			limit = max(limit, d.end.number)
		}
		if d.acked < p.c.dirs[from].next {
			limit = max(limit, d.acked)
		}
	}
	if !d.begun || d.done >= limit {
		return
	}
	missing := d.skip(limit, &d.torn)
	if missing == 0 {
		return
	}
	d.lacks = true
	p.c.r.Lacks(missing * llpwire.Overhead)
	p.c.r.Note(from, at, "what the %v has sent under %s of RDP was not captured", from, count(uint64(missing), "number"))
	p.lose(from)
}
