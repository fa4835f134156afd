//go:build linux

package dropin

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

// service makes an id of RDMA_PS_UDP.
func (p *cmPort) service(cookie uint64) Handle {
	p.Helper()
	id, bad := p.IDCreateDatagram(p.evch, cookie)
	p.must("create id", bad)
	return id
}

// serves returns an id of RDMA_PS_UDP with the cookie 1 that listens, and where.
func (p *cmPort) serves(address string) (Handle, endpoint) {
	p.Helper()
	id := p.service(1)
	p.must("bind", p.IDBind(id, at(address)))
	p.must("listen", p.IDListen(id, 2))
	where := p.local(id)
	if where.isAny() {
		where.ip = netip.MustParseAddr("127.0.0.1")
	}
	return id, where
}

// ask returns an id that asks a service.
func (p *cmPort) ask(cookie uint64, to endpoint, data string) Handle {
	p.Helper()
	id := p.service(cookie)
	p.must("resolve address", p.IDResolveAddr(id, nil, to.raw()))
	p.wantEvent(cmAddrResolved, cookie)
	p.must("resolve route", p.IDResolveRoute(id))
	p.wantEvent(cmRouteResolved, cookie)
	p.must("connect", p.IDResolveService(id, serviceParam(0, data)))
	return id
}

func serviceParam(qpn uint32, data string) *ServiceParam {
	p := &ServiceParam{QPN: qpn, PrivateDataLen: uint32(len(data))}
	if data != "" {
		p.PrivateData = unsafe.StringData(data)
	}
	return p
}

func newServiceLab(t *testing.T) *cmLab { return newCMLab(t, ethernetSetting, "URNIC_LOG=info") }

func TestAServiceTellsItsQueuePair(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		l := newServiceLab(t)
		server, client := l.port(), l.port()
		_, where := server.serves(address)
		if strings.HasPrefix(address, "[::1]") {
			where.ip = netip.MustParseAddr("::1")
		}
		id := client.ask(2, where, "who?")
		request := server.wantEvent(cmConnectRequest, 1)
		if request.data() != "who?" {
			t.Errorf("%s: asked with %q", address, request.data())
		}
		local, peer := l.addrs(request.NewID)
		asks, asked := l.addrs(id)
		if local.ip.Unmap() != asked.ip || local.port != asked.port || peer.ip.Unmap() != asks.ip || peer.port != asks.port {
			t.Errorf("%s: the request is from %v to %v; want from %v to %v", address, peer, local, asks, asked)
		}
		l.must("accept", l.IDServe(request.NewID, serviceParam(0x4001, "I")))
		ev := client.wantEvent(cmEstablished, 2)
		if ev.QPN != 0x4001 || ev.QKey != udpKey || ev.data() != "I" {
			t.Errorf("%s: QP 0x%x, Q_Key 0x%x, %q", address, ev.QPN, ev.QKey, ev.data())
		}
		server.none() // there is no connection
		l.want("disconnect", l.IDDisconnect(id), unix.EINVAL)
		l.want("accept again", l.IDServe(request.NewID, serviceParam(1, "")), unix.EINVAL)
		l.must("destroy", l.IDDestroy(id))
	}
}

func TestAServiceThatIsRefusedIsUnreachable(t *testing.T) {
	l := newServiceLab(t)
	l.times.refused = 0
	server, client := l.port(), l.port()
	listener, where := server.serves("127.0.0.1:0")
	unreachable := func(cookie uint64, status datagram.ServiceStatus, data string) {
		t.Helper()
		ev := client.next()
		if ev.Type != cmUnreachable || ev.Cookie != cookie || ev.Status != int32(status) || ev.data() != data {
			t.Errorf("event %d of %d, status %d, %q; want status %d, %q", ev.Type, ev.Cookie, ev.Status, ev.data(), status, data)
		}
	}
	client.ask(2, where, "")
	l.must("reject", l.IDReject(server.wantEvent(cmConnectRequest, 1).NewID, []byte("no")))
	unreachable(2, datagram.ServiceRejected, "no")
	client.ask(3, where, "")
	l.must("destroy a request", l.IDDestroy(server.wantEvent(cmConnectRequest, 1).NewID))
	unreachable(3, datagram.ServiceRejected, "")
	l.must("destroy", l.IDDestroy(listener))
	client.ask(4, where, "")
	unreachable(4, datagram.ServiceUnsupported, "")
}

