//go:build linux

package dropin

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/rnic"
)

// A lines is a log that tests look at.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A lab is an engine, whose log a test can look at.
type lab struct {
	testing.TB
	*Engine
	said *lines
}

func newLab(t testing.TB, settings ...string) *lab {
	t.Helper()
	said := new(lines)
	e, err := Open(append([]string{patientTimes}, settings...), said)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	return &lab{TB: t, Engine: e, said: said}
}

// An end is a context of a program with one of everything.
type end struct {
	lab     *lab
	ctx, pd Handle
	async   int // descriptor
	channel Handle
	fd      int // of the channel
	cq      Handle
	init    QPInit // of the queue pair
	qp      Handle

	mem []byte
	mr  Region
}

// Cookies of an end's objects.
const (
	cqCookie  = 101
	qpCookie  = 102
	srqCookie = 103
)

const allAccess = accessLocalWrite | accessRemoteWrite | accessRemoteRead | accessRemoteAtomic | accessMWBind

// must fails a test unless a call has succeeded.
func (l *lab) must(what string, bad Errno) {
	l.Helper()
	if bad != ok {
		l.Fatalf("%s: %v\n%s", what, bad, l.said)
	}
}

// want checks what a call returns.
func (l *lab) want(what string, got, want Errno) {
	l.Helper()
	if got != want {
		l.Errorf("%s: %v; want %v", what, got, want)
	}
}

// end opens a context; change may change the queue pair that is made.
func (l *lab) end(change ...func(*end)) *end {
	l.Helper()
	e := &end{lab: l, mem: make([]byte, 8192)}
	var bad Errno
	e.ctx, e.async, bad = l.ContextOpen(0, 1)
	l.must("open context", bad)
	e.pd, bad = l.PDAlloc(e.ctx)
	l.must("allocate PD", bad)
	e.channel, e.fd, bad = l.ChannelCreate(e.ctx)
	l.must("create channel", bad)
	entries := uint32(512)
	e.cq, bad = l.CQCreate(e.ctx, &entries, e.channel, cqCookie)
	l.must("create CQ", bad)
	e.mr = e.register(e.mem, allAccess)
	e.init = QPInit{Cookie: qpCookie, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 64}
	for _, c := range change {
		c(e)
	}
	l.must("create QP", l.QPCreate(e.pd, &e.init))
	e.qp = e.init.QP
	e.to(qpsInit)
	return e
}

func (e *end) register(mem []byte, access uint32) Region {
	e.lab.Helper()
	addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	r := Region{Addr: addr, Length: uint64(len(mem)), IOVA: addr, Access: access}
	e.lab.must("register", e.lab.MRReg(e.pd, &r))
	return r
}

// to brings the queue pair to a state.
func (e *end) to(state uint32) {
	e.lab.Helper()
	e.lab.must("modify QP to "+stateNames[state], e.lab.QPModify(e.qp, &QPAttr{State: state}, qpState))
}

// state returns the state of the queue pair.
func (e *end) state() uint32 {
	e.lab.Helper()
	var a QPAttr
	e.lab.must("query QP", e.lab.QPQuery(e.qp, &a))
	return a.State
}

// sge names n bytes of the end's memory from at on.
func (e *end) sge(at, n int) SGE {
	return SGE{Addr: e.mr.Addr + uint64(at), Length: uint32(n), LKey: e.mr.STag}
}

// connect connects two ends, as whoever owns a connection does.
func (l *lab) connect(a, b *end) {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := l.device.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		l.Fatal(err)
	}
	defer n.Close()
	done := make(chan error, 1)
	go func() {
		r, err := n.Accept(ctx)
		if err == nil {
			err = r.Accept(ctx, l.Engine.qp(b.qp).verbs, rnic.ConnParam{})
		}
		done <- err
	}()
	if err := l.qp(a.qp).verbs.Connect(ctx, n.Addr().String(), rnic.ConnParam{}); err != nil {
		l.Fatal(err)
	}
	if err := <-done; err != nil {
		l.Fatal(err)
	}
	for _, e := range []*end{a, b} {
		l.Engine.qp(e.qp).connected()
	}
}

