//go:build linux

package dropin

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"urnic/internal/door"
	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
)

// A datagramQP is what a queue pair of the type UD or UC has. The one of package rnic that goes with
// it does nothing but hold what a queue pair holds: its number, its domain and its completion queues.
type datagramQP struct {
	qp             *qp
	port           *carrier.Port
	srq            *sharedQueue // or nil
	kind           uint32       // qptUD or qptUC
	sendCQ, recvCQ *completionQueue

	unpolledSends, unpolledRecvs atomic.Int32
	key                          atomic.Uint32 // the Q_Key
	writable                     atomic.Bool   // the peer of UC may write

	sendMu sync.Mutex // of what follows; taken before any lock of the port
	sends  []pendingSend
	first  int // of sends
	count  int
	memory keyring
	send   func(*carrier.Sender) // sendAll
	waits  atomic.Bool           // for room
	peer   ucPeer                // of UC
	sent   counted

	postMu sync.Mutex // of whoever posts receives; taken before recvMu
	due    []datagram.Debt[carrier.Peer]

	recvMu   sync.Mutex // of what follows; the port may be receiving when it is taken
	queue    datagram.Queue[carrier.Peer]
	recvs    []pendingRecv // with an SRQ, the one of the message that has begun
	firstRcv int           // of recvs

	pendingRecvs int

	from     ucPeer // as peer
	stream   datagram.Stream
	placed   placing // what has come of a UC message
	grh      [datagram.GRHLen]byte
	landing  keyring
	received counted
	writes   keyring // of what peers write
}

// A ucPeer is whom the program of a UC queue pair has named.
type ucPeer struct {
	route
	qpn  uint32
	to   carrier.Peer
	psn  uint32 // that is sent
	want uint32 // that is expected, unless it is 0
}

// createDatagram makes a queue pair without a reliable connection of one that is just being created.
func (q *qp) createDatagram(init *QPInit) Errno {
	e := q.engine
	d := &datagramQP{qp: q, port: e.datagrams.port.Load(), kind: init.Type, sendCQ: e.cqs.get(init.SendCQ), recvCQ: e.cqs.get(init.RecvCQ)}
	init.MaxSendWR, init.MaxRecvWR = max(init.MaxSendWR, 1), max(init.MaxRecvWR, 1)
	init.MaxSendSGE, init.MaxRecvSGE = max(init.MaxSendSGE, 1), max(init.MaxRecvSGE, 1)
	if d.srq = e.srqs.get(init.SRQ); d.srq != nil {
		init.MaxRecvWR, init.MaxRecvSGE = 1, 1
		if number := d.srq.share(true); number != ok {
			d.srq = nil
			d.abandon()
			return number
		}
	}
	if d.sends, d.recvs = make([]pendingSend, init.MaxSendWR), make([]pendingRecv, init.MaxRecvWR); d.sendCQ == nil || d.recvCQ == nil {
		d.abandon()
		return syscall.EINVAL
	}
	d.memory = keyring{engine: e, pd: q.pd}
	d.landing, d.writes = d.memory, d.memory
	if d.srq != nil {
		d.landing.pd = d.srq.pd
		init.MaxRecvWR, init.MaxRecvSGE = 0, 0
	}
	d.send = d.sendAll
	q.datagram = d
	if q.handle = e.qps.add(q); q.handle == 0 {
		d.abandon()
		return syscall.ENOMEM
	}
	init.QP, init.QPN = q.handle, q.num
	q.init = *init
	q.send.signalAll = init.SignalAll != 0
	d.sendCQ.datagrams.pairs.Add(1)
	d.recvCQ.datagrams.pairs.Add(1)
	e.datagrams.mu.Lock()
	e.datagrams.pairs[d] = true
	e.datagrams.mu.Unlock()
	e.numbers.set(q.num, q)
	return ok
}

// abandon gives up a queue pair that nobody has used.
func (d *datagramQP) abandon() {
	if d.srq != nil {
		d.srq.unshare(d)
	}
	_ = d.qp.verbs.Close()
	d.qp.engine.numbers.release(d.qp.num)
}

// destroyDatagram is the end of it. When it returns, no memory is touched on its behalf.
func (q *qp) destroyDatagram() Errno {
	d, e := q.datagram, q.engine
	d.close()
	e.numbers.set(q.num, nil)
	d.port.DetachAll(d)
	d.port.Forget(q.num) // nobody delivers to it any more
	e.datagrams.mu.Lock()
	delete(e.datagrams.pairs, d)
	e.datagrams.mu.Unlock()
	d.sendCQ.datagrams.forget(d)
	d.recvCQ.datagrams.forget(d)
	d.sendCQ.datagrams.pairs.Add(-1)
	d.recvCQ.datagrams.pairs.Add(-1)
	if d.srq != nil {
		d.srq.unshare(d)
	}
	d.tellDropped()
	if w := e.recorder(); w != nil {
		_ = w.Flush() // the program may end now; the error is kept
	}
	door.Forget(q.verbs)
	err := q.verbs.Close()
	e.countEnded(q)
	e.numbers.release(q.num)
	q.ctx.forget(q.cookie, isQPEvent)
	return e.fail(err)
}

// close makes it neither send nor receive, without a completion.
func (d *datagramQP) close() {
	d.sendMu.Lock()
	d.first, d.count = 0, 0
	d.waits.Store(false)
	d.sendMu.Unlock()
	d.recvMu.Lock()
	d.queue.Close()
	d.stream.Reset()
	d.placed = placing{}
	d.firstRcv = 0
	d.pendingRecvs = 0
	d.recvMu.Unlock()
}

