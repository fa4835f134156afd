//go:build linux

package dropin

import (
	"slices"
	"syscall"

	"urnic/internal/door"
	"urnic/rnic"
)

// mayFollow says which states a program may bring a queue pair to from a state,
// other than RESET and ERR.
var mayFollow = [...][]uint32{
	qpsReset: {qpsInit},
	qpsInit:  {qpsInit, qpsRTR, qpsRTS}, // a queue pair of iWARP has no RTR
	qpsRTR:   {qpsRTS},
	qpsRTS:   {qpsRTS, qpsSQD},
	qpsSQD:   {qpsSQD, qpsRTS},
	qpsSQE:   {qpsRTS},
	qpsErr:   {},
}

// setState notes a new state. The caller holds mu.
func (q *qp) setState(s uint32) {
	if s != q.state.Load() {
		q.engine.log.printf(logDebug, "QP 0x%x: %s", q.num, stateNames[s])
		q.state.Store(s)
	}
}

// isReset reports whether nothing can be posted.
func (q *qp) isReset() bool { return q.state.Load() == qpsReset }

// connected notes that the connection manager has made a connection.
func (q *qp) connected() {
	q.mu.Lock()
	if q.managed = true; q.state.Load() != qpsErr {
		q.setState(qpsRTS)
	}
	q.mu.Unlock()
	q.linked()
}

