//go:build linux

package dropin

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

// A sharedRecv makes an SRQ for the queue pairs of an end.
func (e *end) sharedRecv(most uint32) Handle {
	e.lab.Helper()
	srq, _, bad := e.lab.SRQCreate(e.pd, &SRQAttr{MaxWR: most, MaxSGE: 2}, srqCookie)
	e.lab.must("create SRQ", bad)
	return srq
}

// recvShared posts a receive to an SRQ.
func (e *end) recvShared(srq Handle, id uint64, sgl ...SGE) {
	e.lab.Helper()
	wr := &RecvWR{ID: id, NumSGE: int32(len(sgl))}
	if len(sgl) > 0 {
		wr.SGL = &sgl[0]
	}
	e.lab.must("post", e.lab.SRQPostRecv(srq, wr, nil))
}

// dropped returns how many datagrams a queue pair has dropped for a reason.
func (e *end) dropped(r datagram.Reason) uint64 {
	d := e.lab.qp(e.qp).datagram
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	return d.queue.Dropped()[r]
}

// sibling returns another end with the objects of e, and a queue pair of its own.
func (e *end) sibling() *end {
	e.lab.Helper()
	s := *e
	e.lab.must("create QP", e.lab.QPCreate(e.pd, &s.init))
	s.qp = s.init.QP
	s.to(qpsInit)
	return &s
}

// Queue pairs of UD take the receives of an SRQ in the order in which messages come, and the limit event comes once.
func TestDatagramsTakeFromAnSRQ(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd()
	var srq Handle
	b := l.udEnd(func(e *end) {
		srq = e.sharedRecv(4)
		e.recvShared(srq, 1, e.sge(0, 100)) // before there is a queue pair
		e.init.SRQ = srq
	})
	if b.init.MaxRecvWR != 0 || b.init.MaxRecvSGE != 0 {
		t.Errorf("the queue pair has receives of its own: %+v", b.init)
	}
	c := b.sibling()
	l.must("set the Q_Key", l.QPModify(c.qp, &QPAttr{QKey: testKey}, qpQKey))
	c.to(qpsRTR)
	for id := uint64(2); id <= 4; id++ {
		b.recvShared(srq, id, b.sge(int(id)*100, 100))
	}
	l.want("one too many", l.SRQPostRecv(srq, &RecvWR{}, nil), unix.ENOMEM)
	l.want("post to the queue pair", l.QPPostRecv(b.qp, &RecvWR{}, nil), unix.EINVAL)
	l.must("arm", l.SRQModify(srq, &SRQAttr{Limit: 3}, srqLimit))
	ah := a.ah(AHAttr{})
	fill(a.mem, 9)
	for i, to := range []*end{b, c, b} {
		id := uint64(i + 1)
		a.post(send(wrSend, id, a.sge(i, 50)).at(ah, to.init.QPN, testKey))
		a.want(id, wcSuccess)
		if wc := b.next(); wc.ID != id || wc.QPN != to.init.QPN || wc.Status != wcSuccess || wc.ByteLen != 90 {
			t.Errorf("%+v", wc)
		}
		if at := i*100 + 140; i > 0 && !bytes.Equal(b.mem[at:at+50], a.mem[i:i+50]) {
			t.Errorf("message %d differs", id)
		}
		if i == 0 {
			b.noAsync()
		}
		if i == 1 {
			b.wantAsync(eventSRQLimit, srqCookie)
		}
	}
	b.noAsync()
	l.want("destroy in use", l.SRQDestroy(srq), unix.EBUSY)
	b.to(qpsErr)
	b.wantAsync(eventLastWQE, qpCookie)
	b.none() // receives of an SRQ are not flushed
	l.must("destroy QP", l.QPDestroy(b.qp))
	l.must("destroy QP", l.QPDestroy(c.qp))
	l.must("destroy", l.SRQDestroy(srq))
}

