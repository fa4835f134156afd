//go:build linux

package dropin

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Memory that can't be used is told by the completion, as hardware does, whether it
// never was registered, is so no more, or is too short; the queue pair is in error.
func TestBadLocalMemory(t *testing.T) {
	for _, opcode := range []uint32{wrSend, wrWrite, wrRead, wrFetchAdd, wrSendImm, wrWriteImm} {
		for name, spoil := range map[string]func(e *end, s *SGE){
			"unknown lkey": func(_ *end, s *SGE) { s.LKey ^= 0x100 },
			"out of range": func(_ *end, s *SGE) { s.Addr += 8185 },
			"freed":        func(e *end, _ *SGE) { e.lab.must("deregister", e.lab.MRDereg(Handle(e.mr.MR))) },
		} {
			l := newLab(t, "URNIC_LOG=warning")
			a, b := l.pair()
			b.recv(1)
			b.recv(2)
			bad := a.sge(0, 8)
			spoil(a, &bad)
			wr := send(opcode, 2, bad).toward(b, 0)
			wr.Flags = 0 // an error completes all the same
			a.post(send(wrSend, 1), wr, send(wrSend, 3))
			a.want(1, wcSuccess)
			a.want(2, wcLocalProtect)
			a.want(3, wcFlushed)
			if a.state() != qpsErr {
				t.Errorf("opcode %d, %s: state %d", opcode, name, a.state())
			}
			a.wantAsync(eventQPFatal, qpCookie)
			if !strings.Contains(l.said.String(), "request 2 completes with status 4") {
				t.Errorf("opcode %d, %s: the log says\n%s", opcode, name, l.said)
			}
		}
	}
}

func TestBadReceives(t *testing.T) {
	for name, c := range map[string]struct {
		length, need int
		spoil        uint32
		status       uint32
	}{
		"unknown lkey": {100, 50, 0x100, wcLocalProtect},
		"too short":    {49, 50, 0, wcLocalLength},
	} {
		l := newLab(t)
		a, b := l.pair()
		s := b.sge(0, c.length)
		s.LKey ^= c.spoil
		b.recv(1, s)
		b.recv(2)
		a.post(send(wrSend, 1, a.sge(0, c.need)))
		b.want(1, c.status)
		b.want(2, wcFlushed)
		l.until(name, func() bool { return a.state() == qpsErr && b.state() == qpsErr })
	}
}

// What the peer does not allow ends the connection at both sides. A Read and an
// atomic tell it by their completions, as they wait for the peer.
func TestBadRemoteMemory(t *testing.T) {
	for _, opcode := range []uint32{wrRead, wrFetchAdd, wrCmpSwap} {
		l := newLab(t)
		a, b := l.pair()
		wr := send(opcode, 1, a.sge(0, 8)).toward(b, 0)
		wr.RDMA().RKey ^= 0x100
		wr.WR.RKey ^= 0x100
		a.post(wr, send(wrRead, 2, a.sge(8, 8)).toward(b, 0))
		if wc := a.want(1, wcRemoteAccess); wc.VendorErr>>8 != 0x01 { // RDMAP, remote protection
			t.Errorf("opcode %d: vendor_err 0x%04x", opcode, wc.VendorErr)
		}
		a.want(2, wcFlushed)
		a.wantAsync(eventQPFatal, qpCookie)
		b.wantAsync(eventQPAccess, qpCookie)
		a.noAsync()
		b.noAsync()
	}
	l := newLab(t)
	a, b := l.pair()
	wr := send(wrWrite, 1, a.sge(0, 8)).toward(b, 0)
	wr.RDMA().RKey ^= 0x100
	a.post(wr) // it has left when the peer finds out
	b.wantAsync(eventQPAccess, qpCookie)
	a.wantAsync(eventQPFatal, qpCookie)
	a.next()
	a.post(send(wrSend, 2))
	if wc := a.want(2, wcFlushed); wc.VendorErr != 0x1100 { // DDP, tagged buffer, invalid STag
		t.Errorf("vendor_err 0x%04x", wc.VendorErr)
	}
}

