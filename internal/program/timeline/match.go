package timeline

import (
	"time"

	"urnic/rnic"
	"urnic/rnic/rnictimeline"
)

// A pending is a request that is being matched.
type pending struct {
	Request
	messages int // that it sends, or that its completion stands for
	hidden   bool
	conn     *connection
	sent     int // index of its last message among those sent; -1
}

// An epoch is one connection of a queue pair.
type epoch struct {
	start time.Time // the zero Time for the first
	conn  *connection
	// delivered are the times of messages by class.
	delivered map[class][]time.Time
}

// A queuePair is what is known of one.
type queuePair struct {
	epochs    []*epoch
	sends     []*pending
	next      int // of sends: the first that was not polled
	received  []*pending
	posted    map[uint64][]*pending // receives, by ID, that no completion is known of
	delivered []rnictimeline.Event
}

// A matcher matches the events of a process with its recording.
type matcher struct {
	start  time.Time
	wire   *wire
	qps    map[uint32]*queuePair
	order  []uint32                      // of qps
	shared map[uint64][]*pending         // receives in SRQs, by ID
	local  map[uint32]rnictimeline.Event // LocalAddr that waits for its RemoteAddr
	all    []*pending
	bad    int
}

func newMatcher(start time.Time, w *wire) *matcher {
	return &matcher{start: start, wire: w, qps: map[uint32]*queuePair{}, shared: map[uint64][]*pending{}, local: map[uint32]rnictimeline.Event{}}
}

func (m *matcher) qp(num uint32) *queuePair {
	q := m.qps[num]
	if q == nil {
		q = &queuePair{posted: map[uint64][]*pending{}}
		m.qps[num] = q
		m.order = append(m.order, num)
	}
	return q
}

// since is a time of the timeline.
func (m *matcher) since(t time.Time) time.Duration { return t.Sub(m.start) }

func (m *matcher) newPending(e *rnictimeline.Event) *pending {
	p := &pending{Request: Request{QPN: e.QPN, Op: e.Op, ID: e.ID, Length: e.Length}, messages: int(e.Messages), hidden: e.Hidden, sent: -1}
	for i := range p.Times {
		p.Times[i] = None
	}
	return p
}

// event takes an event. They come in the order of their times.
func (m *matcher) event(e *rnictimeline.Event) {
	switch e.Kind {
	case rnictimeline.PostedSend:
		p, q := m.newPending(e), m.qp(e.QPN)
		p.Times[Posted] = m.since(e.Time)
		q.sends = append(q.sends, p)
		m.all = append(m.all, p)
	case rnictimeline.PostedRecv, rnictimeline.PostedShared:
		p := m.newPending(e)
		p.Recv, p.Times[Posted] = true, m.since(e.Time)
		queue := m.shared
		if e.Kind == rnictimeline.PostedRecv {
			queue = m.qp(e.QPN).posted
		}
		queue[e.ID] = append(queue[e.ID], p)
		m.all = append(m.all, p)
	case rnictimeline.Polled:
		m.polled(e)
	case rnictimeline.Delivered:
		q := m.qp(e.QPN)
		q.delivered = append(q.delivered, *e)
	case rnictimeline.LocalAddr:
		m.local[e.QPN] = *e
	case rnictimeline.RemoteAddr:
		local := m.local[e.QPN]
		q := m.qp(e.QPN)
		x := &epoch{start: e.Time, conn: m.wire.take(local.Addr.String(), e.Addr.String()), delivered: map[class][]time.Time{}}
		if x.conn != nil {
			x.start = x.conn.start
		}
		if len(q.epochs) == 0 {
			x.start = time.Time{}
		}
		q.epochs = append(q.epochs, x)
	}
}

func (m *matcher) polled(e *rnictimeline.Event) {
	q := m.qp(e.QPN)
	var p *pending
	if e.Op == rnic.OpRecv || e.Op == rnic.OpRecvImmediate {
		if p = takeFirst(q.posted, e.ID); p == nil {
			p = takeFirst(m.shared, e.ID)
		}
		if p == nil { // posted before it was recorded
			p = m.newPending(e)
			p.Recv = true
			m.all = append(m.all, p)
		}
		p.QPN, p.Op, p.messages = e.QPN, e.Op, int(e.Messages)
		if !e.Failed {
			p.Length = e.Length
			q.received = append(q.received, p)
		}
	} else {
		for i := q.next; i < len(q.sends); i++ {
			if s := q.sends[i]; s.ID == e.ID && !s.hidden {
				p, q.next = s, i+1
				break
			}
		}
		if p == nil {
			return
		}
	}
	p.Times[Polled], p.Failed = m.since(e.Time), e.Failed
}

// takeFirst takes the oldest request with an ID out.
func takeFirst(queue map[uint64][]*pending, id uint64) *pending {
	list := queue[id]
	if len(list) == 0 {
		return nil
	}
	if queue[id] = list[1:]; len(list) == 1 {
		delete(queue, id)
	}
	return list[0]
}

