package rnic

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/stag"
)

// QPAttr says what a queue pair is like. Zeros stand for the defaults.
type QPAttr struct {
	SendCQ, RecvCQ *CQ  // where work completes; both must be given
	SRQ            *SRQ // where receives come from, in place of a receive queue

	MaxSendWR int // requests in the send queue
	MaxRecvWR int // requests in the receive queue; none with an SRQ
	MaxSGE    int // entries of an SGL
	MaxInline int // octets of inline data

	// PairImmediate takes the immediate data of the peer's OpSendImmediate as what
	// belongs to its Send: both complete one receive.
	//
	// RFC 7306 has no Send with immediate data, but Immediate Data, a message of
	// eight octets that takes a receive of its own (§6). OpSendImmediate sends one
	// before the Send, with four octets of data and PairMark. A peer without
	// PairImmediate completes two receives.
	PairImmediate bool

	// Num is the number of the queue pair. 0 lets the device choose one; who
	// chooses, keeps them apart.
	Num uint32

	// RecvWait is how long a message waits for a receive, if there is none: the
	// stream stands still meanwhile, as InfiniBand's does by its RNR NAKs, for
	// programs that rely on that. 0 ends the stream at once (RFC 5041 §7.1).
	RecvWait time.Duration

	// SplitReads takes an OpRead with up to MaxSGE sinks. The Read Request of RDMAP has
	// one sink (RFC 5040 §4.4), so there is one for each, in the order of the sinks, and
	// ORD counts them. The queue pair counts one request: it has one place in the send
	// queue, one completion with the bytes of all sinks, and if a sink can't be used when
	// its turn comes, none is read into. Without SplitReads, such a request is refused.
	SplitReads bool

	// HoldSends keeps the place of a request in the send queue until its completion
	// is polled, as hardware does: who posts until the queue is full and has a
	// completion queue of that size does not overflow it. Else the place is free as
	// soon as the request completes.
	HoldSends bool

	// HoldReceives is the same for the receive queue. An SRQ's places are free as soon
	// as a receive completes.
	HoldReceives bool
}

// PairMark is what the last four octets of Immediate Data say that belongs to the
// Send behind it.
// As a number it is higher than any length of a message that programs use.
const PairMark = "\xffSnd"

// A QP is a queue pair: one end of an RDMA connection. All of its methods are
// safe for concurrent use.
type QP struct {
	pd             *PD
	num            uint32
	attr           QPAttr
	sendCQ, recvCQ *CQ
	srq            *SRQ
	stream         atomic.Uint32 // what stag.Scope calls the stream; new after each Reset

	sq      sendQueue
	rq      recvQueue
	srqHeld atomic.Int32 // receives of the SRQ that have arrived and are not polled

	refused atomic.Uint32 // rights that peers have not: an Access

	forgotten atomic.Bool // it completes nothing; read under the mu of the completion queue

	closing sync.Once

	mu       sync.Mutex // of what follows; taken before that of a queue
	state    State
	starting *startup // a connection on its way, or nil
	link     *link    // the stream, from start-up until a Reset
	err      error    // why the stream ended, if not gracefully
	closed   bool
	ended    rdmap.Stats // of streams before this one
}

// CreateQP returns a new queue pair, in state Idle. It returns an *OpError if an
// attribute is out of range or exceeds a quota.
func (p *PD) CreateQP(attr QPAttr) (*QP, error) {
	const op = "create QP"
	if !p.made() {
		return nil, notMade(op, "PD")
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail(op, err)
	}
	defer p.dev.end()
	attr.defaults(&p.dev.cfg)
	if err := attr.check(p); err != nil {
		return nil, p.fail(op, err)
	}
	if err := attr.reserve(p); err != nil {
		return nil, p.fail(op, err)
	}
	if attr.Num == 0 {
		attr.Num = p.dev.lastNum.Add(1)
	}
	q := &QP{pd: p, num: attr.Num, attr: attr, sendCQ: attr.SendCQ, recvCQ: attr.RecvCQ, srq: attr.SRQ, state: Idle}
	q.stream.Store(p.dev.lastLink.Add(1))
	q.sq.init(q)
	q.rq.ring.init(attr.MaxRecvWR)
	q.sendCQ.users.Add(1)
	q.recvCQ.users.Add(1)
	if err := q.join(); err != nil {
		q.release()
		return nil, p.fail(op, err)
	}
	put(p.dev, p.dev.qps, q)
	return q, nil
}

func (a *QPAttr) defaults(c *Config) {
	for _, d := range []struct {
		v         *int
		def, most int
	}{
		{&a.MaxSendWR, DefaultWR, c.MaxWR},
		{&a.MaxRecvWR, DefaultWR, c.MaxWR},
		{&a.MaxSGE, DefaultSGE, c.MaxSGE},
		{&a.MaxInline, DefaultInline, c.MaxInline},
	} {
		if *d.v == 0 {
			*d.v = min(d.def, d.most)
		}
	}
	if a.SRQ != nil {
		a.MaxRecvWR = 0
	}
}