// A queue pair in error takes requests, and flushes them behind those before.
func TestErrorFlushes(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	a.recv(1)
	a.recv(2)
	a.to(qpsErr)
	a.want(1, wcFlushed)
	a.want(2, wcFlushed)
	quiet := send(wrSend, 3)
	quiet.Flags = 0
	a.post(quiet)
	a.recv(4)
	a.want(3, wcFlushed)
	a.want(4, wcFlushed)
	l.until("the peer hears of it", func() bool { return b.state() == qpsErr })
	b.wantAsync(eventQPFatal, qpCookie)
	b.recv(5)
	b.want(5, wcFlushed)
	a.noAsync() // it was the program
}

// RESET makes all forgotten, and the queue pair as new.
func TestResetStartsAnew(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	for range 2 {
		b.recv(1)
		a.recv(1)
		a.post(send(wrSend, 2))
		b.want(1, wcSuccess)
		for _, e := range []*end{a, b} {
			e.to(qpsErr)
			e.to(qpsReset)
			e.none()
			l.want("post send in RESET", l.QPPostSend(e.qp, send(wrSend, 1), nil), unix.EINVAL)
			l.want("post receive in RESET", l.QPPostRecv(e.qp, &RecvWR{}, nil), unix.EINVAL)
			if e.state() != qpsReset {
				t.Errorf("state %d", e.state())
			}
			e.to(qpsInit)
		}
		l.connect(a, b)
	}
}

// A queue pair that is destroyed leaves nothing behind.
func TestDestroyLeavesNothing(t *testing.T) {
	l := newLab(t)
	a, b := l.pair()
	for id := range uint64(3) {
		b.recv(id)
	}
	a.to(qpsErr)
	l.until("an event", func() bool { return readable(l.TB, b.async) })
	l.want("destroy a CQ in use", l.CQDestroy(b.cq), unix.EBUSY)
	l.want("free a PD in use", l.PDFree(b.pd), unix.EBUSY)
	l.must("destroy", l.QPDestroy(b.qp))
	b.noAsync()
	b.none()
	l.want("destroy again", l.QPDestroy(b.qp), unix.EINVAL)
	l.must("destroy CQ", l.CQDestroy(b.cq))
	l.must("deregister", l.MRDereg(Handle(b.mr.MR)))
	l.must("free PD", l.PDFree(b.pd))
	l.must("close context", l.ContextClose(b.ctx))
	l.want("close again", l.ContextClose(b.ctx), unix.EINVAL)
	l.must("close context", l.ContextClose(a.ctx)) // with all that is in it
	l.want("poll", Errno(-l.CQPoll(a.cq, 1, &WC{})), unix.EINVAL)
}

