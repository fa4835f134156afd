//go:build linux

package dropin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urnic/mpa"
	"urnic/rnic"
)

// The peer sees the depths from its side: what one wants to do, the other has to
// bear.
func TestRequestTellsWhatThePeerWants(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	listener, where := b.listen(3, "0.0.0.0:0")
	if !where.isAny() || where.port == 0 {
		t.Errorf("it listens at %v", where)
	}
	where.ip = netip.MustParseAddr("127.0.0.1")
	id := a.routed(1, where)
	p := param(l.qp(l.cq), "ask")
	p.ResponderResources, p.InitiatorDepth = 5, 7
	l.must("connect", l.IDConnect(id, p))
	request := b.wantEvent(cmConnectRequest, 3)
	if request.NewID == 0 || request.data() != "ask" || request.ResponderResources != 7 || request.InitiatorDepth != 5 {
		t.Errorf("request %d with %q, responder resources %d, initiator depth %d; want 7, 5",
			request.NewID, request.data(), request.ResponderResources, request.InitiatorDepth)
	}
	local, peer := l.addrs(request.NewID)
	if clientLocal, _ := l.addrs(id); local != where || peer != clientLocal {
		t.Errorf("the request came from %v to %v; want %v, %v", peer, local, clientLocal, where)
	}
	l.must("set cookie", l.IDSetCookie(request.NewID, 2))
	p = param(l.qp(l.cq), "answer")
	p.ResponderResources, p.InitiatorDepth = 4, maxDepth
	l.must("accept", l.IDAccept(request.NewID, p))
	// Of 7 and 4, and of 5 and as much as there is.
	for _, tt := range []struct {
		ev          CMEvent
		resp, depth uint32
		data        string
	}{{b.wantEvent(cmEstablished, 2), 4, 5, ""}, {a.wantEvent(cmEstablished, 1), 5, 4, "answer"}} {
		if tt.ev.ResponderResources != tt.resp || tt.ev.InitiatorDepth != tt.depth || tt.ev.data() != tt.data || tt.ev.NewID != 0 {
			t.Errorf("established with responder resources %d, initiator depth %d, %q; want %d, %d, %q",
				tt.ev.ResponderResources, tt.ev.InitiatorDepth, tt.ev.data(), tt.resp, tt.depth, tt.data)
		}
	}
	if got := l.local(request.NewID).ip.String(); got != "127.0.0.1" {
		t.Errorf("the connection is at %s", got)
	}
	l.must("destroy", l.IDDestroy(listener))
}

// A program may be told to connect a moment before the peer listens.
func TestConnectWaitsForAPeerThatIsGoingToListen(t *testing.T) {
	l := newCMLab(t, "URNIC_LOG=debug")
	l.times.refused = time.Hour
	refused := make(chan struct{})
	l.log.w = &watcher{text: "trying again", seen: refused, w: l.log.w}
	a, b := l.port(), l.port()
	listener := b.id(3)
	l.must("bind", l.IDBind(listener, at("127.0.0.1:0")))
	l.must("connect", l.IDConnect(a.routed(1, l.local(listener)), param(l.qp(l.cq), "")))
	<-refused
	a.none()
	l.must("listen", l.IDListen(listener, 1))
	request := b.wantEvent(cmConnectRequest, 3)
	l.must("accept", l.IDAccept(request.NewID, param(l.qp(l.cq), "")))
	b.wantEvent(cmEstablished, 0)
	a.wantEvent(cmEstablished, 1)
}

// A watcher tells once that a text has been written.
type watcher struct {
	text string
	seen chan struct{}
	once sync.Once
	w    io.Writer
}

func (w *watcher) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.text)) {
		w.once.Do(func() { close(w.seen) })
	}
	return w.w.Write(b)
}

func TestDepthsOfAConnection(t *testing.T) {
	for n, want := range map[uint32]int{0: -1, 1: 1, 128: 128, 254: 254, maxDepth: rnic.MaxDepth} {
		if got := depth(n); got != want {
			t.Errorf("depth %d becomes %d; want %d", n, got, want)
		}
	}
}

