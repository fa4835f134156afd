//go:build linux

package dropin

import (
	"bytes"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

const (
	ethernetSetting = "URNIC_TRANSPORT=ethernet"
	testKey         = 0x11111111
)

// ud makes an end a UD queue pair.
func ud(e *end) { e.init.Type = qptUD }

// uc makes an end a UC queue pair.
func uc(e *end) { e.init.Type = qptUC }

// udEnd returns an end with a UD queue pair that sends and receives.
func (l *lab) udEnd(change ...func(*end)) *end {
	l.Helper()
	e := l.end(append([]func(*end){ud}, change...)...)
	l.must("set the Q_Key", l.QPModify(e.qp, &QPAttr{QKey: testKey}, qpQKey))
	e.to(qpsRTR)
	e.to(qpsRTS)
	return e
}

// ah returns an address handle of this host, as C has it.
func (e *end) ah(attr AHAttr) *ibvAH {
	e.lab.Helper()
	h, bad := e.lab.AHCreate(e.pd, &attr)
	e.lab.must("create AH", bad)
	ah := &ibvAH{handle: uint32(h)}
	e.lab.Cleanup(func() { runtime.KeepAlive(ah) }) // requests name it by a number
	return ah
}

// at makes a request one for a UD queue pair.
func (w *SendWR) at(ah *ibvAH, qpn, key uint32) *SendWR {
	*w.UD() = UDWR{AH: unsafe.Pointer(ah), QPN: qpn, QKey: key}
	return w
}

// grhOf returns the addresses of a GRH.
func grhOf(b []byte) (from, to netip.Addr) {
	return netip.AddrFrom16([16]byte(b[8:24])).Unmap(), netip.AddrFrom16([16]byte(b[24:40])).Unmap()
}

var localhost = netip.MustParseAddr("127.0.0.1")

// A datagram comes with its GRH, within a process and between two.
func TestDatagramsComeWithAGRH(t *testing.T) {
	one := newLab(t, ethernetSetting)
	for name, other := range map[string]*lab{"one process": one, "two processes": newLab(t, ethernetSetting)} {
		a, b := one.udEnd(), other.udEnd()
		fill(a.mem, 1)
		ah := a.ah(AHAttr{})
		b.recv(11, b.sge(0, 60), b.sge(100, 1000))
		imm := send(wrSendImm, 1, a.sge(0, 50), a.sge(50, 100)).at(ah, b.init.QPN, testKey)
		imm.Imm = 0x12345678
		a.post(imm)
		wantWC(t, a.next(), WC{ID: 1, Opcode: wcSend, ByteLen: 150, QPN: a.init.QPN})
		wantWC(t, b.next(), WC{
			ID: 11, Opcode: wcRecv, ByteLen: 190, QPN: b.init.QPN, SrcQP: a.init.QPN, Flags: wcGRH | wcWithImm, Imm: 0x12345678,
		})
		if got := append(bytes.Clone(b.mem[40:60]), b.mem[100:230]...); !bytes.Equal(got, a.mem[:150]) {
			t.Errorf("%s: the data differ", name)
		}
		if from, to := grhOf(b.mem); from != localhost || to != localhost {
			t.Errorf("%s: GRH from %v to %v", name, from, to)
		}
	}
}

// What follows from a GID index is the address that the peer sees, and answers.
func TestDatagramsLeaveFromTheGIDThatIsNamed(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	for i := uint32(0); ; i++ {
		var gid GID
		if l.GID(0, 1, i, &gid) != ok {
			break
		}
		address := netip.AddrFrom16(gid.Raw).Unmap()
		b.recv(1, b.sge(0, 100))
		a.post(send(wrSend, 1, a.sge(0, 10)).at(a.ah(AHAttr{IsGlobal: 1, SGIDIndex: i, DGID: gid.Raw}), b.init.QPN, testKey))
		a.want(1, wcSuccess)
		b.want(1, wcSuccess)
		if from, to := grhOf(b.mem); from != address || to != address {
			t.Errorf("GRH from %v to %v; want %v", from, to, address)
		}
	}
	if _, bad := l.AHCreate(a.pd, &AHAttr{IsGlobal: 1, SGIDIndex: 9999}); bad != unix.EINVAL {
		t.Errorf("a GID that is not there: %v", bad)
	}
}

func TestDatagramsThatMustNotComeAreDroppedAndCounted(t *testing.T) {
	l := newLab(t, ethernetSetting, "URNIC_LOG=info")
	a, b := l.udEnd(), l.udEnd()
	ah := a.ah(AHAttr{})
	go1 := func(id uint64, qpn, key uint32) {
		a.post(send(wrSend, id, a.sge(0, 10)).at(ah, qpn, key))
		a.want(id, wcSuccess)
	}
	go1(1, b.init.QPN, testKey) // without a receive
	// It has to be dropped before there is a receive.
	l.until("it is dropped", func() bool {
		b.none()
		d := l.qp(b.qp).datagram
		d.recvMu.Lock()
		defer d.recvMu.Unlock()
		return d.queue.Dropped()[datagram.NoReceive] == 1
	})
	b.recv(1, b.sge(0, 100))
	go1(2, b.init.QPN, testKey+1)
	go1(3, b.init.QPN+1, testKey) // no such queue pair
	go1(4, b.init.QPN, testKey)
	b.want(1, wcSuccess)
	b.none()
	var d DeviceAttr
	if l.must("query device", l.Device(0, &d)); d.QKeyViolations != 1 {
		t.Errorf("%d datagrams with a wrong Q_Key; want 1", d.QKeyViolations)
	}
	own := send(wrSend, 5, a.sge(0, 10)).at(ah, a.init.QPN, qpOwnKey) // the queue pair's own Q_Key, to itself
	a.recv(6, a.sge(1000, 100))
	a.post(own)
	a.want(5, wcSuccess)
	a.want(6, wcSuccess)
	l.must("destroy QP", l.QPDestroy(b.qp))
	if want := "dropped 2 datagrams: 1 with a wrong Q_Key, 1 without a receive"; !strings.Contains(l.said.String(), want) {
		t.Errorf("it is not told that it %s:\n%s", want, l.said)
	}
}

func TestMistakesWithDatagramsAreRefused(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	ah, other := a.ah(AHAttr{}), b.ah(AHAttr{})
	for name, wr := range map[string]*SendWR{
		"too long":           send(wrSend, 1, a.sge(0, datagram.MTU+1)).at(ah, b.init.QPN, testKey),
		"no address handle":  send(wrSend, 1, a.sge(0, 1)).at(nil, b.init.QPN, testKey),
		"of another domain":  send(wrSend, 1, a.sge(0, 1)).at(other, b.init.QPN, testKey),
		"no number":          send(wrSend, 1, a.sge(0, 1)).at(ah, 1<<24, testKey),
		"a number of nobody": send(wrSend, 1, a.sge(0, 1)).at(ah, 1, testKey),
		"a Write":            send(wrWrite, 1, a.sge(0, 1)).at(ah, b.init.QPN, testKey),
		"too many SGEs":      send(wrSend, 1, a.sge(0, 1), a.sge(0, 1), a.sge(0, 1), a.sge(0, 1), a.sge(0, 1)).at(ah, b.init.QPN, testKey),
	} {
		var bad *SendWR
		l.want(name, l.QPPostSend(a.qp, wr, &bad), unix.EINVAL)
		if bad != wr {
			t.Errorf("%s: another request is blamed", name)
		}
	}
	l.want("free a PD with address handles", l.PDFree(a.pd), unix.EBUSY)
	l.want("destroy a CQ that is used", l.CQDestroy(a.cq), unix.EBUSY)
	l.must("destroy AH", l.AHDestroy(Handle(ah.handle)))
	l.want("destroy AH again", l.AHDestroy(Handle(ah.handle)), unix.EINVAL)
	l.want("to RTS from INIT", l.QPModify(l.end(ud).qp, &QPAttr{State: qpsRTS}, qpState), unix.EINVAL)
	c := l.end(ud)
	var bad *SendWR
	l.want("send in INIT", l.QPPostSend(c.qp, send(wrSend, 1, c.sge(0, 1)).at(c.ah(AHAttr{}), b.init.QPN, 0), &bad), unix.EINVAL)
	xrc := c.init
	xrc.Type = 9
	l.want("XRC", l.QPCreate(c.pd, &xrc), unix.EOPNOTSUPP)
}

func TestDatagramsAreRefusedWhereTheyAreNot(t *testing.T) {
	for _, settings := range [][]string{nil, {ethernetSetting, "URNIC_STRICT=1"}, {ethernetSetting, "URNIC_RENDEZVOUS=off"}} {
		l := newLab(t, settings...)
		e := l.end()
		for _, kind := range []uint32{qptUD, qptUC} {
			init := QPInit{SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 1, MaxRecvWR: 1, Type: kind}
			l.want("create QP", l.QPCreate(e.pd, &init), unix.EOPNOTSUPP)
		}
		_, bad := l.AHCreate(e.pd, &AHAttr{})
		l.want("create AH", bad, unix.EOPNOTSUPP)
	}
}

func TestWrongMemoryForDatagrams(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	ah := a.ah(AHAttr{})
	to := func(id uint64, s SGE) *SendWR { return send(wrSend, id, s).at(ah, b.init.QPN, testKey) }

	b.recv(1, b.sge(0, 45)) // 40 of them for the GRH
	a.post(to(1, a.sge(0, 6)))
	a.want(1, wcSuccess)
	b.want(1, wcLocalLength)

	readOnly := b.register(make([]byte, 100), 0)
	b.recv(2, SGE{readOnly.Addr, 100, readOnly.STag})
	a.post(to(2, a.sge(0, 6)))
	a.want(2, wcSuccess)
	b.want(2, wcLocalProtect)

	gone := a.register(make([]byte, 100), 0)
	a.post(to(3, SGE{gone.Addr, 100, gone.STag}))
	a.want(3, wcSuccess)
	l.must("deregister", l.MRDereg(Handle(gone.MR)))
	foreign := b.sge(0, 5) // of another domain
	for _, s := range []SGE{{gone.Addr, 100, gone.STag}, a.sge(8190, 3), foreign, {a.mr.Addr - 1, 2, a.mr.STag}, {1<<64 - 1, 2, a.mr.STag}} {
		a.post(to(4, s), to(5, a.sge(0, 1)))
		a.want(4, wcLocalProtect)
		a.want(5, wcFlushed)
		if s := a.state(); s != qpsSQE {
			t.Errorf("state %s after a Send that has failed", stateNames[s])
		}
		a.to(qpsRTS)
	}
}

func TestRequestsOfDatagramsAreFlushedInERR(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd()
	a.recv(1, a.sge(0, 100))
	a.to(qpsErr)
	a.want(1, wcFlushed)
	a.recv(2, a.sge(0, 100))
	a.want(2, wcFlushed)
	a.post(send(wrSend, 3, a.sge(0, 1)).at(a.ah(AHAttr{}), a.init.QPN, testKey))
	a.want(3, wcFlushed)
	a.recv(4, a.sge(0, 100))
	a.to(qpsReset)
	a.none()
	var bad *RecvWR
	l.want("receive in RESET", l.QPPostRecv(a.qp, &RecvWR{}, &bad), unix.EINVAL)
	a.to(qpsInit)
	a.recv(5, a.sge(0, 100))
	a.none()
}

// Nothing is lost while there are receives: what the receiver has no room for waits.
func TestASlowReceiverLosesNothing(t *testing.T) {
	one, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	a, b := one.udEnd(), other.udEnd()
	ah := a.ah(AHAttr{})
	const messages = 2000
	posted, got := 0, 0
	recv := func() { b.recv(uint64(posted), b.sge(0, datagram.GRHLen+datagram.MTU)); posted++ }
	for range 64 {
		recv()
	}
	wcs := make([]WC, 16)
	sent := 0
	one.until("all come", func() bool {
		for sent < messages {
			wr := send(wrSend, uint64(sent), a.sge(0, datagram.MTU)).at(ah, b.init.QPN, testKey)
			var bad *SendWR
			if one.QPPostSend(a.qp, wr, &bad) != ok {
				break // the queue is full
			}
			sent++
		}
		one.CQPoll(a.cq, 16, &wcs[0])
		n := other.CQPoll(b.cq, 1, &wcs[0]) // slowly
		for range n {
			got++
			recv()
		}
		return got == messages
	})
}

// The window opens for who has waited in vain.
func TestAPeerThatIsNotThereHoldsNobodyUpForEver(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a := l.udEnd()
	ah := a.ah(AHAttr{})
	nobody := a.init.QPN + 5<<indexBits // a slot further on
	for i := range 200 {
		a.post(send(wrSend, uint64(i), a.sge(0, 4096)).at(ah, nobody, testKey))
		a.want(uint64(i), wcSuccess)
	}
}

// connectUC has two UC ends name each other.
func connectUC(t *testing.T, a, b *end, psn uint32) {
	t.Helper()
	for _, e := range [][2]*end{{a, b}, {b, a}} {
		me, peer := e[0], e[1]
		me.lab.must("to RTR", me.lab.QPModify(me.qp, &QPAttr{State: qpsRTR, DestQPN: peer.init.QPN, RQPSN: psn}, qpState|qpAV|qpDestQPN|qpRQPSN))
		me.lab.must("to RTS", me.lab.QPModify(me.qp, &QPAttr{State: qpsRTS, SQPSN: psn}, qpState|qpSQPSN))
	}
}

func TestUnreliableConnections(t *testing.T) {
	l, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	a, b := l.end(uc), other.end(uc)
	connectUC(t, a, b, 0xabcdef)
	big := func(e *end) ([]byte, Region) {
		mem := make([]byte, 300_000)
		return mem, e.register(mem, allAccess)
	}
	from, fromMR := big(a)
	to, toMR := big(b)
	fill(from, 3)
	a.post(send(wrSend, 1, a.sge(0, 10))) // without a receive
	a.want(1, wcSuccess)
	l.until("it is dropped", func() bool {
		b.none()
		d := other.qp(b.qp).datagram
		d.recvMu.Lock()
		defer d.recvMu.Unlock()
		return d.queue.Dropped()[datagram.NoReceive] == 1
	})
	b.recv(2, SGE{toMR.Addr, uint32(len(to)), toMR.STag})
	imm := send(wrSendImm, 2, SGE{fromMR.Addr, uint32(len(from)), fromMR.STag})
	imm.Imm = 77
	a.post(imm)
	a.want(2, wcSuccess)
	wantWC(t, b.next(), WC{ID: 2, Opcode: wcRecv, ByteLen: uint32(len(from)), QPN: b.init.QPN, SrcQP: a.init.QPN, Flags: wcWithImm, Imm: 77})
	if !bytes.Equal(from, to) {
		t.Error("the data differ")
	}
	b.recv(3, b.sge(0, 5))
	a.post(send(wrSend, 3, a.sge(0, 6)))
	a.want(3, wcSuccess)
	b.want(3, wcLocalLength)

	// Another queue pair, and one with another PSN, are not heard.
	c := l.end(uc)
	l.must("to RTR", l.QPModify(c.qp, &QPAttr{State: qpsRTR, DestQPN: b.init.QPN}, qpState|qpAV|qpDestQPN))
	l.must("to RTS", l.QPModify(c.qp, &QPAttr{State: qpsRTS, SQPSN: 0xabcdef}, qpState|qpSQPSN))
	b.recv(5, b.sge(0, 100))
	c.post(send(wrSend, 5, c.sge(0, 1)))
	c.want(5, wcSuccess)
	l.must("another PSN", l.QPModify(a.qp, &QPAttr{State: qpsRTS, SQPSN: 1}, qpState|qpSQPSN))
	a.post(send(wrSend, 6, a.sge(0, 1)))
	a.want(6, wcSuccess)
	l.until("both are dropped", func() bool {
		b.none()
		d := other.qp(b.qp).datagram
		d.recvMu.Lock()
		defer d.recvMu.Unlock()
		all := d.queue.Dropped()
		return all[datagram.WrongSource] == 1 && all[datagram.WrongKey] == 1
	})
	l.want("a peer without a number", l.QPModify(l.end(uc).qp, &QPAttr{State: qpsRTR}, qpState|qpAV), unix.EINVAL)
	l.want("a peer without a port", l.QPModify(l.end(uc).qp, &QPAttr{State: qpsRTR, DestQPN: 1}, qpState|qpAV|qpDestQPN), unix.EINVAL)
}

// A stranger sends what the rules forbid. Nothing of it is delivered, and all of it is counted.
func TestHostileDatagramsAreDropped(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	b.recv(1, b.sge(0, 1000))
	port := uint16(l.settings.port) + uint16(b.init.QPN>>indexBits) - 1
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(localhost, port)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good := datagram.Header{Op: datagram.Send, Dest: b.init.QPN, Source: a.init.QPN, Key: testKey, Length: 5}
	packet := func(h datagram.Header, payload string) []byte {
		p := append(make([]byte, datagram.HeaderLen), payload...)
		h.Put(p)
		return p
	}
	wrongKey, noQP, fragment := good, good, good
	wrongKey.Key++
	noQP.Dest += 100
	fragment.Length, fragment.Offset = 4000, 100
	ack := datagram.Header{Op: datagram.Ack, Sequence: 1, Length: 1}
	damaged := packet(ack, "")
	damaged[26] ^= 1
	flood := [][]byte{
		nil,
		{1},
		packet(good, "hello")[:datagram.HeaderLen-1], packet(good, "hello")[:datagram.HeaderLen+2], // cut short: the payload of a fragment
		packet(good, "hello, world"), bytes.Repeat([]byte{0xff}, 2000), packet(wrongKey, "hello"), packet(noQP, "hello"),
		packet(good, "hello"), // it is right, but for the port from which it comes
		packet(fragment, "hello"), packet(ack, ""), damaged,
	}
	const rounds = 200
	want := uint64(0)
	for range rounds {
		for _, p := range flood {
			if _, err := c.Write(p); err != nil {
				t.Fatal(err)
			}
			want++
			b.none()
		}
	}
	p := l.datagrams.port.Load()
	l.until("all are counted", func() bool {
		b.none()
		total := uint64(0)
		for _, n := range p.Dropped() {
			total += n
		}
		return total == want
	})
	all := p.Dropped()
	for reason, n := range map[datagram.Reason]uint64{
		datagram.Malformed: 5, datagram.WrongKey: 1, datagram.NoQueuePair: 1, datagram.WrongSource: 4, datagram.Corrupt: 1,
	} {
		if all[reason] != n*rounds {
			t.Errorf("%v: %d; want %d", reason, all[reason], n*rounds)
		}
	}
	a.post(send(wrSend, 1, a.sge(0, 5)).at(a.ah(AHAttr{}), b.init.QPN, testKey))
	a.want(1, wcSuccess)
	b.want(1, wcSuccess)
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 100)); err == nil {
		t.Errorf("the stranger got an answer of %d bytes", n)
	}
}