// The allowed transitions are those of an RC queue pair, and INIT to RTS of iWARP.
func TestStates(t *testing.T) {
	paths := map[uint32][]uint32{
		qpsReset: {}, qpsInit: {qpsInit}, qpsRTR: {qpsInit, qpsRTR}, qpsRTS: {qpsInit, qpsRTR, qpsRTS},
		qpsSQD: {qpsInit, qpsRTS, qpsSQD}, qpsErr: {qpsInit, qpsErr},
	}
	allowed := map[[2]uint32]bool{
		{qpsReset, qpsInit}: true, {qpsInit, qpsInit}: true, {qpsInit, qpsRTR}: true, {qpsInit, qpsRTS}: true, {qpsRTR, qpsRTS}: true,
		{qpsRTS, qpsRTS}: true, {qpsRTS, qpsSQD}: true, {qpsSQD, qpsSQD}: true, {qpsSQD, qpsRTS}: true,
	}
	l := newLab(t)
	e := l.end()
	for from, path := range paths {
		for to := range uint32(9) {
			e.to(qpsReset)
			for _, s := range path {
				e.to(s)
			}
			want := unix.EINVAL
			if to == qpsReset || to == qpsErr || allowed[[2]uint32{from, to}] {
				want = ok
			}
			l.want(stateNames[from]+" to "+string('0'+rune(to)), l.QPModify(e.qp, &QPAttr{State: to}, qpState), want)
			if got := e.state(); want == ok && got != to || want != ok && got != from {
				t.Errorf("from %d to %d: it is in %d", from, to, got)
			}
		}
	}
	e.to(qpsReset)
	l.want("a wrong current state", l.QPModify(e.qp, &QPAttr{State: qpsInit, CurState: qpsRTS}, qpState|qpCurState), unix.EINVAL)
	l.want("an alternate path", l.QPModify(e.qp, &QPAttr{State: qpsInit}, qpState|qpAltPath), unix.EOPNOTSUPP)
	l.want("an unknown attribute", l.QPModify(e.qp, &QPAttr{State: qpsInit}, qpState|1<<30), unix.EINVAL)
	l.want("too deep", l.QPModify(e.qp, &QPAttr{State: qpsInit, MaxReadAtomic: 129}, qpState|qpMaxReadAtomic), unix.EINVAL)
	l.must("with attributes", l.QPModify(e.qp, &QPAttr{State: qpsInit, MaxReadAtomic: 4, Port: 1, Access: 7, Timeout: 9}, qpState|qpMaxReadAtomic|qpPort|qpAccess))
	var a QPAttr
	l.must("query", l.QPQuery(e.qp, &a))
	if a.MaxReadAtomic != 4 || a.Port != 1 || a.Access != 7 || a.Timeout != 0 || a.CurState != qpsInit || a.MaxSendWR != 64 || a.MaxInline != 64 {
		t.Errorf("%+v", a)
	}
}

// A new queue pair of an iWARP device is in the state INIT, as such devices have no RESET,
// and tells the rights that the peer has; one of another device is in the state RESET.
// Both tell the capacities that they have got.
func TestQueryOfANewQueuePair(t *testing.T) {
	const rights = accessLocalWrite | accessRemoteWrite | accessRemoteRead | accessRemoteAtomic
	for transport, want := range map[string]struct{ state, access, sends uint32 }{
		"iwarp": {qpsInit, rights, 5}, "ethernet": {qpsReset, 0, leastAcknowledged},
	} {
		l := newLab(t, "URNIC_TRANSPORT="+transport)
		e := l.end()
		init := e.init
		init.MaxSendWR, init.MaxRecvWR, init.MaxSendSGE, init.MaxRecvSGE, init.MaxInline = 5, 6, 7, 3, 40
		l.must("create QP", l.QPCreate(e.pd, &init))
		var a QPAttr
		l.must("query", l.QPQuery(init.QP, &a))
		if a.State != want.state || a.CurState != want.state || a.Access != want.access {
			t.Errorf("%s: state %d and %d, access 0x%x; want %d and 0x%x", transport, a.State, a.CurState, a.Access, want.state, want.access)
		}
		if a.MaxSendWR != want.sends || a.MaxRecvWR != 6 || a.MaxSendSGE < 7 || a.MaxRecvSGE < 3 || a.MaxInline != 40 {
			t.Errorf("%s: %+v", transport, a)
		}
		if posts := l.QPPostRecv(init.QP, &RecvWR{}, nil) == ok; posts != (want.state == qpsInit) {
			t.Errorf("%s: a receive can be posted: %v", transport, posts)
		}
		l.must("modify to INIT", l.QPModify(init.QP, &QPAttr{State: qpsInit, CurState: want.state, Port: 1, Access: accessRemoteRead}, qpState|qpCurState|qpPort|qpAccess))
		l.must("query", l.QPQuery(init.QP, &a))
		if a.State != qpsInit || a.Access != accessRemoteRead {
			t.Errorf("%s, modified: %+v", transport, a)
		}
		l.must("modify to RESET", l.QPModify(init.QP, &QPAttr{State: qpsReset}, qpState))
		l.must("query", l.QPQuery(init.QP, &a))
		if a.State != qpsReset || a.Access != want.access {
			t.Errorf("%s, reset: %+v", transport, a)
		}
	}
}