func TestRejectTellsTheReason(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	_, where := b.listen(3, "127.0.0.1:0")
	for _, reason := range []string{"", "not today", strings.Repeat("x", 255)} {
		id, qp := a.routed(1, where), l.qp(l.cq)
		l.must("connect", l.IDConnect(id, param(qp, "")))
		request := b.wantEvent(cmConnectRequest, 3)
		l.must("reject", l.IDReject(request.NewID, []byte(reason)))
		if ev := a.wantFailure(cmRejected, 1, syscall.ECONNREFUSED); ev.data() != reason {
			t.Errorf("the reason is %q; want %q", ev.data(), reason)
		}
		l.want("reject again", l.IDReject(request.NewID, nil), syscall.EINVAL)
		l.want("accept now", l.IDAccept(request.NewID, param(l.qp(l.cq), "")), syscall.EINVAL)
		l.want("connect again", l.IDConnect(id, param(qp, "")), syscall.EINVAL)
		l.must("destroy", l.IDDestroy(id))
		// The queue pair is as it was.
		second := a.routed(2, where)
		l.must("connect another id", l.IDConnect(second, param(qp, "")))
		request = b.wantEvent(cmConnectRequest, 3)
		l.must("accept", l.IDAccept(request.NewID, param(l.qp(l.cq), "")))
		b.wantEvent(cmEstablished, 0)
		a.wantEvent(cmEstablished, 2)
		l.must("destroy", l.IDDestroy(request.NewID))
		a.wantEvent(cmDisconnected, 2)
	}
	a.none()
	b.none()
}

func TestParametersThatCantBeAreRefused(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	_, where := b.listen(3, "127.0.0.1:0")
	id, qp := a.routed(1, where), l.qp(l.cq)
	long := strings.Repeat("x", mpa.MaxPrivateData-mpa.EnhancedLen+1)
	noData := param(qp, "x")
	noData.PrivateData = nil
	refused := map[string]*ConnParam{
		"none": nil, "no queue pair": param(0, ""), "a queue pair of nobody's": param(999, ""),
		"too much private data": param(qp, long), "private data at no address": noData,
	}
	for name, p := range refused {
		l.want("connect with "+name, l.IDConnect(id, p), syscall.EINVAL)
	}
	l.must("connect", l.IDConnect(id, param(qp, long[1:])))
	request := b.wantEvent(cmConnectRequest, 3)
	if request.data() != long[1:] {
		t.Errorf("%d bytes of private data arrive", request.PrivateDataLen)
	}
	for name, p := range refused {
		l.want("accept with "+name, l.IDAccept(request.NewID, p), syscall.EINVAL)
	}
	l.want("reject with too much private data", l.IDReject(request.NewID, []byte(long)), syscall.EINVAL)
	l.must("accept after all", l.IDAccept(request.NewID, param(l.qp(l.cq), long[1:])))
	b.wantEvent(cmEstablished, 0)
	if ev := a.wantEvent(cmEstablished, 1); ev.data() != long[1:] {
		t.Errorf("%d bytes of private data come back", ev.PrivateDataLen)
	}
	second := a.routed(2, where)
	l.want("connect a queue pair that is connected", l.IDConnect(second, param(qp, "")), syscall.EINVAL)
	l.must("connect", l.IDConnect(second, param(l.qp(l.cq), "")))
	request = b.wantEvent(cmConnectRequest, 3)
	l.want("accept with a queue pair that is connected", l.IDAccept(request.NewID, param(qp, "")), syscall.EINVAL)
	l.must("accept with another one", l.IDAccept(request.NewID, param(l.qp(l.cq), "")))
	a.wantEvent(cmEstablished, 2)
}

// A peer is a stranger's end of a TCP connection.
type stranger struct {
	testing.TB
	net.Listener
	where endpoint
}

func newStranger(t testing.TB) *stranger {
	t.Helper()
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	a := netip.MustParseAddrPort(n.Addr().String())
	return &stranger{t, n, endpoint{ip: a.Addr(), port: a.Port()}}
}

// serve treats each connection in that way, until the test ends.
func (s *stranger) serve(f func(c net.Conn)) {
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			f(c)
		}
	}()
}

