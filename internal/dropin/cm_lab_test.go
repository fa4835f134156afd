//go:build linux

package dropin

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A cmLab is an engine with a context, for tests of connection management: it
// plays the program on both sides.
type cmLab struct {
	testing.TB
	*Engine
	ctx, pd, cq Handle
}

// patientTimes are those of labs, unless a test sets others: what comes about in the end does so on a machine that stalls, too.
const patientTimes = "URNIC_TIMES=connect=10m,request=10m,reply=10m,service=10m,disconnect=10m,release=10m,come=10m"

func newCMLab(t testing.TB, settings ...string) *cmLab {
	t.Helper()
	e, err := Open(append([]string{patientTimes}, settings...), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	l := &cmLab{TB: t, Engine: e}
	ctx, _, bad := e.ContextOpen(0, 1)
	l.must("open context", bad)
	l.ctx = ctx
	l.pd, bad = e.PDAlloc(ctx)
	l.must("allocate PD", bad)
	l.cq = l.newCQ()
	return l
}

func (l *cmLab) newCQ() Handle {
	l.Helper()
	entries := uint32(1024)
	cq, bad := l.CQCreate(l.ctx, &entries, 0, 1)
	l.must("create CQ", bad)
	return cq
}

func (l *cmLab) must(what string, bad Errno) {
	l.Helper()
	if bad != ok {
		l.Fatalf("%s: %v", what, bad)
	}
}

// want checks what a call returns.
func (l *cmLab) want(what string, got, want Errno) {
	l.Helper()
	if got != want {
		l.Errorf("%s: errno %d (%v); want %d (%v)", what, got, got, want, want)
	}
}

// qp makes a queue pair in state INIT, as rdma_create_qp does.
func (l *cmLab) qp(cq Handle) Handle {
	l.Helper()
	init := QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}
	l.must("create QP", l.QPCreate(l.pd, &init))
	l.must("modify QP", l.QPModify(init.QP, &QPAttr{State: qpsInit}, qpState))
	return init.QP
}

// A port is an event channel of a test.
type cmPort struct {
	*cmLab
	evch Handle
	fd   int
}

func (l *cmLab) port() *cmPort {
	l.Helper()
	evch, fd, bad := l.EvchCreate()
	l.must("create channel", bad)
	return &cmPort{l, evch, fd}
}

// id makes an id with its channel's cookie.
func (p *cmPort) id(cookie uint64) Handle {
	p.Helper()
	id, bad := p.IDCreate(p.evch, cookie)
	p.must("create id", bad)
	return id
}

// patience is how long a test waits for what must come, on a machine that stalls.
const patience = 2 * time.Minute

// next waits for an event as a program does, with poll(2).
func (p *cmPort) next() CMEvent {
	p.Helper()
	for {
		var ev CMEvent
		switch bad := p.EvchNext(p.evch, &ev); bad {
		case ok:
			return ev
		case unix.EAGAIN:
		default:
			p.Fatalf("next event: %v", bad)
		}
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, int(patience/time.Millisecond)); n == 0 {
			p.Fatalf("no event came (%v)", err)
		}
	}
}

// want waits for an event of a type, without an error.
func (p *cmPort) wantEvent(typ uint32, cookie uint64) CMEvent {
	p.Helper()
	return p.wantFailure(typ, cookie, ok)
}

// wantFailure waits for an event of a type and a status.
func (p *cmPort) wantFailure(typ uint32, cookie uint64, status Errno) CMEvent {
	p.Helper()
	ev := p.next()
	if ev.Type != typ || ev.Cookie != cookie || ev.Status != -int32(status) {
		p.Fatalf("event %d, status %d, cookie %d; want %d, %d, %d", ev.Type, ev.Status, ev.Cookie, typ, -int32(status), cookie)
	}
	return ev
}

// none checks that nothing is to be fetched, and that the descriptor says so.
func (p *cmPort) none() {
	p.Helper()
	var ev CMEvent
	if bad := p.EvchNext(p.evch, &ev); bad != unix.EAGAIN {
		p.Errorf("%v, event %d; want none", bad, ev.Type)
	}
	if readable(p.TB, p.fd) {
		p.Error("the descriptor is readable though there is nothing")
	}
}

// at returns a struct sockaddr.
func at(address string) []byte {
	a := netip.MustParseAddrPort(address)
	return endpoint{ip: a.Addr(), port: a.Port()}.raw()
}

func (a endpoint) raw() []byte {
	var b [128]byte
	a.put(&b)
	if a.ip.Is4() {
		return b[:unix.SizeofSockaddrInet4]
	}
	return b[:unix.SizeofSockaddrInet6]
}

// local returns the source endpoint of an id.
func (l *cmLab) local(id Handle) endpoint {
	l.Helper()
	a, _ := l.addrs(id)
	return a
}

func (l *cmLab) addrs(id Handle) (local, peer endpoint) {
	l.Helper()
	var a CMAddrs
	l.must("addresses", l.IDAddrs(id, &a))
	local, _ = parseEndpoint(a.Local[:])
	peer, _ = parseEndpoint(a.Peer[:])
	return local, peer
}

