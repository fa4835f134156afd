//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBindGivesAddressAndPortAtOnce(t *testing.T) {
	p := newCMLab(t).port()
	for address, family := range map[string]int{"127.0.0.1:0": 4, "0.0.0.0:0": 4, "[::1]:0": 6, "[::]:0": 6, "[::ffff:127.0.0.1]:0": 6} {
		id := p.id(1)
		if a := p.local(id); a.ip.IsValid() {
			t.Errorf("before it is bound: %v", a)
		}
		p.must("bind to "+address, p.IDBind(id, at(address)))
		got, want := p.local(id), netip.MustParseAddrPort(address)
		if got.ip != want.Addr() || got.port == 0 || got.ip.Is4() != (family == 4) {
			t.Errorf("bound to %v: %v", address, got)
		}
		p.must("destroy", p.IDDestroy(id))
		again := p.id(1)
		p.must("bind to the same", p.IDBind(again, got.raw()))
		if p.local(again) != got {
			t.Errorf("bound to %v; want %v", p.local(again), got)
		}
	}
}

func TestBindIsRefusedAtOnce(t *testing.T) {
	p := newCMLab(t).port()
	taken := p.id(1)
	p.must("bind", p.IDBind(taken, at("127.0.0.1:0")))
	port := p.local(taken).port
	listening, where := p.listen(2, "127.0.0.1:0")
	for _, tt := range []struct {
		name string
		addr []byte
		want Errno
	}{
		{"an address of nobody's", at("192.0.2.1:0"), syscall.EADDRNOTAVAIL},
		{"an address of IPv6 of nobody's", at("[2001:db8::1]:0"), syscall.EADDRNOTAVAIL},
		{"a port that an id is bound to", at(fmt.Sprintf("127.0.0.1:%d", port)), syscall.EADDRINUSE},
		{"the same port of all addresses", at(fmt.Sprintf("0.0.0.0:%d", port)), syscall.EADDRINUSE},
		{"a port that an id listens at", at(fmt.Sprintf("127.0.0.1:%d", where.port)), syscall.EADDRINUSE},
		{"a link-local address without its interface", at("[fe80::1]:0"), syscall.EINVAL},
		{"no address", nil, syscall.EINVAL},
		{"half an address", at("127.0.0.1:0")[:15], syscall.EINVAL},
		{"half an address of IPv6", at("[::1]:0")[:27], syscall.EINVAL},
		{"an address of another family", []byte{27, 0, 31: 0}, syscall.EAFNOSUPPORT},
	} {
		id := p.id(3)
		p.want(tt.name, p.IDBind(id, tt.addr), tt.want)
		p.want("bind after that", p.IDBind(id, at("127.0.0.1:0")), ok)
		p.want("bind twice", p.IDBind(id, at("127.0.0.1:0")), syscall.EINVAL)
	}
	p.must("destroy", p.IDDestroy(taken))
	p.must("destroy", p.IDDestroy(listening))
	for _, port := range []uint16{port, where.port} {
		p.want("bind to a port that is free again", p.IDBind(p.id(4), at(fmt.Sprintf("127.0.0.1:%d", port))), ok)
	}
}

// A server that ends leaves connections that TCP keeps for a while, and perhaps
// some that are still open; the next one has the port all the same.
func TestServerRestartsAtItsPort(t *testing.T) {
	l := newCMLab(t)
	a, b := l.port(), l.port()
	from, to, listener := l.connect(a, b, "127.0.0.1:0")
	where := l.local(listener)
	l.must("disconnect by the server, whose TCP then waits", l.IDDisconnect(to.id))
	b.wantEvent(cmDisconnected, 2)
	a.wantEvent(cmDisconnected, 1)
	open := cmEnd{port: a, cq: l.newCQ()}
	open.qp = l.qp(open.cq)
	open.id = a.routed(5, where)
	l.must("connect", l.IDConnect(open.id, param(open.qp, "")))
	request := b.wantEvent(cmConnectRequest, 3)
	l.must("accept", l.IDAccept(request.NewID, param(l.qp(l.newCQ()), "")))
	b.wantEvent(cmEstablished, 0)
	l.must("stop listening", l.IDDestroy(listener))
	l.must("destroy", l.IDDestroy(from.id))
	next := b.id(6)
	l.must("bind to the port again", l.IDBind(next, where.raw()))
	l.want("bind to it a second time", l.IDBind(b.id(7), where.raw()), syscall.EADDRINUSE)
	l.must("listen there", l.IDListen(next, 1))
	l.want("bind to it now", l.IDBind(b.id(8), where.raw()), syscall.EADDRINUSE)
}