// How a connection fails is told as the kernel's connection manager does.
func TestConnectionsThatDontComeAbout(t *testing.T) {
	readAll := func(c net.Conn) { _, _ = c.Read(make([]byte, 1024)) }
	for _, tt := range []struct {
		name   string
		peer   func(c net.Conn) // nil: nobody is there
		typ    uint32
		status Errno
	}{
		{"nobody listens", nil, cmRejected, syscall.ECONNREFUSED}, // and there is no time for somebody to come
		{"it hangs up", func(c net.Conn) { readAll(c); _ = c.Close() }, cmRejected, syscall.ECONNRESET},
		{"it resets the connection", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }, cmRejected, syscall.ECONNRESET},
		{"it never answers", func(c net.Conn) {}, cmUnreachable, syscall.ETIMEDOUT},
		{"it speaks something else", func(c net.Conn) { readAll(c); _, _ = c.Write(bytes.Repeat([]byte("HTTP/1.1 400 "), 40)) }, cmConnectError, syscall.EPROTO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			times := "URNIC_TIMES=reply=1h,refused=0s"
			if tt.typ == cmUnreachable {
				times = "URNIC_TIMES=reply=100ms,refused=0s"
			}
			l := newCMLab(t, times)
			a := l.port()
			s := newStranger(t)
			if tt.peer == nil {
				_ = s.Close()
			} else {
				s.serve(tt.peer)
			}
			id, qp := a.routed(1, s.where), l.qp(l.cq)
			l.must("connect", l.IDConnect(id, param(qp, "")))
			a.wantFailure(tt.typ, 1, tt.status)
			a.none()
			l.want("disconnect", l.IDDisconnect(id), ok)
			l.must("destroy", l.IDDestroy(id))
			l.want("destroy again", l.IDDestroy(id), syscall.EINVAL)
			l.must("destroy QP", l.QPDestroy(qp))
		})
	}
}

func TestErrnoOfAFailedStartup(t *testing.T) {
	for _, tt := range []struct {
		err    error
		typ    uint32
		status Errno
	}{
		{syscall.EHOSTUNREACH, cmConnectError, syscall.EHOSTUNREACH},
		{syscall.ETIMEDOUT, cmUnreachable, syscall.ETIMEDOUT},
		{&mpa.Error{Code: mpa.CodeInsufficientIRD}, cmConnectError, syscall.EPROTO},
		{&mpa.Error{Code: mpa.CodeConnectionLost}, cmRejected, syscall.ECONNRESET},
		{errors.New("whatever"), cmConnectError, syscall.EINVAL},
	} {
		if ev := failure(tt.err); ev.Type != tt.typ || ev.Status != -int32(tt.status) {
			t.Errorf("%v: event %d, status %d; want %d, %d", tt.err, ev.Type, ev.Status, tt.typ, -int32(tt.status))
		}
	}
}