// pair returns two ends that are connected.
func (l *lab) pair(change ...func(*end)) (a, b *end) {
	l.Helper()
	a, b = l.end(change...), l.end(change...)
	l.connect(a, b)
	return a, b
}

// A poster is a work request with its SGL.
func send(opcode uint32, id uint64, sgl ...SGE) *SendWR {
	wr := &SendWR{ID: id, Opcode: opcode, Flags: sendSignaled, NumSGE: int32(len(sgl))}
	if len(sgl) > 0 {
		wr.SGL = &sgl[0]
	}
	return wr
}

// toward makes a request one for the memory of an end.
func (w *SendWR) toward(e *end, at int) *SendWR {
	switch w.Opcode {
	case wrCmpSwap, wrFetchAdd:
		w.WR.RemoteAddr, w.WR.RKey = e.mr.Addr+uint64(at), e.mr.STag
	default:
		*w.RDMA() = RDMAWR{RemoteAddr: e.mr.Addr + uint64(at), RKey: e.mr.STag}
	}
	return w
}

// post posts requests as one list.
func (e *end) post(wrs ...*SendWR) {
	e.lab.Helper()
	for i := range wrs[1:] {
		wrs[i].Next = wrs[i+1]
	}
	var bad *SendWR
	e.lab.must("post send", e.lab.QPPostSend(e.qp, wrs[0], &bad))
}

// recv posts a receive.
func (e *end) recv(id uint64, sgl ...SGE) {
	e.lab.Helper()
	wr := &RecvWR{ID: id, NumSGE: int32(len(sgl))}
	if len(sgl) > 0 {
		wr.SGL = &sgl[0]
	}
	e.lab.must("post receive", e.lab.QPPostRecv(e.qp, wr, nil))
}

// next waits for a completion.
func (e *end) next() WC {
	e.lab.Helper()
	var wc WC
	e.lab.until("a completion", func() bool {
		n := e.lab.CQPoll(e.cq, 1, &wc)
		if n < 0 {
			e.lab.Fatalf("poll: %v", Errno(-n))
		}
		return n == 1
	})
	return wc
}

// until waits until something is so.
func (l *lab) until(what string, f func() bool) {
	l.Helper()
	for began := time.Now(); !f(); runtime.Gosched() {
		if time.Since(began) > patience {
			l.Fatalf("%s: it does not come\n%s", what, l.said)
		}
	}
}

// want checks the next completion.
func (e *end) want(id uint64, status uint32) WC {
	e.lab.Helper()
	wc := e.next()
	if wc.ID != id || wc.Status != status || wc.QPN != e.init.QPN {
		e.lab.Errorf("completion %+v; want request %d with status %d of QP 0x%x", wc, id, status, e.init.QPN)
	}
	return wc
}

// none checks that there is no completion.
func (e *end) none() {
	e.lab.Helper()
	var wc WC
	if n := e.lab.CQPoll(e.cq, 1, &wc); n != 0 {
		e.lab.Errorf("poll: %d, %+v; want none", n, wc)
	}
}

// wantAsync waits for an asynchronous event.
func (e *end) wantAsync(typ uint32, cookie uint64) {
	e.lab.Helper()
	e.lab.until("an event", func() bool { return readable(e.lab.TB, e.async) })
	var a Async
	e.lab.must("next event", e.lab.AsyncNext(e.ctx, &a))
	if want := (Async{Type: typ, Cookie: cookie}); a != want {
		e.lab.Errorf("event %+v; want %+v", a, want)
	}
}

// noAsync checks that there is no asynchronous event.
func (e *end) noAsync() {
	e.lab.Helper()
	var a Async
	if bad := e.lab.AsyncNext(e.ctx, &a); bad != unix.EAGAIN || readable(e.lab.TB, e.async) {
		e.lab.Errorf("next event: %v, %+v; want none", bad, a)
	}
}
