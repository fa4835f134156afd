//go:build linux

package dropin

import (
	"cmp"
	"sync"
	"sync/atomic"
	"syscall"

	"urnic/internal/door"
	"urnic/internal/dropin/rendezvous"
	"urnic/rnic"
)

// A qp is a struct ibv_qp's.
type qp struct {
	engine *Engine
	ctx    *rdmaContext
	pd     *protectionDomain
	handle Handle
	cookie uint64
	num    uint32 // 24 bits; package rnic's number of it too
	init   QPInit // as it was created, with what it has got
	verbs  *rnic.QP

	send sendBatch
	recv recvBatch

	// failure is the status of the first request of the send queue that is flushed:
	// that of what has ended the connection before it began.
	failure atomic.Uint32
	owner   atomic.Pointer[connectionOwner]

	// missed says that what was sent to a peer that has gone has failed: see
	// isLeftAlone.
	missed atomic.Bool

	// neverMet says that no connection by rendezvous came about.
	neverMet atomic.Bool

	// noDepth says that the program has said that it has no Reads and atomics outstanding;
	// asked holds the IRD and ORD that it has asked for.
	noDepth atomic.Bool
	asked   struct{ ird, ord atomic.Uint32 }

	// peerRetries is the rnr_retry of the peer's Sends to this queue pair, rnrTimer its own min_rnr_timer; see receiveWait.
	peerRetries atomic.Int32
	rnrTimer    atomic.Uint32

	// given says that the program has ended the connection itself, closed that it was closed
	// with nothing outstanding.
	given, closed atomic.Bool

	endpoint *rendezvous.Endpoint // nil without a connection
	datagram *datagramQP          // nil with a connection that is reliable
	met      atomic.Bool          // it has, or shall have, a connection by rendezvous

	ending sync.Mutex // while an event of a connection's end is dealt with; taken before mu

	mu      sync.Mutex // of what follows
	attr    QPAttr     // what the program has set
	last    bool       // it has been reported the last receive that it takes from an SRQ
	managed bool       // the connection manager has made its connection
	missing *missing   // until missed is set

	// Of the state SQD: requests that were begun have not completed; the program wants to
	// be notified when they have.
	draining, tellDrained bool

	state atomic.Uint32 // enum ibv_qp_state; written under mu
}

// A connectionOwner has made the connection of a queue pair.
type connectionOwner struct {
	// event is told the asynchronous events of the queue pair, before the program is,
	// with no lock held. It reports whether it tells the program in its own way that
	// the connection has ended, so that no asynchronous event is needed.
	event func(rnic.Event) bool
}

// own says who owns the connection of a queue pair, or, if that is nil, that nobody
// does any more.
func (q *qp) own(o *connectionOwner) { q.owner.Store(o) }

// qp returns the queue pair that a handle names, or nil.
func (e *Engine) qp(h Handle) *qp { return e.qps.get(h) }

// QPCreate makes a queue pair in state RESET, and tells handle, number and
// capacities in init.
func (e *Engine) QPCreate(pd Handle, init *QPInit) Errno {
	p := e.pds.get(pd)
	if p == nil || init == nil {
		return syscall.EINVAL
	}
	attr, number := e.qpAttr(p, init)
	if number != ok {
		return number
	}
	if init.Type != 0 && init.Type != qptRC {
		if number := e.mayHaveDatagrams(init); number != ok {
			return number
		}
	}
	if s := e.srqs.get(init.SRQ); s != nil && (init.Type == 0 || init.Type == qptRC) {
		if number := s.share(false); number != ok {
			return number
		}
	}
	q := &qp{engine: e, ctx: p.ctx, pd: p, cookie: init.Cookie}
	if e.settings.acknowledges() && (init.Type == 0 || init.Type == qptRC) {
		q.send.acks = new(acknowledger)
	}
	if !e.settings.ethernet { // iWARP has no RESET: a new queue pair takes requests, and allows the peer all
		q.state.Store(qpsInit)
	}
	q.attr = e.newAttr()
	q.peerRetries.Store(unknownRetries)
	if q.send.acks != nil {
		door.SetPolicyOfQP(&attr, retryPolicy{policyOf(&e.settings), q})
	}
	e.beginCounting()
	matchmaker := e.matchmaker()
	if q.num = e.numbers.reserve(); q.num == 0 {
		return e.refuse(syscall.ENOMEM, "create QP: a process has at most %d", maxQPs)
	}
	if c := e.cqs.get(init.SendCQ); c != nil && q.send.acks != nil {
		if err := c.enlarge(e.extraWRs()); err != nil {
			e.numbers.release(q.num)
			return e.fail(err)
		}
	}
	door.SetNum(&attr, q.num)
	verbs, err := p.verbs.CreateQP(attr)
	if err != nil {
		e.numbers.release(q.num)
		return e.fail(err)
	}
	q.verbs = verbs
	if init.Type != 0 && init.Type != qptRC {
		return q.createDatagram(init)
	}
	if q.endpoint, err = matchmaker.Endpoint(q.num, verbs); err != nil {
		_ = verbs.Close() // nobody has used it
		e.numbers.release(q.num)
		return e.fail(err)
	}
	if q.handle = e.qps.add(q); q.handle == 0 {
		q.endpoint.Close()
		_ = verbs.Close() // nobody has used it
		e.numbers.release(q.num)
		return syscall.ENOMEM
	}
	got := verbs.Attr()
	init.MaxSendWR, init.MaxSendSGE, init.MaxRecvSGE, init.MaxInline = uint32(got.MaxSendWR-e.extraWRs()), uint32(got.MaxSGE), uint32(got.MaxSGE), uint32(got.MaxInline)
	if init.MaxRecvWR = uint32(got.MaxRecvWR); init.SRQ != 0 {
		init.MaxRecvSGE = 0
	}
	init.QP, init.QPN = q.handle, q.num
	q.init = *init
	q.send.signalAll = init.SignalAll != 0
	q.countConnections(1)
	e.numbers.set(q.num, q)
	return ok
}