// listen returns an id that listens, and where.
func (p *cmPort) listen(cookie uint64, address string) (Handle, endpoint) {
	p.Helper()
	id := p.id(cookie)
	p.must("bind", p.IDBind(id, at(address)))
	p.must("listen", p.IDListen(id, 0))
	return id, p.local(id)
}

// routed returns an id that can connect.
func (p *cmPort) routed(cookie uint64, to endpoint) Handle {
	p.Helper()
	id := p.id(cookie)
	p.must("resolve address", p.IDResolveAddr(id, nil, to.raw()))
	p.wantEvent(cmAddrResolved, cookie)
	p.must("resolve route", p.IDResolveRoute(id))
	p.wantEvent(cmRouteResolved, cookie)
	return id
}

// param returns parameters of a connection.
func param(qp Handle, privateData string) *ConnParam {
	p := &ConnParam{QP: qp, ResponderResources: 3, InitiatorDepth: 2, PrivateDataLen: uint32(len(privateData))}
	if privateData != "" {
		p.PrivateData = unsafe.StringData(privateData)
	}
	return p
}

func (ev *CMEvent) data() string { return string(ev.PrivateData[:ev.PrivateDataLen]) }

// A cmEnd is one end of a connection.
type cmEnd struct {
	port       *cmPort
	id, qp, cq Handle
	cookie     uint64
}

// connect makes a connection between two channels: from the id with cookie 1 to
// that with cookie 2, which is accepted by a listener with cookie 3.
func (l *cmLab) connect(a, b *cmPort, address string) (from, to cmEnd, listener Handle) {
	l.Helper()
	listener, where := b.listen(3, address)
	if where.isAny() {
		where.ip = netip.MustParseAddr("127.0.0.1")
	}
	from, to = cmEnd{port: a, cq: l.newCQ(), cookie: 1}, cmEnd{port: b, cq: l.newCQ(), cookie: 2}
	from.qp, to.qp = l.qp(from.cq), l.qp(to.cq)
	from.id = a.routed(1, where)
	l.must("connect", l.IDConnect(from.id, param(from.qp, "hello")))
	request := b.wantEvent(cmConnectRequest, 3)
	to.id = request.NewID
	l.must("set cookie", l.IDSetCookie(to.id, 2))
	l.must("accept", l.IDAccept(to.id, param(to.qp, "welcome")))
	b.wantEvent(cmEstablished, 2)
	a.wantEvent(cmEstablished, 1)
	return from, to, listener
}

// send posts a Send of nothing.
func (e *cmEnd) send(id uint64) {
	e.port.Helper()
	wr := SendWR{ID: id, Opcode: wrSend, Flags: sendSignaled}
	e.port.must("post send", e.port.QPPostSend(e.qp, &wr, nil))
}

// recv posts a receive for nothing.
func (e *cmEnd) recv(id uint64) {
	e.port.Helper()
	wr := RecvWR{ID: id}
	e.port.must("post receive", e.port.QPPostRecv(e.qp, &wr, nil))
}

// completion waits for one.
func (e *cmEnd) completion(id uint64, status uint32) {
	e.port.Helper()
	var wc WC
	for deadline := time.Now().Add(patience); e.port.CQPoll(e.cq, 1, &wc) != 1; {
		if time.Now().After(deadline) {
			e.port.Fatalf("no completion of %d", id)
		}
	}
	if wc.ID != id || wc.Status != status {
		e.port.Fatalf("completion of %d with status %d; want %d, %d", wc.ID, wc.Status, id, status)
	}
}

// exchange sends a message each way, the first from b: either side may begin.
func exchange(a, b *cmEnd) {
	a.port.Helper()
	for _, way := range [][2]*cmEnd{{b, a}, {a, b}} {
		way[1].recv(7)
		way[0].send(8)
		way[0].completion(8, wcSuccess)
		way[1].completion(7, wcSuccess)
	}
}

func TestCMStructsHaveTheLayoutOfTheContract(t *testing.T) {
	for name, c := range map[string][2]uintptr{
		"urnic_cm_event":              {unsafe.Sizeof(CMEvent{}), 560},
		"urnic_cm_event.private_data": {unsafe.Offsetof(CMEvent{}.PrivateData), 48},
		"urnic_conn_param":            {unsafe.Sizeof(ConnParam{}), 32},
		"urnic_addrs":                 {unsafe.Sizeof(CMAddrs{}), 256},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d; want %d", name, c[0], c[1])
		}
	}
}

// What a program gives as an address is read within its length, and comes back as
// it was.
func FuzzEndpoint(f *testing.F) {
	f.Add(at("127.0.0.1:7174"))
	f.Add(at("[fe80::1]:1"))
	f.Add([]byte{10, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, bad := parseEndpoint(b)
		if bad != ok {
			return
		}
		raw := a.raw()
		if again, bad := parseEndpoint(raw); bad != ok || again != a {
			t.Errorf("%v becomes %v, %v", a, again, bad)
		}
		if !bytes.Equal(raw[2:4], b[2:4]) || binary.NativeEndian.Uint16(raw) != binary.NativeEndian.Uint16(b) {
			t.Errorf("% x becomes % x", b, raw)
		}
	})
}