func TestIDsThatSaySoShareAPort(t *testing.T) {
	p := newCMLab(t).port()
	var ids []Handle
	on := []byte{1, 0, 0, 0}
	for range 2 {
		id := p.id(1)
		p.must("REUSEADDR", p.IDSetOption(id, cmLevelID, cmOptionReuseAddr, on))
		ids = append(ids, id)
	}
	p.must("bind", p.IDBind(ids[0], at("127.0.0.1:0")))
	where := p.local(ids[0])
	p.must("bind a second one", p.IDBind(ids[1], where.raw()))
	p.must("listen", p.IDListen(ids[0], 1))
	p.want("listen twice", p.IDListen(ids[1], 1), syscall.EADDRINUSE)
	late := p.id(1)
	p.must("bind without", p.IDBind(late, at("127.0.0.1:0")))
	p.must("REUSEADDR when bound", p.IDSetOption(late, cmLevelID, cmOptionReuseAddr, on))
	p.want("no REUSEADDR when bound", p.IDSetOption(late, cmLevelID, cmOptionReuseAddr, make([]byte, 4)), syscall.EINVAL)
	p.want("REUSEADDR when listening", p.IDSetOption(ids[0], cmLevelID, cmOptionReuseAddr, on), syscall.EINVAL)
}

func TestResolveFindsTheSource(t *testing.T) {
	p := newCMLab(t).port()
	for _, tt := range []struct {
		name, bind, src, dst string
		local, peer          string
	}{
		{"by routing", "", "", "127.0.0.1:7174", "127.0.0.1", "127.0.0.1:7174"},
		{"of IPv6", "", "", "[::1]:7174", "::1", "[::1]:7174"},
		{"given", "", "127.0.0.9:0", "127.0.0.1:7174", "127.0.0.9", "127.0.0.1:7174"},
		{"bound", "127.0.0.8:0", "", "127.0.0.1:7174", "127.0.0.8", "127.0.0.1:7174"},
		{"bound, and another one is given", "127.0.0.8:0", "127.0.0.9:0", "127.0.0.1:7174", "127.0.0.8", "127.0.0.1:7174"},
		{"bound to all", "0.0.0.0:0", "", "127.0.0.1:7174", "127.0.0.1", "127.0.0.1:7174"},
		{"this host", "", "", "0.0.0.0:7174", "127.0.0.1", "127.0.0.1:7174"},
		{"this host by IPv6", "", "", "[::]:7174", "::1", "[::1]:7174"},
		{"mapped", "", "", "[::ffff:127.0.0.1]:7174", "::ffff:127.0.0.1", "[::ffff:127.0.0.1]:7174"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := p.id(9)
			var bound uint16
			if tt.bind != "" {
				p.must("bind", p.IDBind(id, at(tt.bind)))
				bound = p.local(id).port
			}
			var src []byte
			if tt.src != "" {
				src = at(tt.src)
			}
			p.must("resolve", p.IDResolveAddr(id, src, at(tt.dst)))
			p.wantEvent(cmAddrResolved, 9)
			local, peer := p.addrs(id)
			if local.ip.String() != tt.local || local.port == 0 || bound != 0 && local.port != bound || peer.String() != tt.peer {
				t.Errorf("from %v to %v; want %s, bound to port %d, %s", local, peer, tt.local, bound, tt.peer)
			}
			if _, _, err := bindSocket(local, socketOptions{tos: -1}); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("the port is not the id's: %v", err)
			}
			p.want("resolve again", p.IDResolveAddr(id, nil, at(tt.dst)), syscall.EINVAL)
			p.want("bind now", p.IDBind(id, at(tt.dst)), syscall.EINVAL)
			p.must("resolve route", p.IDResolveRoute(id))
			p.wantEvent(cmRouteResolved, 9)
			p.want("resolve route again", p.IDResolveRoute(id), syscall.EINVAL)
			p.none()
		})
	}
}

func TestResolveOfWhatCantBeIsRefused(t *testing.T) {
	p := newCMLab(t).port()
	bound4 := p.id(1)
	p.must("bind", p.IDBind(bound4, at("0.0.0.0:0")))
	for _, tt := range []struct {
		name     string
		id       Handle
		src, dst []byte
		want     Errno
	}{
		{"no destination", p.id(1), nil, nil, syscall.EINVAL},
		{"another family", p.id(1), nil, []byte{27, 0, 31: 0}, syscall.EAFNOSUPPORT},
		{"source of another family", p.id(1), []byte{27, 0, 31: 0}, at("127.0.0.1:1"), syscall.EAFNOSUPPORT},
		{"from IPv4 to IPv6", p.id(1), at("127.0.0.1:0"), at("[::1]:1"), syscall.EINVAL},
		{"from IPv4 that it is bound to", bound4, nil, at("[::1]:1"), syscall.EINVAL},
		{"a source of nobody's", p.id(1), at("192.0.2.1:0"), at("127.0.0.1:1"), syscall.EADDRNOTAVAIL},
		{"link-local without interface", p.id(1), nil, at("[fe80::1]:1"), syscall.EINVAL},
	} {
		p.want(tt.name, p.IDResolveAddr(tt.id, tt.src, tt.dst), tt.want)
	}
	p.none()
}