// A plain side is a queue pair of package rnic, as other programs have it.
func plainSide(t testing.TB, cfg rnic.Config) (*rnic.Device, *rnic.QP, *rnic.CQ) {
	t.Helper()
	d, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := d.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	cq, err := d.CreateCQ(rnic.CQAttr{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	return d, q, cq
}

// One that knows less of MPA than this side asks for gets what it knows.
func TestPeersOfAnyRevision(t *testing.T) {
	for name, cfg := range map[string]mpa.Config{
		"peer-to-peer": {}, "revision 2": {Revision: mpa.Revision2}, "revision 1": {Revision: mpa.Revision1},
	} {
		t.Run(name+" responds", func(t *testing.T) {
			l := newCMLab(t)
			a := l.port()
			d, q, cq := plainSide(t, rnic.Config{MPA: cfg})
			n, err := d.Listen(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			end := cmEnd{port: a, cq: l.newCQ()}
			end.qp = l.qp(end.cq)
			where := netip.MustParseAddrPort(n.Addr().String())
			end.id = a.routed(1, endpoint{ip: where.Addr(), port: where.Port()})
			before := l.local(end.id)
			l.must("connect", l.IDConnect(end.id, param(end.qp, "to a plain one")))
			r, err := n.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if string(r.PrivateData()) != "to a plain one" {
				t.Errorf("private data %q", r.PrivateData())
			}
			if err := r.Accept(t.Context(), q, rnic.ConnParam{PrivateData: []byte("back")}); err != nil {
				t.Fatal(err)
			}
			if ev := a.wantEvent(cmEstablished, 1); ev.data() != "back" {
				t.Errorf("private data %q", ev.data())
			}
			if l.local(end.id) != before {
				t.Errorf("it is at %v, but said %v", l.local(end.id), before)
			}
			if p, _ := q.Params(); p.PeerToPeer == (cfg.Revision == mpa.Revision1) {
				t.Errorf("peer-to-peer: %t", p.PeerToPeer)
			}
			plainExchange(t, &end, q, cq)
		})
		t.Run(name+" initiates", func(t *testing.T) {
			l := newCMLab(t)
			b := l.port()
			_, q, cq := plainSide(t, rnic.Config{MPA: cfg})
			_, where := b.listen(3, "127.0.0.1:0")
			connected := make(chan error, 1)
			go func() { connected <- q.Connect(t.Context(), where.String(), rnic.ConnParam{IRD: 3, ORD: 2}) }()
			request := b.wantEvent(cmConnectRequest, 3)
			want := [2]uint32{2, 3}
			if cfg.Revision == mpa.Revision1 { // which does not tell
				want = [2]uint32{rnic.MaxDepth, rnic.MaxDepth}
			}
			if got := [2]uint32{request.ResponderResources, request.InitiatorDepth}; got != want {
				t.Errorf("depths %d; want %d", got, want)
			}
			end := cmEnd{port: b, id: request.NewID, cq: l.newCQ()}
			end.qp = l.qp(end.cq)
			l.must("accept", l.IDAccept(end.id, param(end.qp, "")))
			b.wantEvent(cmEstablished, 0)
			if err := <-connected; err != nil {
				t.Fatal(err)
			}
			plainExchange(t, &end, q, cq)
		})
	}
}

// plainExchange sends a message each way, the first from the plain side, and lets
// that end the connection.
func plainExchange(t testing.TB, end *cmEnd, q *rnic.QP, cq *rnic.CQ) {
	t.Helper()
	wait := func(id uint64) {
		t.Helper()
		var wcs [1]rnic.WC
		if _, err := cq.Wait(context.Background(), wcs[:]); err != nil || wcs[0].ID != id || wcs[0].Err() != nil {
			t.Fatalf("completion %+v, %v; want %d", wcs[0], err, id)
		}
	}
	if p, _ := q.Params(); p.Revision == mpa.Revision1 && p.Role == mpa.Responder {
		if err := q.PostRecv(rnic.RecvWR{ID: 9}); err != nil { // only an Initiator begins (RFC 5044 §7.1.2 rule 4)
			t.Fatal(err)
		}
		end.send(10)
		end.completion(10, wcSuccess)
		wait(9)
	}
	end.recv(1)
	if err := q.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend}); err != nil {
		t.Fatal(err)
	}
	wait(2)
	end.completion(1, wcSuccess)
	if err := q.PostRecv(rnic.RecvWR{ID: 3}); err != nil {
		t.Fatal(err)
	}
	end.send(4)
	end.completion(4, wcSuccess)
	wait(3)
	if err := q.Disconnect(t.Context()); err != nil {
		t.Error(err)
	}
	if ev := end.port.next(); ev.Type != cmDisconnected || ev.Status != 0 {
		t.Errorf("event %d, status %d; want DISCONNECTED", ev.Type, ev.Status)
	}
	end.port.none()
}

func TestPeerThatHasGoneCantBeAccepted(t *testing.T) {
	l := newCMLab(t)
	b := l.port()
	_, where := b.listen(3, "127.0.0.1:0")
	_, q, _ := plainSide(t, rnic.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	connected := make(chan error, 1)
	go func() { connected <- q.Connect(ctx, where.String(), rnic.ConnParam{}) }()
	request := b.wantEvent(cmConnectRequest, 3)
	cancel()
	if err := <-connected; err == nil {
		t.Fatal("connected though nobody accepted")
	}
	qp := l.qp(l.cq)
	l.want("accept", l.IDAccept(request.NewID, param(qp, "")), syscall.ECONNRESET)
	l.want("accept again", l.IDAccept(request.NewID, param(qp, "")), syscall.EINVAL)
	l.must("destroy", l.IDDestroy(request.NewID))
	b.none()
}

// Requests that nobody fetches wait, as many as the listener has said.
func TestBacklogIsHonoured(t *testing.T) {
	const backlog = 3
	l := newCMLab(t)
	a, b := l.port(), l.port()
	listener := b.id(3)
	l.must("bind", l.IDBind(listener, at("127.0.0.1:0")))
	l.must("listen", l.IDListen(listener, backlog))
	where := l.local(listener)
	ask := func(ids ...Handle) {
		for _, id := range ids {
			l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
		}
	}
	var ids []Handle
	for i := range uint64(backlog + 2) {
		ids = append(ids, a.routed(10+i, where))
	}
	ask(ids...) // all routed by now: some are rejected while others are asked for
	for range 2 {
		if ev := a.next(); ev.Type != cmRejected || ev.Status != -int32(syscall.ECONNREFUSED) {
			t.Errorf("event %d, status %d; want REJECTED", ev.Type, ev.Status)
		}
	}
	b.wantEvent(cmConnectRequest, 3)
	ask(a.routed(20, where)) // there is room again
	for range backlog {
		b.wantEvent(cmConnectRequest, 3)
	}
	b.none()
	a.none()
}
