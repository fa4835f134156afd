package rnic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"urnic/internal/door/policy"
	"urnic/rdmap"
	"urnic/rnic/internal/life"
	"urnic/stag"
)

// QPAttr has the attributes of a queue pair. Zeros stand for the defaults.
type QPAttr struct {
	SendCQ, RecvCQ *CQ  // where work completes; both must be given
	SRQ            *SRQ // where receives come from, instead of a receive queue

	MaxSendWR int // requests in the send queue
	MaxRecvWR int // requests in the receive queue; none with an SRQ
	MaxSGE    int // entries of an SGL
	MaxInline int // bytes of inline data

	// RecvWait is how long a message waits for a receive, if there is none. The
	// stream stops meanwhile, as InfiniBand's does by its RNR NAKs; some
	// programs rely on that. 0 ends the stream at once (RFC 5041 §7.1).
	RecvWait time.Duration

	// SplitReads allows an OpRead with up to MaxSGE sinks. The Read Request of RDMAP has
	// one sink (RFC 5040 §4.4), so the queue pair sends one for each sink, in their
	// order, and each counts for ORD. It is still one request: it has one slot in the
	// send queue and one completion, with the bytes of all sinks. If one sink can't be
	// used when its turn comes, none is read into. Without SplitReads, such a request is
	// refused.
	SplitReads bool

	policy policy.Policy // nil stands for the device's
	num    uint32        // 0 lets the device choose one
}

// A QP is a queue pair: one end of an RDMA connection. All of its methods are
// safe for concurrent use.
type QP struct {
	pd             *PD
	num            uint32
	attr           QPAttr
	policy         policy.Policy
	splitReads     bool // the policy says so
	sendCQ, recvCQ *CQ
	srq            *SRQ
	stream         atomic.Uint32 // what stag.Scope calls the stream; new after each Reset

	sq      sendQueue
	rq      recvQueue
	srqHeld atomic.Int32 // receives of the SRQ that have arrived and are not polled

	refused atomic.Uint32 // rights that peers have not: an Access

	forgotten atomic.Bool // it completes nothing; read under the mu of the completion queue

	closing sync.Once

	mu       sync.Mutex    // of what follows, and of sq; taken before those of other queues
	life     *life.Machine // state, send queue and stream
	starting *attempt      // a connection that is being set up, or nil
	link     *link         // the stream, from start-up until a Reset
	closed   bool
	ended    rdmap.Stats // of streams before this one
}

// A sendQueue is what a queue pair has for its send queue, beside the queue itself, which
// belongs to its life. All but held is under the queue pair's mu.
type sendQueue struct {
	spare []*life.Request // of a sendWQE each, for use again
	lease stag.Lease      // of the SGLs that are checked
	held  atomic.Int32    // requests that have completed and hold their slots
}

// An attempt is a connection that is being set up, and that can be canceled.
type attempt struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the queue pair is free again
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

// State returns the state of the queue pair.
func (q *QP) State() State {
	if !q.made() {
		return Idle
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return State(q.life.State())
}

// Err returns why the stream has ended, or is ending. It returns nil if the
// stream has not ended, or was closed gracefully. A Terminate of the peer is a
// *rdmap.PeerError; an error that this side has found is an *rdmap.Error.
func (q *QP) Err() error {
	if !q.made() {
		return notMade("say why it ended", "QP")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.life.Why()
}

// join returns why requests can't complete, or nil.
func (q *QP) join() error {
	if err := q.sendCQ.join(); err != nil {
		return err
	}
	return q.recvCQ.join()
}

// scope returns the scope in which the queue pair uses STags.
func (q *QP) scope() stag.Scope {
	return stag.Scope{Domain: q.pd.domain, Stream: stag.Stream(q.stream.Load())}
}

func (q *QP) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("QP %d", q.num), Err: err}
}

// renew gives the next stream a new number: memory that was opened for the old stream is
// not open to the next one; memory that is opened from now on is. The caller holds mu.
func (q *QP) renew() { q.stream.Store(q.pd.dev.lastLink.Add(1)) }

// outstanding returns how many requests in the send queue have not completed.
func (q *QP) outstanding() int {
	if !q.made() {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.life.Outstanding()
}

// unpolled returns how many received messages of the queue pair have completions
// that are not polled yet.
func (q *QP) unpolled() int {
	if !q.made() {
		return 0
	}
	return q.recvCQ.received(q.num)
}

// forget makes the queue pair complete nothing until Reset.
func (q *QP) forget() {
	if !q.made() {
		return
	}
	q.forgotten.Store(true)
	q.sendCQ.purge(q.num)
	q.recvCQ.purge(q.num)
}

// refuseRemote takes rights from the peer, whatever the STags grant that it uses.
func (q *QP) refuseRemote(rights Access) {
	if q.made() {
		q.refused.Store(uint32(rights & (RemoteWrite | RemoteRead | RemoteAtomic)))
	}
}

// queuePairs returns all queue pairs.
func (d *Device) queuePairs() []*QP {
	members := d.members(d.qps)
	qps := make([]*QP, len(members))
	for i, c := range members {
		qps[i] = c.(*QP)
	}
	return qps
}