// That there is no route is told by an event, and the id can try again.
func TestDestinationWithoutARouteIsToldByAnEvent(t *testing.T) {
	p := newCMLab(t).port()
	id := p.id(4)
	p.must("resolve", p.IDResolveAddr(id, nil, at("255.255.255.255:7174"))) // no connection goes there
	if ev := p.next(); ev.Type != cmAddrError || ev.Status >= 0 || ev.Cookie != 4 {
		t.Errorf("event %d, status %d, cookie %d; want ADDR_ERROR", ev.Type, ev.Status, ev.Cookie)
	}
	p.want("resolve route", p.IDResolveRoute(id), syscall.EINVAL)
	p.must("resolve", p.IDResolveAddr(id, nil, at("127.0.0.1:7174")))
	p.wantEvent(cmAddrResolved, 4)
}

// Link-local addresses name their interface, all the way.
func TestLinkLocalAddresses(t *testing.T) {
	a, found := linkLocal(t)
	if !found {
		t.Log("this host has no link-local address: only how one is kept is tested")
		var raw [128]byte
		want := endpoint{ip: netip.MustParseAddr("fe80::1"), port: 3, scope: 7}
		want.put(&raw)
		if got, bad := parseEndpoint(raw[:]); got != want || bad != ok {
			t.Errorf("%v becomes %v, %v", want, got, bad)
		}
		return
	}
	l := newCMLab(t)
	server, client := l.port(), l.port()
	listener := server.id(1)
	l.must("bind", l.IDBind(listener, a.raw()))
	l.must("listen", l.IDListen(listener, 1))
	where := l.local(listener)
	if where.scope != a.scope {
		t.Errorf("it listens at %v; want interface %d", where, a.scope)
	}
	id := client.routed(2, where)
	l.must("connect", l.IDConnect(id, param(l.qp(l.cq), "")))
	request := server.wantEvent(cmConnectRequest, 1)
	for _, id := range []Handle{id, request.NewID} {
		local, peer := l.addrs(id)
		if local.scope != a.scope || peer.scope != a.scope {
			t.Errorf("from %v to %v; want interface %d", local, peer, a.scope)
		}
	}
	l.must("accept", l.IDAccept(request.NewID, param(l.qp(l.cq), "")))
	server.wantEvent(cmEstablished, 0)
	client.wantEvent(cmEstablished, 2)
	local, peer := l.addrs(id)
	if local.scope != a.scope || peer != where {
		t.Errorf("connected from %v to %v; want %v", local, peer, where)
	}
	// The interface of the source serves for the destination too.
	second := client.id(3)
	noScope := where
	noScope.scope = 0
	l.must("resolve", l.IDResolveAddr(second, a.raw(), noScope.raw()))
	client.wantEvent(cmAddrResolved, 3)
}

// linkLocal returns a link-local address of this host.
func linkLocal(t *testing.T) (endpoint, bool) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() && i.Flags&net.FlagUp != 0 {
				return endpoint{ip: p.Addr(), scope: uint32(i.Index)}, true
			}
		}
	}
	return endpoint{}, false
}

func TestOptions(t *testing.T) {
	p := newCMLab(t).port()
	one, four := []byte{8}, []byte{1, 0, 0, 0}
	for _, tt := range []struct {
		name         string
		level, which uint32
		value        []byte
		want         Errno
	}{
		{"TOS", cmLevelID, cmOptionTOS, one, ok},
		{"TOS of 4 bytes", cmLevelID, cmOptionTOS, four, syscall.EINVAL},
		{"REUSEADDR", cmLevelID, cmOptionReuseAddr, four, ok},
		{"REUSEADDR of 1 byte", cmLevelID, cmOptionReuseAddr, one, syscall.EINVAL},
		{"AFONLY", cmLevelID, cmOptionAFOnly, four, ok},
		{"AFONLY without a value", cmLevelID, cmOptionAFOnly, nil, syscall.EINVAL},
		{"ACK_TIMEOUT", cmLevelID, cmOptionACKTimeout, one, ok},
		{"ACK_TIMEOUT of more than 5 bits", cmLevelID, cmOptionACKTimeout, []byte{32}, syscall.EINVAL},
		{"ACK_TIMEOUT of 4 bytes", cmLevelID, cmOptionACKTimeout, four, syscall.EINVAL},
		{"unknown", cmLevelID, 4, four, syscall.ENOSYS},
		{"unknown of IB", cmLevelIB, 2, four, syscall.ENOSYS},
		{"unknown level", 2, 0, four, syscall.ENOSYS},
		{"path before the address", cmLevelIB, cmOptionPath, make([]byte, pathDataLen), syscall.EINVAL},
		{"half a path", cmLevelIB, cmOptionPath, make([]byte, pathDataLen/2), syscall.EINVAL},
		{"no path", cmLevelIB, cmOptionPath, nil, syscall.EINVAL},
	} {
		p.want(tt.name, p.IDSetOption(p.id(1), tt.level, tt.which, tt.value), tt.want)
	}
	id := p.id(2)
	p.must("resolve", p.IDResolveAddr(id, nil, at("127.0.0.1:1")))
	p.wantEvent(cmAddrResolved, 2)
	p.want("AFONLY too late", p.IDSetOption(id, cmLevelID, cmOptionAFOnly, four), syscall.EINVAL)
	p.must("path", p.IDSetOption(id, cmLevelIB, cmOptionPath, make([]byte, pathDataLen)))
	p.wantEvent(cmRouteResolved, 2)
}