func TestAServiceThatIsSilentIsUnreachable(t *testing.T) {
	l := newServiceLab(t)
	l.times.service = 50 * time.Millisecond
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client := l.port()
	client.ask(2, endpoint{ip: localhost, port: uint16(silent.LocalAddr().(*net.UDPAddr).Port)}, "")
	client.wantFailure(cmUnreachable, 2, unix.ETIMEDOUT)
	l.times.service = time.Hour
	id := client.ask(3, endpoint{ip: localhost, port: uint16(silent.LocalAddr().(*net.UDPAddr).Port)}, "")
	l.must("destroy an id that asks", l.IDDestroy(id)) // and it does not wait
	client.none()
}

// A request that comes again is offered once, and answered again; what is none is not looked at, and
// more requests than the backlog are not answered.
func TestRequestsOfServicesThatComeAgain(t *testing.T) {
	l := newServiceLab(t)
	server := l.port()
	_, where := server.serves("127.0.0.1:0")
	c, err := net.Dial("udp4", where.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(id uint32) {
		t.Helper()
		s := datagram.Service{Kind: datagram.ServiceRequest, ID: id}
		b := s.Append(nil)
		for _, bad := range [][]byte{nil, b[:10], append([]byte{1}, b...), b} {
			if _, err := c.Write(bad); err != nil {
				t.Fatal(err)
			}
		}
	}
	hear := func(id, qpn uint32) {
		t.Helper()
		if s, err := awaitReply(c, id, time.Now().Add(patience)); err != nil || s.QPN != qpn {
			t.Fatalf("%+v, %v; want QP 0x%x", s, err, qpn)
		}
	}
	say(7)
	say(7)
	request := server.wantEvent(cmConnectRequest, 1)
	l.must("accept", l.IDServe(request.NewID, serviceParam(0x4001, "")))
	hear(7, 0x4001)
	say(7)
	hear(7, 0x4001)
	server.none()
	for id := range uint32(5) { // the backlog is 2
		say(100 + id)
	}
	say(7)
	hear(7, 0x4001) // it is behind them
	server.wantEvent(cmConnectRequest, 1)
	server.wantEvent(cmConnectRequest, 1)
	server.none()
}

func TestServiceListenersForget(t *testing.T) {
	l := &serviceListener{asked: make(map[serviceKey][]byte)}
	for id := range uint32(3 * maxServices) {
		if _, known := l.begin(serviceKey{id: id}); known {
			t.Fatalf("%d is known", id)
		}
	}
	if len(l.asked) != maxServices || len(l.order) != maxServices {
		t.Errorf("%d and %d requests are remembered", len(l.asked), len(l.order))
	}
	l.forget(serviceKey{id: 3*maxServices - 1})
	if _, known := l.begin(serviceKey{id: 3*maxServices - 1}); known {
		t.Error("a request that was forgotten is known")
	}
}

func TestIdsOfDatagramsAreNotThoseOfConnections(t *testing.T) {
	iwarp := newCMLab(t)
	if _, bad := iwarp.IDCreateDatagram(iwarp.port().evch, 1); bad != unix.EOPNOTSUPP {
		t.Errorf("over iWARP: %v", bad)
	}
	l := newServiceLab(t)
	p := l.port()
	_, where := p.serves("127.0.0.1:0")
	second := p.service(2)
	l.want("bind to a port that is in use", l.IDBind(second, where.raw()), unix.EADDRINUSE)
	tcp := p.id(3)
	for tries := 0; l.IDBind(tcp, where.raw()) != ok; tries++ { // the ports are those of UDP and of TCP; that one may be taken
		if tries == 20 {
			l.Fatal("an id of a connection can't be bound to the port of one of datagrams")
		}
		_, where = p.serves("127.0.0.1:0")
	}
	l.want("a join of a connection's id", l.IDJoin(tcp, at("239.1.2.3:0"), 9), unix.EINVAL)
	l.want("too much private data", l.IDResolveService(second, serviceParam(0, strings.Repeat("x", 181))), unix.EINVAL)
	l.want("no parameters", l.IDResolveService(second, nil), unix.EINVAL)
	l.want("no parameters", l.IDServe(second, nil), unix.EINVAL)
	l.want("to serve without a request", l.IDServe(second, serviceParam(1, "")), unix.EINVAL)
	l.want("a join before it is bound", l.IDJoin(second, at("239.1.2.3:0"), 9), unix.EINVAL)
	l.must("bind", l.IDBind(second, at("127.0.0.1:0")))
	l.want("a join of no group", l.IDJoin(second, at("127.0.0.1:0"), 9), unix.EINVAL)
	l.must("join", l.IDJoin(second, at("239.1.2.3:0"), 9))
	if ev := p.wantEvent(cmMulticastJoin, 2); ev.Group != 9 || ev.QPN != 0xffffff || ev.QKey != udpKey {
		t.Errorf("joined %+v", ev)
	}
	l.must("join", l.IDJoin(second, at("239.1.2.3:0"), 10))
	l.must("leave", l.IDLeave(second, 10))
	p.none()
}