// setTimeout sets the timeout that an id of rdma_cm has been told, which RNICs don't have.
func (q *qp) setTimeout(timeout uint32) {
	if timeout == 0 || !q.engine.settings.ethernet {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attr.Timeout = timeout
}

// failed brings the queue pair to state ERR, because its connection could not be
// made: the first Send completes with a status that says so.
func (q *qp) failed(status uint32) {
	q.failure.Store(status)
	q.toError()
}

// toError brings the queue pair to state ERR: the connection is reset, and all
// requests are flushed.
func (q *qp) toError() {
	q.mu.Lock()
	if q.state.Load() != qpsReset {
		q.setState(qpsErr)
	}
	q.mu.Unlock()
	q.verbs.Abort()
	q.tellLast()
}

// QPModify sets attributes and the state, as mask says. Whoever names the peer on
// the way to RTR gets a connection to it; see package rendezvous. Others have one of
// the connection manager: the states are only noted then.
func (e *Engine) QPModify(h Handle, attr *QPAttr, mask uint32) Errno {
	q := e.qps.get(h)
	if q == nil || attr == nil || mask&^uint32(qpAllAttrs) != 0 {
		return syscall.EINVAL
	}
	if mask&(qpAltPath|qpPathMigState|qpRateLimit|qpCap) != 0 {
		return e.refuse(syscall.EOPNOTSUPP, "modify QP 0x%x: mask 0x%x: no alternate path, rate limit or new capacities", q.num, mask)
	}
	if q.datagram != nil {
		return q.modifyDatagram(attr, mask)
	}
	if mask&qpState != 0 && attr.State == qpsSQD {
		q.beforeStop()
	}
	q.mu.Lock()
	was := q.current()
	if mask&qpCurState != 0 && attr.CurState != was {
		q.mu.Unlock()
		return e.refuse(syscall.EINVAL, "modify QP 0x%x: it is in state %s", q.num, stateNames[was])
	}
	next := was
	if mask&qpState != 0 {
		next = attr.State
	}
	if q.managed && was == qpsRTS && (next == qpsInit || next == qpsRTR) {
		next = qpsRTS // by the attributes of rdma_init_qp_attr, which a program uses when it hears of the connection
	}
	if !allowed(was, next) {
		q.mu.Unlock()
		return e.refuse(syscall.EINVAL, "modify QP 0x%x: from %s to %d", q.num, stateNames[was], next)
	}
	if attr.MaxReadAtomic > rnic.MaxDepth && mask&qpMaxReadAtomic != 0 || attr.MaxDestReadAtomic > rnic.MaxDepth && mask&qpMaxDestReadAtomic != 0 {
		q.mu.Unlock()
		return e.refuse(syscall.EINVAL, "modify QP 0x%x: max_rd_atomic and max_dest_rd_atomic are at most %d", q.num, rnic.MaxDepth)
	}
	switch next {
	case qpsErr:
		q.setState(next)
		q.mu.Unlock()
		q.leave()
		q.toError()
		return ok
	case qpsReset:
		q.mu.Unlock()
		q.leave()
		return q.reset()
	}
	defer q.mu.Unlock()
	if next == qpsInit {
		e.expectCalls()
	}
	before := q.attr
	q.attr.set(attr, mask)
	q.rnrTimer.Store(q.attr.MinRNRTimer)
	if mask&qpMaxReadAtomic != 0 {
		q.noDepth.Store(attr.MaxReadAtomic == 0)
		q.asked.ord.Store(attr.MaxReadAtomic)
	}
	if was == qpsInit && next == qpsRTR {
		if bad := q.meet(mask); bad != ok {
			q.attr = before
			return bad
		}
	}
	if mask&qpAccess != 0 {
		granted, _ := accessOf(q.attr.Access & (accessRemoteWrite | accessRemoteRead | accessRemoteAtomic))
		door.RefuseRemote(q.verbs, ^granted)
	}
	q.setState(next)
	switch {
	case was == qpsRTR && next == qpsRTS:
		q.readyToSend()
	case was == qpsRTS && next == qpsSQD:
		q.draining, q.tellDrained = true, mask&qpSQDNotify != 0 && attr.SQDNotify != 0
		return q.stopSending()
	case was == qpsSQD && next == qpsRTS:
		q.draining = false
		_ = door.ResumeSending(q.verbs) // or the connection has just ended
	}
	return ok
}

// stopSending makes requests wait in state SQD. The caller holds mu.
func (q *qp) stopSending() Errno {
	if err := door.StopSending(q.verbs); err != nil {
		q.setState(qpsRTS)
		return q.engine.refuse(syscall.EINVAL, "modify QP 0x%x to SQD: %v", q.num, err)
	}
	return ok
}

// drained is notified that all requests that were begun before SQD have completed.
func (q *qp) drained() {
	q.mu.Lock()
	tell := q.state.Load() == qpsSQD && q.draining && q.tellDrained
	q.draining = false
	q.mu.Unlock()
	q.stopped()
	if tell {
		q.tell(eventSQDrained)
	}
}

// allowed reports whether a program may bring a queue pair from a state to another.
func allowed(from, to uint32) bool {
	if to == qpsReset || to == qpsErr {
		return true
	}
	return slices.Contains(mayFollow[from], to)
}

// current returns the state that the program is to see. The caller holds mu.
func (q *qp) current() uint32 {
	s, verbs := q.state.Load(), q.verbs.State()
	over := verbs == rnic.Idle && q.verbs.Done() != nil // the peer has closed the connection
	if s != qpsReset && (over || verbs == rnic.Terminating || verbs == rnic.Error || verbs == rnic.Closing) {
		q.setState(qpsErr)
		return qpsErr
	}
	return s
}

// reset brings the queue pair to state RESET: its connection is reset, its requests
// and completions are gone.
func (q *qp) reset() Errno {
	q.ending.Lock()
	defer q.ending.Unlock()
	door.Forget(q.verbs)
	q.forgetKept()
	q.verbs.Abort()
	if err := q.verbs.Reset(); err != nil {
		return q.engine.fail(err)
	}
	q.forgetSends()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failure.Store(0)
	q.given.Store(false)
	q.closed.Store(false)
	door.RefuseRemote(q.verbs, 0)
	q.attr, q.last, q.managed = q.engine.newAttr(), false, false
	q.peerRetries.Store(unknownRetries)
	q.rnrTimer.Store(0)
	q.setState(qpsReset)
	return ok
}

// forgetKept drops the completions that are kept for the program.
func (q *qp) forgetKept() {
	for _, cq := range []Handle{q.init.SendCQ, q.init.RecvCQ} {
		if c := q.engine.cqs.get(cq); c != nil {
			c.forget(q.num)
		}
	}
}

// set takes over what mask names.
func (a *QPAttr) set(from *QPAttr, mask uint32) {
	for _, f := range []struct {
		mask     uint32
		to, from *uint32
	}{
		{qpPathMTU, &a.PathMTU, &from.PathMTU},
		{qpQKey, &a.QKey, &from.QKey},
		{qpRQPSN, &a.RQPSN, &from.RQPSN},
		{qpSQPSN, &a.SQPSN, &from.SQPSN},
		{qpDestQPN, &a.DestQPN, &from.DestQPN},
		{qpAccess, &a.Access, &from.Access},
		{qpAV, &a.IsGlobal, &from.IsGlobal},
		{qpAV, &a.SGIDIndex, &from.SGIDIndex},
		{qpAV, &a.DLID, &from.DLID},
		{qpPKeyIndex, &a.PKeyIndex, &from.PKeyIndex},
		{qpPort, &a.Port, &from.Port},
		{qpMaxReadAtomic, &a.MaxReadAtomic, &from.MaxReadAtomic},
		{qpMaxDestReadAtomic, &a.MaxDestReadAtomic, &from.MaxDestReadAtomic},
		{qpMinRNRTimer, &a.MinRNRTimer, &from.MinRNRTimer},
		{qpTimeout, &a.Timeout, &from.Timeout},
		{qpRetryCount, &a.RetryCount, &from.RetryCount},
		{qpRNRRetry, &a.RNRRetry, &from.RNRRetry},
	} {
		if mask&f.mask != 0 {
			*f.to = *f.from
		}
	}
	if mask&qpAV != 0 {
		a.DGID = from.DGID
	}
}

// QPQuery tells the attributes of a queue pair.
func (e *Engine) QPQuery(h Handle, out *QPAttr) Errno {
	q := e.qps.get(h)
	if q == nil || out == nil {
		return syscall.EINVAL
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	*out = q.attr
	out.State = q.current()
	out.CurState = out.State
	out.SQDraining = flag(out.State == qpsSQD && q.draining)
	i := &q.init
	out.MaxSendWR, out.MaxRecvWR, out.MaxSendSGE, out.MaxRecvSGE, out.MaxInline = i.MaxSendWR, i.MaxRecvWR, i.MaxSendSGE, i.MaxRecvSGE, i.MaxInline
	return ok
}