// A listener of IPv6 takes IPv4 too, unless it is told not to, before it is bound or
// after.
func TestAFOnlyShutsIPv4Out(t *testing.T) {
	p := newCMLab(t).port()
	dial := func(id Handle) error {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", p.local(id).port))
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	for _, when := range []string{"never", "before", "after"} {
		id := p.id(1)
		set := func(now string) {
			if when == now {
				p.must("AFONLY", p.IDSetOption(id, cmLevelID, cmOptionAFOnly, []byte{1, 0, 0, 0}))
			}
		}
		set("before")
		p.must("bind", p.IDBind(id, at("[::]:0")))
		port := p.local(id).port
		set("after")
		if p.local(id).port != port {
			t.Errorf("AFONLY changed the port from %d to %d", port, p.local(id).port)
		}
		p.must("listen", p.IDListen(id, 1))
		if err := dial(id); (err == nil) != (when == "never") {
			t.Errorf("AFONLY %s: IPv4: %v", when, err)
		}
	}
}

func TestTypeOfServiceIsThatOfTheSocket(t *testing.T) {
	p := newCMLab(t).port()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		for _, early := range []bool{true, false} {
			id := p.id(1)
			if early {
				p.must("TOS", p.IDSetOption(id, cmLevelID, cmOptionTOS, []byte{0x28}))
			}
			p.must("bind", p.IDBind(id, at(address)))
			if !early {
				p.must("TOS", p.IDSetOption(id, cmLevelID, cmOptionTOS, []byte{0x28}))
			}
			level, name := unix.IPPROTO_IP, unix.IP_TOS
			if strings.HasPrefix(address, "[") {
				level, name = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
			}
			var got int
			if err := withFD(p.ids.get(id).socket, func(fd int) (err error) {
				got, err = unix.GetsockoptInt(fd, level, name)
				return err
			}); got != 0x28 || err != nil {
				t.Errorf("%s, early %t: 0x%x, %v", address, early, got, err)
			}
		}
	}
}

// Calls in a state that does not take them are refused, and change nothing.
func TestCallsInTheWrongState(t *testing.T) {
	l := newCMLab(t)
	p, q := l.port(), l.port()
	from, to, listener := l.connect(p, q, "127.0.0.1:0")
	qp := l.qp(l.cq)
	calls := map[string]func(id Handle) Errno{
		"bind":          func(id Handle) Errno { return l.IDBind(id, at("127.0.0.1:0")) },
		"resolve addr":  func(id Handle) Errno { return l.IDResolveAddr(id, nil, at("127.0.0.1:1")) },
		"resolve route": l.IDResolveRoute,
		"listen":        func(id Handle) Errno { return l.IDListen(id, 1) },
		"connect":       func(id Handle) Errno { return l.IDConnect(id, param(qp, "")) },
		"accept":        func(id Handle) Errno { return l.IDAccept(id, param(qp, "")) },
		"reject":        func(id Handle) Errno { return l.IDReject(id, nil) },
		"disconnect":    l.IDDisconnect,
	}
	bound := p.id(4)
	l.must("bind", l.IDBind(bound, at("127.0.0.1:0")))
	for _, tt := range []struct {
		name string
		id   Handle
		may  []string
	}{
		{"idle", p.id(5), []string{"bind", "resolve addr", "listen"}},
		{"bound", bound, []string{"resolve addr", "listen"}},
		{"listening", listener, nil},
		{"connected", from.id, []string{"disconnect"}},
		{"accepted", to.id, []string{"disconnect"}},
		{"no id", 999, nil},
	} {
		for name, call := range calls {
			if !slices.Contains(tt.may, name) {
				l.want(tt.name+": "+name, call(tt.id), syscall.EINVAL)
			}
		}
	}
	exchange(&from, &to)
	p.none()
	q.none()
}