// What is sent to a group comes to all that are attached to it, in all processes, and to the sender if it is.
func TestGroupsGetCopies(t *testing.T) {
	one, other := newLab(t, ethernetSetting), newLab(t, ethernetSetting)
	group := netip.MustParseAddr("239.192.21.7").As16()
	roce1 := [16]byte{0: 0xff, 1: 0x0e, 10: 0xff, 11: 0xff, 12: 239, 13: 192, 14: 21, 15: 7}
	index := uint32(0)
	for gid := (GID{}); ; index++ {
		if one.must("find 127.0.0.1", one.GID(0, 1, index, &gid)); gid.addr() == localhost {
			break
		}
	}
	a, b, c, outside := one.udEnd(), one.udEnd(), other.udEnd(), other.udEnd()
	members := []*end{a, b, c}
	stranger := other.udEnd()
	other.must("another Q_Key", other.QPModify(stranger.qp, &QPAttr{State: qpsRTS, QKey: testKey + 2}, qpState|qpQKey))
	other.must("attach", other.QPAttach(stranger.qp, &group))
	stranger.recv(7, stranger.sge(1000, 5000))
	for i, m := range members {
		gid := []*[16]byte{&group, &roce1}[i%2]
		m.lab.must("attach", m.lab.QPAttach(m.qp, gid))
		m.lab.must("attach again", m.lab.QPAttach(m.qp, gid))
	}
	fill(a.mem, 5)
	ah := a.ah(AHAttr{IsGlobal: 1, SGIDIndex: index, DGID: group})
	for _, m := range append(members, outside) {
		m.recv(7, m.sge(1000, 5000))
	}
	a.post(send(wrSend, 1, a.sge(0, 900)).at(ah, datagram.Multicast, testKey+1), send(wrSend, 2, a.sge(0, 900)).at(ah, datagram.Multicast, testKey))
	seen := 0
	for range 3 { // two Sends, and a receive
		if wc := a.next(); wc.Opcode == wcRecv {
			seen++
			a.gotCopy(&wc, a)
		}
	}
	for _, m := range members[1:] {
		wc := m.next()
		m.gotCopy(&wc, a)
	}
	if seen != 1 {
		t.Errorf("the sender has got %d copies; want 1", seen)
	}
	outside.none()
	stranger.none()
	for _, m := range members {
		m.lab.must("detach", m.lab.QPDetach(m.qp, &roce1))
		m.lab.want("detach again", m.lab.QPDetach(m.qp, &roce1), unix.EINVAL)
	}
	notAGroup := localhost.As16()
	one.want("attach to a host", one.QPAttach(a.qp, &notAGroup), unix.EINVAL)
	one.want("attach a queue pair of RC", one.QPAttach(one.end().qp, &group), unix.EINVAL)
	var bad *SendWR
	one.want("a group and a number", one.QPPostSend(a.qp, send(wrSend, 1, a.sge(0, 1)).at(ah, b.init.QPN, testKey), &bad), unix.EINVAL)
}

