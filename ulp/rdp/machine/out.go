package machine

// An outSegment is a numbered segment to the peer: data, or a NUL. SYNs are apart, as they come
// before all others.
type outSegment struct {
	data  []byte // what it carries; nil when it was acknowledged, or for a NUL
	sent  Time   // the last time
	order uint32 // of its last transmission, among all of the connection
	epoch uint32 // of that transmission: what has been acknowledged until then
	prev  uint32 // its neighbours in the list that it is in
	next  uint32
	state outState
	tries uint8 // transmissions; 255 are that or more
	shift uint8 // of the timeout, at the last transmission
	nul   bool
}

// An outState is the state of a segment to the peer.
type outState uint8

const (
	queued  outState = iota // not sent yet
	flying                  // sent; in the list of those in flight
	lost                    // must be sent again; in the list of those
	settled                 // named by an EACK
)

// A list has segments of a connection, joined by their numbers.
type list struct {
	head, tail uint32
	n          int
}

// out are the segments that are not acknowledged: the numbers from SND.UNA to those that are not
// sent yet.
type out struct {
	slots  []outSegment // a power of two, or none
	flying list         // in the order of transmission: the first one has the earliest timeout
	lost   list
}

// at returns the segment with a number, which must be there.
func (o *out) at(number uint32) *outSegment { return &o.slots[number&uint32(len(o.slots)-1)] }

// push puts a segment at the end of a list.
func (o *out) push(l *list, number uint32) {
	s := o.at(number)
	if l.n == 0 {
		l.head = number
	} else {
		o.at(l.tail).next = number
		s.prev = l.tail
	}
	l.tail = number
	l.n++
}

// take removes a segment from a list.
func (o *out) take(l *list, number uint32) {
	s := o.at(number)
	if number == l.head {
		l.head = s.next
	} else {
		o.at(s.prev).next = s.next
	}
	if number == l.tail {
		l.tail = s.prev
	} else {
		o.at(s.next).prev = s.prev
	}
	l.n--
}

// leave removes a segment from the list that it is in, if it is in one.
func (o *out) leave(number uint32) {
	switch o.at(number).state {
	case flying:
		o.take(&o.flying, number)
	case lost:
		o.take(&o.lost, number)
	default:
	}
}

// makeRoom makes room for one more segment after those from una to end.
func (o *out) makeRoom(p *pool, una, end uint32) {
	n := int(end - una)
	if n < len(o.slots) {
		return
	}
	const least = 4
	slots := p.segments.get(max(least, 2*len(o.slots)))
	old := o.slots
	o.slots = slots
	for number := una; number != end; number++ {
		from := &old[number&uint32(len(old)-1)]
		*o.at(number), *from = *from, outSegment{}
	}
	p.segments.put(old)
}

// drop forgets all segments from una to end, and releases the memory.
func (o *out) drop(p *pool, una, end uint32) {
	if len(o.slots) == 0 {
		return
	}
	for number := una; number != end; number++ {
		s := o.at(number)
		p.put(s.data)
		*s = outSegment{}
	}
	p.segments.put(o.slots)
	*o = out{}
}