// tellDropped logs what was dropped.
func (d *datagramQP) tellDropped() {
	d.recvMu.Lock()
	dropped := d.queue.Dropped()
	d.recvMu.Unlock()
	total, why := uint64(0), []string(nil)
	for r, n := range dropped {
		if total += n; n > 0 {
			why = append(why, fmt.Sprintf("%d %v", n, datagram.Reason(r)))
		}
	}
	if total > 0 {
		d.qp.engine.log.printf(logInfo, "QP 0x%x: dropped %d datagrams: %s", d.qp.num, total, strings.Join(why, ", "))
	}
}

// modifyDatagram is QPModify.
func (q *qp) modifyDatagram(attr *QPAttr, mask uint32) Errno {
	d, e := q.datagram, q.engine
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.state.Load()
	if mask&qpCurState != 0 && attr.CurState != was && was != qpsSQE {
		return e.refuse(syscall.EINVAL, "modify QP 0x%x: it is in state %s", q.num, stateNames[was])
	}
	next := was
	if mask&qpState != 0 {
		next = attr.State
	}
	if next > qpsErr || next == qpsSQE || !allowed(was, next) || was == qpsInit && next == qpsRTS {
		return e.refuse(syscall.EINVAL, "modify QP 0x%x: from %s to %d", q.num, stateNames[was], next)
	}
	before := q.attr
	switch q.attr.set(attr, mask); {
	case next == qpsReset:
		q.attr, q.last = e.newAttr(), false
		q.setState(next)
		d.close()
		d.sendCQ.datagrams.forget(d)
		d.recvCQ.datagrams.forget(d)
		return ok
	case next == qpsErr:
		q.setState(next)
		d.flush()
		if q.init.SRQ != 0 && !q.last {
			q.last = true
			q.tell(eventLastWQE)
		}
		return ok
	case next == qpsRTR && was == qpsInit && d.kind == qptUC:
		if number := d.connect(mask); number != ok {
			q.attr = before
			return number
		}
	}
	q.setState(next)
	if next == qpsRTR || next == qpsRTS || next == qpsSQD {
		d.open()
	}
	if next == qpsRTS {
		d.sendMu.Lock()
		d.peer.psn = q.attr.SQPSN & 0xffffff
		d.push()
		d.sendMu.Unlock()
	}
	return ok
}

// open has it receive. The caller holds the queue pair's mu.
func (d *datagramQP) open() {
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	d.key.Store(d.qp.attr.QKey)
	d.writable.Store(d.qp.attr.Access&accessRemoteWrite != 0)
	d.queue.Open(d.qp.attr.QKey)
}

// connect notes the peer of a UC queue pair. The caller holds the queue pair's mu.
func (d *datagramQP) connect(mask uint32) Errno {
	const both = qpAV | qpDestQPN
	q, e := d.qp, d.qp.engine
	if mask&both != both {
		return e.refuse(syscall.EINVAL, "modify QP 0x%x to RTR: a peer needs both IBV_QP_AV and IBV_QP_DEST_QPN", q.num)
	}
	r, number := e.routeTo(q.attr.IsGlobal != 0, e.portGIDs(q.ctx.device, q.attr.Port), q.attr.SGIDIndex, q.attr.DGID)
	if number != ok || q.attr.DestQPN > 0xffffff || r.to.IsMulticast() {
		return e.refuse(syscall.EINVAL, "modify QP 0x%x to RTR: GID, GID index or number name no peer", q.num)
	}
	peer := ucPeer{route: r, qpn: q.attr.DestQPN, want: q.attr.RQPSN & 0xffffff}
	if peer.to, number = e.peerOf(r.to, peer.qpn); number != ok {
		return e.refuse(number, "modify QP 0x%x to RTR: 0x%x is no number of a queue pair with a port", q.num, peer.qpn)
	}
	d.sendMu.Lock()
	d.peer = peer
	d.sendMu.Unlock()
	d.recvMu.Lock()
	d.from = peer
	d.recvMu.Unlock()
	return ok
}

// polled notes that the program has polled a completion.
func (d *datagramQP) polled(receive bool) {
	if receive {
		d.unpolledRecvs.Add(-1)
	} else {
		d.unpolledSends.Add(-1)
	}
}

// flush completes all requests in state ERR. The caller holds the queue pair's mu.
func (d *datagramQP) flush() {
	d.sendMu.Lock()
	d.flushSends()
	d.sendMu.Unlock()
	d.recvMu.Lock()
	d.flushRecvs()
	d.recvMu.Unlock()
}

// complete makes a completion. If the queue has no room for it, the program is notified.
func (d *datagramQP) complete(c *completionQueue, w *datagramWC) {
	w.of, w.QPN = d, d.qp.num
	count := &d.unpolledSends
	if w.receive {
		count = &d.unpolledRecvs
	}
	count.Add(1)
	if !c.push(w) {
		count.Add(-1)
		if d.qp.engine.log.level >= logWarning {
			d.qp.engine.log.printf(logWarning, "QP 0x%x: its completion queue is full: a completion is lost", d.qp.num)
		}
		c.ctx.tell(eventCQErr, c.cookie, func() bool { return d.qp.engine.cqs.get(c.handle) == c })
	}
}