// finish matches requests with messages, once all events are there.
func (m *matcher) finish() {
	for _, num := range m.order {
		q := m.qps[num]
		if len(q.epochs) == 0 {
			continue
		}
		for i := range q.delivered {
			e := &q.delivered[i]
			x := q.epoch(e.Time)
			c := classOf(e.RDMAP)
			x.delivered[c] = append(x.delivered[c], e.Time)
		}
		for i, x := range q.epochs {
			if x.conn == nil {
				continue
			}
			var sends, received []*pending
			for _, p := range q.sends {
				if q.epochs[i] == q.epoch(m.start.Add(p.Times[Posted])) {
					sends = append(sends, p)
				}
			}
			for _, p := range q.received {
				if q.epochs[i] == q.epoch(m.start.Add(p.Times[Polled])) {
					received = append(received, p)
				}
			}
			m.matchSends(x, sends)
			m.matchReceives(x, received)
		}
	}
}

// epoch returns the connection that there was at a time.
func (q *queuePair) epoch(t time.Time) *epoch {
	x := q.epochs[0]
	for _, later := range q.epochs[1:] {
		if !t.Before(later.start) {
			x = later
		}
	}
	return x
}

// matchSends gives the requests of a send queue their messages, in order.
func (m *matcher) matchSends(x *epoch, sends []*pending) {
	out := indexes(x.conn.sent(), class.isRequest)
	in := x.conn.received()
	responses := map[class][]int{
		readRequest:   indexes(in, func(c class) bool { return c == readResponse }),
		atomicRequest: indexes(in, func(c class) bool { return c == atomicResponse }),
	}
	used := map[class]int{}
	for i, p := range sends {
		if p.messages == 0 {
			continue
		}
		if len(out) < p.messages {
			return // they did not get that far
		}
		first, last := x.conn.sent()[out[0]], x.conn.sent()[out[p.messages-1]]
		c := first.class
		if c != classOfRequest(p.Op) { // the recording lacks something
			m.bad += len(sends) - i
			return
		}
		p.conn, p.sent = x.conn, out[p.messages-1]
		out = out[p.messages:]
		p.Times[FirstOut], p.Times[LastOut] = m.since(first.first), m.since(last.last)
		list, awaits := responses[c]
		if !awaits {
			p.Times[Completed] = p.Times[LastOut]
			continue
		}
		from := used[c]
		used[c] += p.messages
		if used[c] <= len(list) {
			p.Times[FirstIn], p.Times[Placed] = m.since(in[list[from]].first), m.since(in[list[used[c]-1]].last)
		}
		answer := readResponse
		if c == atomicRequest {
			answer = atomicResponse
		}
		if done := x.answered(answer, len(list)); used[c] <= len(done) {
			p.Times[Completed] = m.since(done[used[c]-1])
		}
	}
}

// answered returns when n messages of a class, which belong to requests, were delivered. The one that the device has beyond
// these is that of start-up.
func (x *epoch) answered(c class, n int) []time.Time {
	list := x.delivered[c]
	if len(list) == n+1 {
		list = list[1:]
	}
	return list
}

// matchReceives gives receives the messages that they have taken, in order.
func (m *matcher) matchReceives(x *epoch, received []*pending) {
	in := indexes(x.conn.received(), func(c class) bool { return c == send })
	done := x.answered(send, len(in))
	for _, p := range received {
		n := max(p.messages, 1)
		if n <= len(in) {
			p.Times[FirstIn], p.Times[Placed] = m.since(x.conn.received()[in[0]].first), m.since(x.conn.received()[in[n-1]].last)
			in = in[n:]
		}
		if n <= len(done) {
			p.Times[Completed] = m.since(done[n-1])
			done = done[n:]
		}
	}
}

// classOfRequest returns that of the first message that a request sends.
func classOfRequest(op rnic.Opcode) class {
	switch op {
	case rnic.OpWrite, rnic.OpWriteImmediate:
		return write
	case rnic.OpRead, rnic.OpReadInvalidate:
		return readRequest
	case rnic.OpFetchAdd, rnic.OpCmpSwap:
		return atomicRequest
	default: // Sends and Immediate Data, those of the drop-in library too
		return send
	}
}

// placedAtPeers tells when Sends and Writes were placed at peers that are recorded as well: the n-th message that one side
// sends is the n-th that the other receives.
func placedAtPeers(all []*matcher) {
	received := map[[2]string][]*connection{}
	for _, m := range all {
		for addr, list := range m.wire.all {
			for _, c := range list {
				if c.taken {
					received[addr] = append(received[addr], c)
				}
			}
		}
	}
	peers := map[*connection]*connection{}
	for _, list := range received {
		for _, a := range list {
			for _, b := range list {
				if a.side != b.side && near(a.start, b.start) {
					peers[a] = b
				}
			}
		}
	}
	for _, m := range all {
		for _, p := range m.all {
			if p.sent < 0 || p.known(Placed) || p.conn == nil {
				continue
			}
			if peer := peers[p.conn]; peer != nil && p.sent < len(peer.received()) {
				p.Times[Placed] = m.since(peer.received()[p.sent].last)
			}
		}
	}
}

// near reports whether two recordings that begin at these times may be of one connection.
func near(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second }