// A sender waits for receives of an SRQ as it does for those of the queue pair.
func TestDatagramsWaitForReceivesOfAnSRQ(t *testing.T) {
	one, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	a := one.udEnd()
	var srq Handle
	b := other.udEnd(func(e *end) { srq = e.sharedRecv(64); e.init.SRQ = srq })
	ah := a.ah(AHAttr{})
	const n = 300
	for i := range uint64(8) {
		b.recvShared(srq, i, b.sge(0, 200))
	}
	sent, got := uint64(0), uint64(0)
	for began := uint64(0); got < n; {
		if began < n && began-sent < 16 {
			a.post(send(wrSend, began, a.sge(0, 100)).at(ah, b.init.QPN, testKey))
			began++
		}
		var wc [4]WC
		sent += uint64(max(one.CQPoll(a.cq, 4, &wc[0]), 0))
		for range other.CQPoll(b.cq, 4, &wc[0]) {
			b.recvShared(srq, got, b.sge(0, 200))
			got++
		}
	}
	if d := b.dropped(datagram.NoReceive); d != 0 {
		t.Errorf("%d datagrams were lost", d)
	}
}

// A message of UC in several fragments keeps its receive, whoever else takes from the SRQ meanwhile.
func TestUnreliableConnectionsTakeFromAnSRQ(t *testing.T) {
	l := newLab(t, ethernetSetting)
	const pairs, messages, size = 2, 10, 200_000
	var from, to []*end
	var srq Handle
	sink := make([]byte, 2*messages*pairs*size)
	for i := range pairs {
		a := l.end(uc)
		b := (*end)(nil)
		if i == 0 {
			b = l.end(uc, func(e *end) { srq = e.sharedRecv(messages * pairs); e.init.SRQ = srq })
			b.mr = b.register(sink, allAccess)
			for id := range uint64(messages * pairs) {
				b.recvShared(srq, id, b.sge(int(id)*size, size))
			}
		} else {
			b = to[0].sibling()
		}
		connectUC(t, a, b, uint32(i+5))
		mem := make([]byte, size)
		fill(mem, i+1)
		a.mr, a.mem = a.register(mem, allAccess), mem
		from, to = append(from, a), append(to, b)
	}
	for i := range uint64(messages) {
		for k := range pairs {
			from[k].post(send(wrSend, i, from[k].sge(0, size)))
		}
		for k := range pairs {
			from[k].want(i, wcSuccess)
		}
		for range pairs {
			wc := to[0].next()
			k := 0
			if wc.QPN == to[1].init.QPN {
				k = 1
			}
			if wc.Status != wcSuccess || wc.ByteLen != size || !bytes.Equal(sink[wc.ID*size:][:size], from[k].mem) {
				t.Fatalf("message %d of pair %d: %+v", i, k, wc)
			}
		}
	}
}

// A UC queue pair that goes to ERR with half a message completes the receive of it as flushed.
func TestUnreliableConnectionFlushesTheReceiveOfAnSRQ(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.end(uc)
	var srq Handle
	b := l.end(uc, func(e *end) { srq = e.sharedRecv(4); e.init.SRQ = srq })
	b.recvShared(srq, 1, b.sge(0, 10))
	b.recvShared(srq, 2, b.sge(0, 10))
	connectUC(t, a, b, 3)
	d := l.qp(b.qp).datagram
	d.recvMu.Lock()
	if d.oldestRecv() == nil {
		t.Error("there is no receive")
	}
	d.recvMu.Unlock()
	b.to(qpsErr)
	b.want(1, wcFlushed)
	b.none()
}