// The status of a connection that could not be made is that of the first Send.
func TestFailedConnection(t *testing.T) {
	l := newLab(t)
	e := l.end()
	e.recv(1)
	e.post(send(wrSend, 2), send(wrSend, 3))
	l.Engine.qp(e.qp).failed(wcRetryExceeded)
	e.want(2, wcRetryExceeded)
	e.want(3, wcFlushed)
	e.want(1, wcFlushed)
	if e.state() != qpsErr {
		t.Errorf("state %d", e.state())
	}
}

func TestSRQ(t *testing.T) {
	l := newLab(t)
	var srq Handle
	var attr SRQAttr
	shared := func(e *end) {
		if e.ctx == 1 {
			return
		}
		attr = SRQAttr{MaxWR: 10, MaxSGE: 2, Limit: 5}
		var num uint32
		var bad Errno
		srq, num, bad = l.SRQCreate(e.pd, &attr, srqCookie)
		l.must("create SRQ", bad)
		if num == 0 || attr.MaxWR < 10 || attr.MaxSGE < 2 || attr.Limit != 0 { // the limit is not armed by create
			t.Errorf("number %d, %+v", num, attr)
		}
		e.init.SRQ = srq
	}
	a, b := l.pair(shared)
	l.want("post to the queue pair", l.QPPostRecv(b.qp, &RecvWR{}, nil), unix.EINVAL)
	recvs := []RecvWR{{ID: 1}, {ID: 2}, {ID: 3}}
	recvs[0].Next, recvs[1].Next = &recvs[1], &recvs[2]
	l.must("post", l.SRQPostRecv(srq, &recvs[0], nil))
	l.must("arm", l.SRQModify(srq, &SRQAttr{Limit: 2}, srqLimit))
	l.must("query", l.SRQQuery(srq, &attr))
	if attr.Limit != 2 {
		t.Errorf("%+v", attr)
	}
	a.post(send(wrSend, 1))
	b.want(1, wcSuccess)
	b.noAsync()
	a.post(send(wrSend, 2))
	b.want(2, wcSuccess)
	b.wantAsync(eventSRQLimit, srqCookie)
	l.must("query", l.SRQQuery(srq, &attr))
	if attr.Limit != 0 {
		t.Errorf("%+v", attr)
	}
	l.want("a limit too high", l.SRQModify(srq, &SRQAttr{Limit: 11}, srqLimit), unix.EINVAL)
	l.must("resize", l.SRQModify(srq, &SRQAttr{MaxWR: 20, Limit: 15}, srqMaxWR|srqLimit))
	b.wantAsync(eventSRQLimit, srqCookie) // there are fewer at once
	l.want("destroy in use", l.SRQDestroy(srq), unix.EBUSY)
	b.to(qpsErr)
	b.wantAsync(eventLastWQE, qpCookie)
	b.none() // receives of an SRQ are not flushed
	l.must("destroy QP", l.QPDestroy(b.qp))
	l.must("destroy", l.SRQDestroy(srq))
	l.want("destroy again", l.SRQDestroy(srq), unix.EINVAL)
}

// A queue that overflows fails, and with it its queue pairs.
func TestCQOverflow(t *testing.T) {
	l := newLab(t)
	a := l.end()
	for id := range uint64(4) {
		a.recv(id)
	}
	entries := uint32(3)
	l.must("resize", l.CQResize(a.cq, &entries))
	if entries < 3 {
		t.Errorf("%d entries", entries)
	}
	for id := range uint64(entries) - 3 {
		a.recv(id)
	}
	a.to(qpsErr)
	a.wantAsync(eventCQErr, cqCookie)
	entries = 1
	l.want("resize below what is in it", l.CQResize(a.cq, &entries), unix.EINVAL)
	for id := range uint64(3) {
		a.want(id, wcFlushed)
	}
	l.want("arm", l.CQArm(a.cq, false), unix.EINVAL)
}