// countConnections tells the completion queues that a queue pair which is connected by TCP
// uses them, or does so no longer.
func (q *qp) countConnections(change int32) {
	for _, h := range []Handle{q.init.SendCQ, q.init.RecvCQ} {
		if c := q.engine.cqs.get(h); c != nil {
			c.connections.Add(change)
		}
	}
}

// newAttr returns the attributes of a queue pair for which the program has set none.
// Drivers of iWARP devices tell the rights that the peer has without a word of the
// program; on others, the program has to set them on the way to INIT.
func (e *Engine) newAttr() (a QPAttr) {
	if !e.settings.ethernet {
		a.Access = accessLocalWrite | accessRemoteWrite | accessRemoteRead | accessRemoteAtomic
	}
	return a
}

// leastAcknowledged is how many requests a send queue holds at least whose requests complete when they are acknowledged.
// Adapters round up, too, and programs with a queue of one request rely on it: the answer to a message may come before the
// acknowledgment of that message, and perftest with events then posts the next one first.
const leastAcknowledged = 64

// qpAttr returns what package rnic is to make.
func (e *Engine) qpAttr(p *protectionDomain, init *QPInit) (a rnic.QPAttr, _ Errno) {
	send, recv := e.cqs.get(init.SendCQ), e.cqs.get(init.RecvCQ)
	if send == nil || recv == nil || send.ctx != p.ctx || recv.ctx != p.ctx {
		return a, e.refuse(syscall.EINVAL, "create QP: a completion queue is missing, or of another context")
	}
	extra := e.extraWRs()
	if int(init.MaxSendWR) > rnic.MaxWR-extra || int(init.MaxRecvWR) > rnic.MaxWR-extra || init.MaxInline > rnic.MaxInline ||
		init.MaxSendSGE > rnic.MaxSGE || init.MaxRecvSGE > rnic.MaxSGE {
		return a, e.refuse(syscall.EINVAL, "create QP: a capacity exceeds the device's limit: see ibv_query_device")
	}
	a = rnic.QPAttr{
		SendCQ: send.verbs, RecvCQ: recv.verbs, MaxSendWR: int(init.MaxSendWR), MaxRecvWR: int(init.MaxRecvWR),
		MaxSGE: int(max(init.MaxSendSGE, init.MaxRecvSGE)), MaxInline: int(init.MaxInline),
	}
	if extra > 0 {
		a.MaxSendWR = cmp.Or(a.MaxSendWR, rnic.DefaultWR)
		if init.Type == 0 || init.Type == qptRC {
			a.MaxSendWR = max(a.MaxSendWR, leastAcknowledged)
		}
		a.MaxSendWR += extra
	}
	if init.SRQ != 0 {
		srq := e.srqs.get(init.SRQ)
		if srq == nil || srq.pd.ctx != p.ctx {
			return a, syscall.EINVAL
		}
		a.SRQ = srq.verbs
	}
	return a, ok
}

// QPDestroy gives a queue pair up, with its connection and its completions. When it
// returns, no memory is touched on its behalf.
func (e *Engine) QPDestroy(h Handle) Errno {
	q := e.qps.remove(h)
	if q == nil {
		return syscall.EINVAL
	}
	if q.datagram != nil {
		return q.destroyDatagram()
	}
	q.leave()
	q.settle()
	q.countConnections(-1)
	q.endpoint.Close()
	door.Forget(q.verbs) // its completions are gone with it
	q.forgetKept()
	err := q.verbs.Close()
	e.countEnded(q)
	e.numbers.release(q.num)
	q.ctx.forget(q.cookie, isQPEvent)
	return e.fail(err)
}