// An SRQ serves either kind of queue pair: what was posted before the first one goes where that takes it.
func TestSRQServesOneKindOfQueuePair(t *testing.T) {
	l := newLab(t, ethernetSetting, "URNIC_LOG=error")
	var srq Handle
	a, b := l.pair(func(e *end) {
		if e.ctx == 1 {
			return
		}
		srq = e.sharedRecv(4)
		e.recvShared(srq, 1, e.sge(0, 100))
		e.recvShared(srq, 2)
		l.must("arm", l.SRQModify(srq, &SRQAttr{Limit: 2}, srqLimit))
		e.init.SRQ = srq
	})
	a.post(send(wrSend, 1, a.sge(0, 100)))
	b.want(1, wcSuccess)
	b.wantAsync(eventSRQLimit, srqCookie)
	init := b.init
	init.Type = qptUD
	l.want("a UD queue pair beside one of RC", l.QPCreate(b.pd, &init), unix.EOPNOTSUPP)

	srq = b.sharedRecv(4)
	init.SRQ = srq
	l.must("a UD queue pair", l.QPCreate(b.pd, &init))
	connected := b.init
	connected.SRQ = srq
	l.want("one of RC beside that", l.QPCreate(b.pd, &connected), unix.EOPNOTSUPP)
	l.must("destroy", l.QPDestroy(init.QP))
	b.recvShared(srq, 5)
	l.must("one of RC", l.QPCreate(b.pd, &connected))
	l.must("destroy", l.QPDestroy(connected.QP))
	l.must("resize", l.SRQModify(srq, &SRQAttr{MaxWR: 2}, srqMaxWR))
	l.must("destroy SRQ", l.SRQDestroy(srq))
}

// A queue that is not yet anybody's is resized and asked as any other.
func TestSRQBeforeAnyQueuePair(t *testing.T) {
	l := newLab(t, ethernetSetting)
	e := l.end()
	srq := e.sharedRecv(2)
	e.recvShared(srq, 1)
	e.recvShared(srq, 2)
	l.want("a third", l.SRQPostRecv(srq, &RecvWR{}, nil), unix.ENOMEM)
	l.want("fewer than there are", l.SRQModify(srq, &SRQAttr{MaxWR: 1}, srqMaxWR), unix.EINVAL)
	l.must("more", l.SRQModify(srq, &SRQAttr{MaxWR: 40, Limit: 2}, srqMaxWR|srqLimit))
	for id := range uint64(38) {
		e.recvShared(srq, id)
	}
	var attr SRQAttr
	l.must("query", l.SRQQuery(srq, &attr))
	if attr != (SRQAttr{MaxWR: 40, MaxSGE: 2, Limit: 2}) {
		t.Errorf("%+v", attr)
	}
	l.want("too many SGEs", l.SRQPostRecv(srq, &RecvWR{NumSGE: 3, SGL: &[]SGE{{}, {}, {}}[0]}, nil), unix.EINVAL)
	e.noAsync()
	l.must("arm", l.SRQModify(srq, &SRQAttr{Limit: 40}, srqLimit))
	l.must("destroy", l.SRQDestroy(srq))
}

// A sender that has found the SRQ empty is told when there are receives.
func TestReceivesOfAnSRQAreToldToWhoWaits(t *testing.T) {
	one, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	a := one.udEnd()
	var srq Handle
	b := other.udEnd(func(e *end) { srq = e.sharedRecv(4); e.init.SRQ = srq })
	ah := a.ah(AHAttr{})
	a.post(send(wrSend, 1, a.sge(0, 10)).at(ah, b.init.QPN, testKey)) // it is lost, and asks
	a.want(1, wcSuccess)
	other.until("it is dropped", func() bool {
		b.none()
		return b.dropped(datagram.NoReceive) == 1
	})
	b.recvShared(srq, 5, b.sge(0, 100))
	d := other.qp(b.qp).datagram
	d.postMu.Lock()
	if len(d.due) != 1 || d.due[0].Room != 1 {
		t.Errorf("told is %+v; want that there is one receive", d.due)
	}
	d.postMu.Unlock()
	b.recvShared(srq, 6, b.sge(0, 100)) // nobody waits any more
	a.post(send(wrSend, 2, a.sge(0, 10)).at(ah, b.init.QPN, testKey))
	a.want(2, wcSuccess)
	b.want(5, wcSuccess)
}