func (a *QPAttr) check(p *PD) error {
	c := &p.dev.cfg
	for _, r := range []struct {
		name     string
		v, limit int
	}{
		{"MaxSendWR", a.MaxSendWR, c.MaxWR},
		{"MaxRecvWR", a.MaxRecvWR, c.MaxWR},
		{"MaxSGE", a.MaxSGE, c.MaxSGE},
		{"MaxInline", a.MaxInline, c.MaxInline},
	} {
		if r.v < 0 || r.v > r.limit {
			return fmt.Errorf("%s %d: say 0 to %d", r.name, r.v, r.limit)
		}
	}
	if a.RecvWait < 0 {
		return fmt.Errorf("RecvWait %v: say how long to wait, or 0", a.RecvWait)
	}
	for _, c := range []*CQ{a.SendCQ, a.RecvCQ} {
		switch {
		case c == nil:
			return fmt.Errorf("a completion queue is missing: give SendCQ and RecvCQ")
		case !c.made():
			return fmt.Errorf("a completion queue: %w", ErrNotMade)
		case c.dev != p.dev:
			return fmt.Errorf("CQ %d: %w", c.num, ErrForeign)
		case c.pd != nil && c.pd != p: // "MUST NOT enable sharing a CQ across ULPs" without trust: RFC 5040 §8.1.1 rule 9
			return fmt.Errorf("CQ %d is reserved for PD %d", c.num, c.pd.Num())
		}
	}
	switch {
	case a.SRQ == nil:
	case !a.SRQ.made():
		return fmt.Errorf("the shared receive queue: %w", ErrNotMade)
	case a.SRQ.pd != p:
		return fmt.Errorf("SRQ %d belongs to another protection domain", a.SRQ.num)
	}
	return nil
}

// reserve takes what the queue pair will hold (RFC 5040 §8.1.2 rule 2).
func (a *QPAttr) reserve(p *PD) error {
	taken := 0
	amounts := a.amounts()
	for i, r := range amounts {
		if err := p.domain.Reserve(r.resource, r.n); err != nil {
			for _, back := range amounts[:taken] {
				p.domain.Release(back.resource, back.n)
			}
			return err
		}
		taken = i + 1
	}
	if a.SRQ == nil {
		return nil
	}
	if err := a.SRQ.use(); err != nil {
		for _, back := range amounts {
			p.domain.Release(back.resource, back.n)
		}
		return fmt.Errorf("SRQ %d: %w", a.SRQ.num, err)
	}
	return nil
}

type amount struct {
	resource pd.Resource
	n        uint64
}

func (a *QPAttr) amounts() []amount {
	return []amount{{pd.QueuePairs, 1}, {pd.SendWRs, uint64(a.MaxSendWR)}, {pd.RecvWRs, uint64(a.MaxRecvWR)}}
}

// join says why requests can't complete, if that is so.
func (q *QP) join() error {
	if err := q.sendCQ.join(); err != nil {
		return err
	}
	return q.recvCQ.join()
}

func (q *QP) release() {
	for _, r := range q.attr.amounts() {
		q.pd.domain.Release(r.resource, r.n)
	}
	if q.srq != nil {
		q.srq.unuse()
	}
	q.sendCQ.users.Add(-1)
	q.recvCQ.users.Add(-1)
}

// made reports whether CreateQP has made the queue pair.
func (q *QP) made() bool { return q != nil && q.pd != nil }

// Num returns the number of the queue pair within its device.
func (q *QP) Num() uint32 {
	if !q.made() {
		return 0
	}
	return q.num
}

// PD returns the protection domain of the queue pair.
func (q *QP) PD() *PD {
	if !q.made() {
		return nil
	}
	return q.pd
}

// Attr returns the attributes with which the queue pair was created, defaults
// filled in.
func (q *QP) Attr() QPAttr {
	if !q.made() {
		return QPAttr{}
	}
	return q.attr
}

// scope returns as whom the queue pair uses STags.
func (q *QP) scope() stag.Scope {
	return stag.Scope{Domain: q.pd.domain, Stream: stag.Stream(q.stream.Load())}
}

func (q *QP) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("QP %d", q.num), Err: err}
}

