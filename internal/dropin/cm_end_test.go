//go:build linux

package dropin

import (
	"net"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"urnic/internal/test/leakcheck"
)

func TestEndOfAConnectionIsToldOnceToBothSides(t *testing.T) {
	for name, end := range map[string]func(l *cmLab, from, to *cmEnd){
		"disconnect": func(l *cmLab, from, _ *cmEnd) { l.must("disconnect", l.IDDisconnect(from.id)) },
		"disconnect of both": func(l *cmLab, from, to *cmEnd) {
			l.must("disconnect", l.IDDisconnect(from.id))
			l.must("disconnect", l.IDDisconnect(to.id))
		},
		"queue pair to ERR":  func(l *cmLab, _, to *cmEnd) { l.must("modify", l.QPModify(to.qp, &QPAttr{State: qpsErr}, qpState)) },
		"queue pair is gone": func(l *cmLab, from, _ *cmEnd) { l.must("destroy QP", l.QPDestroy(from.qp)) },
		"a Write to nowhere": func(l *cmLab, from, _ *cmEnd) {
			src := l.region(make([]byte, 8), 0)
			wr := SendWR{ID: 1, Opcode: wrWrite, SGL: &SGE{Addr: src.IOVA, Length: 8, LKey: src.STag}, NumSGE: 1}
			*wr.RDMA() = RDMAWR{RemoteAddr: 1, RKey: 1}
			l.must("post write", l.QPPostSend(from.qp, &wr, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newCMLab(t)
			a, b := l.port(), l.port()
			from, to, _ := l.connect(a, b, "127.0.0.1:0")
			end(l, &from, &to)
			a.wantEvent(cmDisconnected, 1)
			b.wantEvent(cmDisconnected, 2)
			for _, e := range []*cmEnd{&from, &to} {
				l.want("disconnect what is over", l.IDDisconnect(e.id), ok)
				l.must("destroy", l.IDDestroy(e.id))
			}
			a.none()
			b.none()
		})
	}
}

// A message that waits for a receive keeps nobody from disconnecting.
func TestDisconnectWhileAMessageWaitsForAReceive(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	from, to, _ := l.connect(a, b, "127.0.0.1:0")
	from.send(1)
	from.completion(1, wcSuccess)
	l.must("disconnect", l.IDDisconnect(to.id))
	a.wantEvent(cmDisconnected, 1)
	b.wantEvent(cmDisconnected, 2)
}

// What was posted before a disconnect arrives, even if the program gives all up at
// once.
func TestDisconnectLetsWhatIsPostedArrive(t *testing.T) {
	const n = 100_000
	for name, giveUp := range map[string]func(l *cmLab, e *cmEnd){
		"waits": func(*cmLab, *cmEnd) {},
		"destroys the queue pair": func(l *cmLab, e *cmEnd) {
			l.must("destroy QP", l.QPDestroy(e.qp))
			l.must("destroy", l.IDDestroy(e.id))
		},
		"destroys the id": func(l *cmLab, e *cmEnd) {
			l.must("destroy", l.IDDestroy(e.id))
			l.must("destroy QP", l.QPDestroy(e.qp))
		},
		"destroys without saying so": nil,
	} {
		t.Run(name, func(t *testing.T) {
			l := newCMLab(t)
			a, b := l.port(), l.port()
			from, to, _ := l.connect(a, b, "127.0.0.1:0")
			source, sink := make([]byte, n), make([]byte, n)
			for i := range source {
				source[i] = byte(i * 7)
			}
			src, dst := l.region(source, 0), l.region(sink, accessLocalWrite)
			for i := range uint64(3) {
				wr := RecvWR{ID: i, SGL: &SGE{Addr: dst.IOVA, Length: n, LKey: dst.STag}, NumSGE: 1}
				l.must("post receive", l.QPPostRecv(to.qp, &wr, nil))
			}
			for i := range uint64(2) {
				wr := SendWR{ID: i, Opcode: wrSend, Flags: sendSignaled, SGL: &SGE{Addr: src.IOVA, Length: n, LKey: src.STag}, NumSGE: 1}
				l.must("post send", l.QPPostSend(from.qp, &wr, nil))
			}
			if giveUp == nil {
				from.completion(0, wcSuccess)
				from.completion(1, wcSuccess)
				l.must("destroy QP", l.QPDestroy(from.qp))
			} else {
				l.must("disconnect", l.IDDisconnect(from.id))
				giveUp(l, &from)
			}
			to.completion(0, wcSuccess)
			to.completion(1, wcSuccess)
			to.completion(2, wcFlushed)
			if !slices.Equal(source, sink) {
				t.Error("what has arrived differs")
			}
			b.wantEvent(cmDisconnected, 2)
			b.none()
		})
	}
}

func (l *cmLab) region(mem []byte, access uint32) Region {
	l.Helper()
	mr := regionOf(mem)
	mr.Access = access
	l.must("register", l.MRReg(l.pd, &mr))
	return mr
}

// A disconnect that comes too early waits for its connection.
func TestDisconnectOfAConnectionThatIsBeingMade(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	_, where := b.listen(3, "127.0.0.1:0")
	id := a.routed(1, where)
	l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
	l.must("disconnect", l.IDDisconnect(id))
	request := b.wantEvent(cmConnectRequest, 3)
	l.want("disconnect a request", l.IDDisconnect(request.NewID), ok)
	l.must("accept", l.IDAccept(request.NewID, param(l.qp(l.cq), "")))
	b.wantEvent(cmEstablished, 0)
	a.wantEvent(cmEstablished, 1)
	a.wantEvent(cmDisconnected, 1)
	b.wantEvent(cmDisconnected, 0)
}

// An id can be destroyed at any time. Its events go with it, and nothing of it is
// left.
func TestDestroyInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, l *cmLab, a *cmPort) Handle{
		"idle": func(_ *testing.T, _ *cmLab, a *cmPort) Handle { return a.id(1) },
		"bound": func(_ *testing.T, l *cmLab, a *cmPort) Handle {
			id := a.id(1)
			l.must("bind", l.IDBind(id, at("127.0.0.1:0")))
			return id
		},
		"listening": func(_ *testing.T, _ *cmLab, a *cmPort) Handle { id, _ := a.listen(1, "127.0.0.1:0"); return id },
		"with an event of its own": func(_ *testing.T, l *cmLab, a *cmPort) Handle {
			id := a.id(1)
			l.must("resolve", l.IDResolveAddr(id, nil, at("127.0.0.1:1")))
			return id
		},
		"routed": func(t *testing.T, _ *cmLab, a *cmPort) Handle { return a.routed(1, newStranger(t).where) },
		"connecting to who never answers": func(t *testing.T, l *cmLab, a *cmPort) Handle {
			s, came := newStranger(t), make(chan struct{}, 1)
			s.serve(func(net.Conn) { came <- struct{}{} })
			id := a.routed(1, s.where)
			l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
			<-came
			return id
		},
		"connecting to who does not even take it": func(t *testing.T, l *cmLab, a *cmPort) Handle {
			id := a.routed(1, newStranger(t).where)
			l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
			return id
		},
		"refused": func(t *testing.T, l *cmLab, a *cmPort) Handle {
			s := newStranger(t)
			_ = s.Close()
			id := a.routed(1, s.where)
			l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
			return id
		},
		"connected": func(_ *testing.T, l *cmLab, a *cmPort) Handle {
			from, _, _ := l.connect(a, l.port(), "127.0.0.1:0")
			return from.id
		},
		"disconnecting": func(_ *testing.T, l *cmLab, a *cmPort) Handle {
			from, _, _ := l.connect(a, l.port(), "127.0.0.1:0")
			l.must("disconnect", l.IDDisconnect(from.id))
			return from.id
		},
	} {
		t.Run(name, func(t *testing.T) {
			leakcheck.Check(t)
			l := newCMLab(t)
			a := l.port()
			id := prepare(t, l, a)
			local := l.local(id)
			l.must("destroy", l.IDDestroy(id))
			a.none()
			for what, got := range map[string]Errno{
				"destroy": l.IDDestroy(id), "bind": l.IDBind(id, at("127.0.0.1:0")), "addresses": l.IDAddrs(id, new(CMAddrs)),
				"cookie": l.IDSetCookie(id, 2), "migrate": l.IDMigrate(id, a.evch),
			} {
				l.want(what+" of what is destroyed", got, syscall.EINVAL)
			}
			if name != "disconnecting" && name != "connected" && local.port != 0 {
				l.must("bind to its port", l.IDBind(a.id(2), local.raw()))
			}
		})
	}
}