// gotCopy checks the first 900 bytes of an end's memory, sent to a group.
func (e *end) gotCopy(wc *WC, from *end) {
	e.lab.Helper()
	from1, to := grhOf(e.mem[1000:])
	if wc.ByteLen != 940 || wc.SrcQP != from.init.QPN || !bytes.Equal(e.mem[1040:1940], from.mem[:900]) || from1 != localhost || !to.IsMulticast() {
		e.lab.Errorf("%+v, from %v to %v, or other data", wc, from1, to)
	}
}

// A datagram within a fragment of the path is one system call, and allocates nothing.
func TestDatagramsAllocateNothing(t *testing.T) {
	l := newLab(t, ethernetSetting)
	a, b := l.udEnd(), l.udEnd()
	wr := send(wrSend, 1, a.sge(0, 64)).at(a.ah(AHAttr{}), b.init.QPN, testKey)
	sge := b.sge(0, 200)
	rr := &RecvWR{SGL: &sge, NumSGE: 1}
	wcs := make([]WC, 4)
	exchange := func() {
		var badR *RecvWR
		var badS *SendWR
		if l.QPPostRecv(b.qp, rr, &badR) != ok || l.QPPostSend(a.qp, wr, &badS) != ok {
			t.Fatal("it can't be posted")
		}
		for n := int32(0); n < 1; n += l.CQPoll(b.cq, 4, &wcs[0]) {
		}
		for n := int32(0); n < 1; n += l.CQPoll(a.cq, 4, &wcs[0]) {
		}
	}
	for range 1000 {
		exchange()
	}
	if n := testing.AllocsPerRun(1000, exchange); n > 0.1 { // the port's goroutine naps meanwhile
		t.Errorf("%v allocations for each datagram", n)
	}
}

func TestTheRingOfCompletionsKeepsOrder(t *testing.T) {
	var d datagramWCs
	of := new(datagramQP)
	other := new(datagramQP)
	add := func(id uint64, of *datagramQP) {
		n := int(d.n.Load())
		if n == len(d.ring) {
			d.grow()
		}
		d.ring[(d.head+n)%len(d.ring)] = datagramWC{WC: WC{ID: id}, of: of}
		d.n.Add(1)
	}
	out := make([]WC, 7)
	var got []uint64
	for i := range uint64(100) {
		add(i, []*datagramQP{of, other}[i%2])
		if i%10 == 9 {
			for _, wc := range out[:d.take(out)] {
				got = append(got, wc.ID)
			}
		}
	}
	d.forget(other)
	for n := d.take(out); n > 0; n = d.take(out) {
		for _, wc := range out[:n] {
			if got = append(got, wc.ID); wc.ID%2 == 1 {
				t.Errorf("completion %d was forgotten", wc.ID)
			}
		}
	}
	if !slices.IsSorted(got) || len(got) != 70+15 {
		t.Errorf("%d completions: %v", len(got), got)
	}
}