// State returns the state of the queue pair.
func (q *QP) State() State {
	if !q.made() {
		return Idle
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Err returns why the stream has ended, or is ending; nil if it has not, or if
// it was closed gracefully. A Terminate of the peer is a *rdmap.PeerError, an
// error that this side has found an *rdmap.Error.
func (q *QP) Err() error {
	if !q.made() {
		return notMade("say why it ended", "QP")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Outstanding returns how many requests in the send queue have not completed.
func (q *QP) Outstanding() int {
	if !q.made() {
		return 0
	}
	return q.sq.pending()
}

// Unpolled returns how many messages the queue pair has received whose completions
// nobody has polled yet.
func (q *QP) Unpolled() int {
	if !q.made() {
		return 0
	}
	return q.recvCQ.received(q.num)
}

// Params returns what MPA start-up has settled, with the peer's private data,
// or false before there was a connection.
func (q *QP) Params() (mpa.Params, bool) {
	if l := q.lastLink(); l != nil {
		return l.params, true
	}
	return mpa.Params{}, false
}

// LocalAddr returns the address of this side of the connection, or of the last
// one; nil before there was one, and after a Reset.
func (q *QP) LocalAddr() net.Addr {
	if l := q.lastLink(); l != nil {
		return l.conn.LocalAddr()
	}
	return nil
}

// RemoteAddr returns the address of the peer, as LocalAddr does that of this
// side.
func (q *QP) RemoteAddr() net.Addr {
	if l := q.lastLink(); l != nil {
		return l.conn.RemoteAddr()
	}
	return nil
}

// Done returns a channel that is closed when the stream that there is, or was last,
// has ended, however it did; nil before there was one, and after a Reset.
func (q *QP) Done() <-chan struct{} {
	if l := q.lastLink(); l != nil {
		return l.done
	}
	return nil
}

// lastLink returns the stream there is or was last, or nil.
func (q *QP) lastLink() *link {
	if !q.made() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.link
}

// Counters returns what the queue pair has sent and received, by opcode.
func (q *QP) Counters() rdmap.Stats {
	if !q.made() {
		return rdmap.Stats{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.ended
	if q.link != nil {
		s.Add(q.link.rdmap.Stats())
	}
	return s
}

// Close gives the queue pair up, in whatever state. A connection is reset; work
// requests are flushed. When it returns, no goroutine of the queue pair is left
// and no memory is touched on its behalf. It fails only if CreateQP has not made
// the queue pair.
func (q *QP) Close() error {
	if !q.made() {
		return notMade("close", "QP")
	}
	q.closing.Do(func() {
		q.mu.Lock()
		q.closed = true
		q.mu.Unlock()
		q.end(ErrClosed)
		q.strip()
		q.release()
		q.pd.dev.retire(q) // last, so that the device waits for it
	})
	return nil
}

// strip gives up what the queues have grown to: who keeps a queue pair that is closed,
// as an event that nobody fetches does, keeps little.
func (q *QP) strip() {
	q.sq.mu.Lock()
	q.sq.queue.slots, q.sq.queue.head, q.sq.spare = nil, 0, nil
	q.sq.mu.Unlock()
	q.rq.mu.Lock()
	q.rq.ring.slots, q.rq.ring.head, q.rq.ring.spare = nil, 0, nil
	q.rq.mu.Unlock()
}

// Forget makes the queue pair complete nothing any more: its requests end without
// a completion from now on, and completions that nobody has polled are taken out
// of its completion queues. Reset makes it as it was before. It is for programs
// that want to hear no more of a queue pair that they close or reset.
func (q *QP) Forget() {
	if !q.made() {
		return
	}
	q.forgotten.Store(true)
	q.sendCQ.purge(q.num)
	q.recvCQ.purge(q.num)
}

// RefuseRemote takes rights from the peer, RemoteWrite, RemoteRead and RemoteAtomic,
// whatever the STags grant that it uses: such an access ends the stream as one to
// memory without the right does. It holds from now on, for all streams, until the
// next call; 0 refuses nothing, as from the beginning.
func (q *QP) RefuseRemote(rights Access) {
	if q.made() {
		q.refused.Store(uint32(rights & (RemoteWrite | RemoteRead | RemoteAtomic)))
	}
}

// end brings the queue pair to state Error with all requests flushed, whatever
// it is doing. It reports whether the queue pair was idle at last, so that there
// was no stream whose end tells why.
func (q *QP) end(why error) (wasIdle bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waitFor := func(done <-chan struct{}) {
		q.mu.Unlock()
		<-done
		q.mu.Lock()
	}
	for {
		s, l := q.starting, q.link
		switch {
		case s != nil:
			s.cancel(why)
			waitFor(s.done)
			continue
		case l != nil && !l.isDone():
			q.mu.Unlock()
			l.reset(why, 0)
			q.mu.Lock()
			waitFor(l.done)
			continue
		case q.state == Idle:
			q.state, q.err = Error, why
			q.flush() // under mu, so that nothing is posted behind it
			return true
		}
		return false
	}
}