// A listener that is destroyed takes the requests along that nobody has fetched;
// those that were fetched can be answered still.
func TestDestroyOfAListenerRejectsItsRequests(t *testing.T) {
	for _, how := range []string{"the listener", "its channel"} {
		t.Run(how, func(t *testing.T) {
			l := newCMLab(t)
			a, b := l.port(), l.port()
			listener, where := b.listen(3, "127.0.0.1:0")
			var ids []Handle
			ask := func(cookie uint64) {
				id := l.port().routed(cookie, where)
				l.must("migrate", l.IDMigrate(id, a.evch))
				ids = append(ids, id)
				l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
			}
			ask(1)
			fetched := b.wantEvent(cmConnectRequest, 3)
			ask(2)
			ask(3)
			waitFor(t, "two requests", func() bool { return l.pending(listener) == 2 })
			if how == "the listener" {
				l.must("destroy", l.IDDestroy(listener))
				b.none()
			} else {
				l.must("destroy channel", l.EvchDestroy(b.evch))
				l.want("destroy it again", l.EvchDestroy(b.evch), syscall.EINVAL)
				l.want("next event of it", l.EvchNext(b.evch, new(CMEvent)), syscall.EINVAL)
				ask(4) // nobody would hear of it
			}
			for range len(ids) - 1 {
				if ev := a.next(); ev.Type != cmRejected || ev.Cookie == 1 || ev.Status != -int32(syscall.ECONNREFUSED) {
					t.Errorf("event %d of %d, status %d; want REJECTED", ev.Type, ev.Cookie, ev.Status)
				}
			}
			l.must("accept", l.IDAccept(fetched.NewID, param(l.qp(l.cq), "")))
			a.wantEvent(cmEstablished, 1)
			l.must("destroy", l.IDDestroy(fetched.NewID))
			a.wantEvent(cmDisconnected, 1)
		})
	}
}

// pending returns how many requests of a listener wait to be fetched.
func (l *cmLab) pending(id Handle) int {
	v := l.ids.get(id)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pending
}

// waitFor waits for a condition that nothing tells of.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in %v", what, patience)
		}
	}
}

// An id that is destroyed without an answer to its request rejects it.
func TestDestroyOfARequestRejectsIt(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	_, where := b.listen(3, "127.0.0.1:0")
	l.must("connect", l.IDConnect(a.routed(1, where), param(l.qp(l.cq), "")))
	request := b.wantEvent(cmConnectRequest, 3)
	l.must("destroy", l.IDDestroy(request.NewID))
	a.wantFailure(cmRejected, 1, syscall.ECONNREFUSED)
}

// Events that wait move with their id, in order, and those of others stay.
func TestMigrationMovesTheEventsThatWait(t *testing.T) {
	l := newCMLab(t)
	old, next := l.port(), l.port()
	stays, moves := old.id(1), old.id(2)
	for _, id := range []Handle{stays, moves} {
		l.must("resolve", l.IDResolveAddr(id, nil, at("127.0.0.1:1")))
		l.must("resolve route", l.IDResolveRoute(id))
	}
	l.want("migrate to nowhere", l.IDMigrate(moves, 999), syscall.EINVAL)
	l.must("migrate to where it is", l.IDMigrate(moves, old.evch))
	l.must("migrate", l.IDMigrate(moves, next.evch))
	old.wantEvent(cmAddrResolved, 1)
	old.wantEvent(cmRouteResolved, 1)
	old.none()
	l.must("set cookie", l.IDSetCookie(moves, 3))
	next.wantEvent(cmAddrResolved, 3)
	next.wantEvent(cmRouteResolved, 3)
	next.none()
}

// An id that a request has made tells its events where the request was told, until
// it is migrated.
func TestMigrationOfListenersAndRequests(t *testing.T) {
	l := newCMLab(t)
	a, b, c, d := l.port(), l.port(), l.port(), l.port()
	listener, where := b.listen(3, "127.0.0.1:0")
	ask := func(cookie uint64) { l.must("connect", l.IDConnect(a.routed(cookie, where), param(l.qp(l.cq), ""))) }
	ask(1)
	waitFor(t, "a request", func() bool { return l.pending(listener) == 1 })
	l.must("migrate", l.IDMigrate(listener, c.evch))
	b.none()
	first := c.wantEvent(cmConnectRequest, 3)
	l.must("accept", l.IDAccept(first.NewID, param(l.qp(l.cq), "")))
	c.wantEvent(cmEstablished, 0)
	a.wantEvent(cmEstablished, 1)
	ask(2)
	second := c.wantEvent(cmConnectRequest, 3)
	l.must("migrate", l.IDMigrate(second.NewID, d.evch))
	l.must("accept", l.IDAccept(second.NewID, param(l.qp(l.cq), "")))
	d.wantEvent(cmEstablished, 0)
	l.must("destroy channel", l.EvchDestroy(d.evch))
	l.must("migrate from a channel that is gone", l.IDMigrate(second.NewID, b.evch))
	l.must("disconnect", l.IDDisconnect(second.NewID))
	b.wantEvent(cmDisconnected, 0)
	c.none()
}

// An engine that ends with ids in all states leaves nothing behind.
func TestEngineEndsItsIDs(t *testing.T) {
	leakcheck.Check(t)
	l := newCMLab(t)
	a, b := l.port(), l.port()
	_, _, listener := l.connect(a, b, "127.0.0.1:0")
	where := l.local(listener)
	l.must("connect", l.IDConnect(a.routed(5, where), param(l.qp(l.cq), "")))
	b.wantEvent(cmConnectRequest, 3)
	s := newStranger(t)
	l.must("connect", l.IDConnect(a.routed(6, s.where), param(l.qp(l.cq), "")))
	a.routed(7, where)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", where.String()); err == nil {
		t.Error("it still listens")
	}
}

// regionOf describes memory as a program does.
func regionOf(mem []byte) Region {
	addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	return Region{Addr: addr, IOVA: addr, Length: uint64(len(mem))}
}
