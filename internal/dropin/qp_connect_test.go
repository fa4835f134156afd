//go:build linux

package dropin

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/test/loopback"
)

// A far is what a program that uses no connection manager tells its peer.
type far struct {
	qpn, psn uint32
	gid      [16]byte
	global   bool
}

// A near is such a program: one queue pair, with memory.
type near struct {
	*cmLab
	qp, cq  Handle
	channel Handle
	fd      int // of the channel
	far     far
	buf     []byte
	mr      Region
}

// loopbackGID is the GID of 127.0.0.1.
var loopbackGID = netip.MustParseAddr("::ffff:127.0.0.1").As16()

// near makes a queue pair in state INIT.
func (l *cmLab) near() *near {
	l.Helper()
	n := &near{cmLab: l, buf: make([]byte, 4096)}
	var bad Errno
	n.channel, n.fd, bad = l.ChannelCreate(l.ctx)
	l.must("create channel", bad)
	entries := uint32(64)
	n.cq, bad = l.CQCreate(l.ctx, &entries, n.channel, 1)
	l.must("create CQ", bad)
	init := QPInit{SendCQ: n.cq, RecvCQ: n.cq, MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}
	l.must("create QP", l.QPCreate(l.pd, &init))
	n.qp = init.QP
	n.far = far{qpn: init.QPN, psn: init.QPN*7 + 1, gid: loopbackGID, global: true}
	n.mr = Region{Addr: uint64(uintptr(unsafe.Pointer(&n.buf[0]))), Length: 4096, Access: accessLocalWrite | accessRemoteRead | accessRemoteWrite}
	n.mr.IOVA = n.mr.Addr
	l.must("register", l.MRReg(l.pd, &n.mr))
	n.init()
	return n
}

func (n *near) init() {
	n.Helper()
	n.must("INIT", n.QPModify(n.qp, &QPAttr{State: qpsInit, Port: 1, Access: accessRemoteRead | accessRemoteWrite}, qpState|qpPKeyIndex|qpPort|qpAccess))
}

// rtrMask and rtsMask are those that programs give for reliable connections.
const (
	rtrMask = qpState | qpAV | qpPathMTU | qpDestQPN | qpRQPSN | qpMaxDestReadAtomic | qpMinRNRTimer
	rtsMask = qpState | qpTimeout | qpRetryCount | qpRNRRetry | qpSQPSN | qpMaxReadAtomic
)

func (n *near) toRTR(to far) Errno {
	a := QPAttr{State: qpsRTR, PathMTU: 3, DestQPN: to.qpn, RQPSN: to.psn, MaxDestReadAtomic: 4, DGID: to.gid, Port: 1, SGIDIndex: n.index(n.far.gid)}
	a.IsGlobal = flag(to.global)
	return n.QPModify(n.qp, &a, rtrMask)
}

// index returns the index of a GID of this host.
func (n *near) index(gid [16]byte) uint32 {
	n.Helper()
	for i, g := range n.gids.list() {
		if g.Raw == gid {
			return uint32(i)
		}
	}
	n.Fatalf("there is no GID %v", netip.AddrFrom16(gid))
	return 0
}

func (n *near) toRTS(timeout uint32) {
	n.Helper()
	n.must("RTS", n.QPModify(n.qp, &QPAttr{State: qpsRTS, Timeout: timeout, RetryCount: 7, RNRRetry: 7, SQPSN: n.far.psn, MaxReadAtomic: 4}, rtsMask))
}

// connect brings a queue pair to RTS.
func (n *near) connect(to far) {
	n.Helper()
	n.must("RTR", n.toRTR(to))
	n.toRTS(14)
}

func (n *near) send(id uint64) Errno {
	sge := SGE{Addr: n.mr.Addr, Length: 64, LKey: n.mr.STag}
	return n.QPPostSend(n.qp, &SendWR{ID: id, SGL: &sge, NumSGE: 1, Opcode: wrSend, Flags: sendSignaled}, nil)
}

func (n *near) recv(id uint64) {
	n.Helper()
	sge := SGE{Addr: n.mr.Addr + 2048, Length: 64, LKey: n.mr.STag}
	n.must("post receive", n.QPPostRecv(n.qp, &RecvWR{ID: id, SGL: &sge, NumSGE: 1}, nil))
}

// wc waits for a completion, as a program does that sleeps until there is one.
func (n *near) wc() (wc WC) {
	n.Helper()
	for {
		if got := n.CQPoll(n.cq, 1, &wc); got == 1 {
			return wc
		}
		n.must("arm", n.CQArm(n.cq, false))
		if got := n.CQPoll(n.cq, 1, &wc); got == 1 {
			return wc
		}
		n.readable(n.fd)
		var cookie uint64
		n.must("next event", n.ChannelNext(n.channel, &cookie))
	}
}

// readable waits until a descriptor is.
func (n *near) readable(fd int) {
	n.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if got, err := unix.Poll(fds, int(patience/time.Millisecond)); got == 1 {
			return
		} else if err != nil && err != unix.EINTR {
			n.Fatal(err)
		}
	}
	n.Fatal("what is waited for does not come")
}

func (n *near) want(id uint64, status uint32) {
	n.Helper()
	if wc := n.wc(); wc.ID != id || wc.Status != status {
		n.Errorf("QP 0x%x: completion of %d with status %d; want %d with %d", n.far.qpn, wc.ID, wc.Status, id, status)
	}
}

// passText has each side send to the other, a first.
func passText(a, b *near, text string) {
	for i, d := range [][2]*near{{a, b}, {b, a}} {
		copy(d[0].buf, fmt.Sprint(text, i))
		d[1].recv(1)
		d[0].must("post send", d[0].send(2))
		d[1].want(1, wcSuccess)
		d[0].want(2, wcSuccess)
		if got := string(d[1].buf[2048:][:len(text)+1]); got != fmt.Sprint(text, i) {
			a.Errorf("%q arrived", got)
		}
	}
}

// twoEngines are two processes, as it were.
func twoEngines(t *testing.T) (a, b *near) {
	t.Helper()
	return newCMLab(t).near(), newCMLab(t).near()
}

func TestProgramsThatModifyQueuePairsThemselves(t *testing.T) {
	for _, order := range []string{"a first", "b first"} {
		for _, global := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, global=%t", order, global), func(t *testing.T) {
				a, b := twoEngines(t)
				a.far.global, b.far.global = global, global
				if a.far.qpn>>indexBits == b.far.qpn>>indexBits || a.far.qpn>>indexBits == 0 || b.far.qpn>>indexBits == 0 {
					t.Fatalf("QPs 0x%x and 0x%x: the slots must be two", a.far.qpn, b.far.qpn)
				}
				if order == "b first" {
					a, b = b, a
				}
				a.recv(7)
				a.connect(b.far)
				a.must("a Send that waits", a.send(8))
				b.recv(9)
				b.connect(a.far)
				a.want(8, wcSuccess)
				b.want(9, wcSuccess)
				b.must("a Send back", b.send(10))
				b.want(10, wcSuccess)
				a.want(7, wcSuccess)
				passText(b, a, "once more")
				var attr QPAttr
				if a.must("query", a.QPQuery(a.qp, &attr)); attr.State != qpsRTS || attr.DestQPN != b.far.qpn || attr.DGID != b.far.gid || attr.MaxDestReadAtomic != 4 || attr.Timeout != 14 {
					t.Errorf("query: %+v", attr)
				}
			})
		}
	}
}

// A queue pair of one context finds one of another, and of its own.
func TestProgramThatIsItsOwnPeer(t *testing.T) {
	l := newCMLab(t)
	a, b := l.near(), l.near()
	a.connect(b.far)
	b.connect(a.far)
	passText(a, b, "within")
	if bad := l.near().toRTR(a.far); bad != ok {
		t.Errorf("to a queue pair that has a peer: %v", bad)
	}
}

// A queue pair that is its own peer takes its own Sends, and reads its own memory. What
// it has to itself is gone with it.
func TestQueuePairThatIsItsOwnPeer(t *testing.T) {
	l := newCMLab(t)
	for _, global := range []bool{true, false} {
		n := l.near()
		n.far.global = global
		n.connect(n.far)
		for round := range uint64(10) {
			copy(n.buf, fmt.Sprint("to myself ", round))
			n.recv(1)
			n.must("post send", n.send(2))
			got := n.wc().ID + n.wc().ID // in whatever order
			if want := fmt.Sprint("to myself ", round); got != 3 || string(n.buf[2048:][:len(want)]) != want {
				t.Errorf("completions %d, %q; want %q", got, n.buf[2048:2064], want)
			}
			sge := SGE{Addr: n.mr.Addr + 1024, Length: 11, LKey: n.mr.STag}
			wr := SendWR{ID: 5, SGL: &sge, NumSGE: 1, Opcode: wrRead, Flags: sendSignaled}
			wr.RDMA().RemoteAddr, wr.RDMA().RKey = n.mr.Addr, n.mr.STag
			n.must("post read", n.QPPostSend(n.qp, &wr, nil))
			n.want(5, wcSuccess)
			if string(n.buf[1024:][:11]) != string(n.buf[:11]) {
				t.Errorf("%q was read", n.buf[1024:][:11])
			}
		}
		n.recv(6)
		n.must("ERR", n.QPModify(n.qp, &QPAttr{State: qpsErr}, qpState))
		n.want(6, wcFlushed)
		n.must("RESET", n.QPModify(n.qp, &QPAttr{State: qpsReset}, qpState))
		n.init()
		n.connect(n.far)
		n.must("destroy", n.QPDestroy(n.qp))
	}
}

func TestRDMAReadWithinWhatThePeerTakes(t *testing.T) {
	a, b := twoEngines(t)
	a.connect(b.far)
	b.connect(a.far)
	copy(b.buf, "what is read")
	sge := SGE{Addr: a.mr.Addr + 1024, Length: 12, LKey: a.mr.STag}
	wr := SendWR{ID: 5, SGL: &sge, NumSGE: 1, Opcode: wrRead, Flags: sendSignaled}
	wr.RDMA().RemoteAddr, wr.RDMA().RKey = b.mr.Addr, b.mr.STag
	a.must("post read", a.QPPostSend(a.qp, &wr, nil))
	a.want(5, wcSuccess)
	if got := string(a.buf[1024:][:12]); got != "what is read" {
		t.Errorf("%q was read", got)
	}
	p, _ := a.qps.get(a.qp).verbs.Params()
	if p.IRD != 4 || p.ORD != 4 {
		t.Errorf("IRD %d, ORD %d; want what max_dest_rd_atomic says", p.IRD, p.ORD)
	}
}

// What has completed arrives, though the sender destroys its queue pair at once.
func TestWhatHasCompletedArrives(t *testing.T) {
	for name, end := range map[string]func(n *near) Errno{
		"destroy": func(n *near) Errno { return n.QPDestroy(n.qp) },
		"ERR":     func(n *near) Errno { return n.QPModify(n.qp, &QPAttr{State: qpsErr}, qpState) },
		"RESET":   func(n *near) Errno { return n.QPModify(n.qp, &QPAttr{State: qpsReset}, qpState) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := twoEngines(t)
			for id := range 8 {
				b.recv(uint64(id))
			}
			a.connect(b.far)
			b.connect(a.far)
			for id := range 7 {
				a.must("post send", a.send(uint64(id)))
			}
			for id := range 7 {
				a.want(uint64(id), wcSuccess)
			}
			a.must(name, end(a))
			for id := range 7 {
				b.want(uint64(id), wcSuccess)
			}
			// As on InfiniBand, nothing has told b that a has gone: its receive waits.
			var attr QPAttr
			for attr.State != qpsErr { // what the state tells comes behind all that would be flushed
				var wcs [1]WC
				if n := b.CQPoll(b.cq, 1, &wcs[0]); n != 0 {
					t.Fatalf("request %d completes with status %d", wcs[0].ID, wcs[0].Status)
				}
				runtime.Gosched()
				b.must("query", b.QPQuery(b.qp, &attr))
			}
			begin := time.Now()
			b.must("post send", b.send(20))
			b.must("post send", b.send(21))
			b.want(20, wcRetryExceeded) // the peer does not answer
			if spent, least := time.Since(begin), 8*4096*time.Nanosecond<<14; spent < least {
				t.Errorf("the Send failed after %v; InfiniBand takes %v", spent, least)
			}
			got := map[uint64]uint32{}
			for range 2 {
				wc := b.wc()
				got[wc.ID] = wc.Status
			}
			if got[21] != wcFlushed || got[7] != wcFlushed || len(got) != 2 {
				t.Errorf("statuses %v; want those of 21 and 7, flushed", got)
			}
		})
	}
}

// What the program ends itself ends at once, though the peer has gone before.
func TestProgramEndsWhatItsPeerHasLeft(t *testing.T) {
	for name, state := range map[string]uint32{"ERR": qpsErr, "RESET": qpsReset} {
		t.Run(name, func(t *testing.T) {
			a, b := twoEngines(t)
			a.connect(b.far)
			b.connect(a.far)
			passText(a, b, "before the end")
			b.recv(1)
			a.must("destroy", a.QPDestroy(a.qp))
			var attr QPAttr
			for attr.State != qpsErr {
				runtime.Gosched()
				b.must("query", b.QPQuery(b.qp, &attr))
			}
			b.must("post send", b.send(2))
			b.must("arm", b.CQArm(b.cq, false))
			var wc WC
			if n := b.CQPoll(b.cq, 1, &wc); n != 0 {
				t.Fatalf("request %d completes with status %d", wc.ID, wc.Status)
			}
			b.must(name, b.QPModify(b.qp, &QPAttr{State: state}, qpState))
			if state == qpsReset { // its completions are gone with what it was
				b.init()
				c := newCMLab(t).near()
				b.connect(c.far)
				c.connect(b.far)
				passText(b, c, "to another")
				return
			}
			got := map[uint64]uint32{}
			for range 2 {
				wc := b.wc()
				got[wc.ID] = wc.Status
			}
			if got[1] != wcFlushed || got[2] != wcFlushed || len(got) != 2 {
				t.Errorf("statuses %v; want those of 1 and 2, flushed", got)
			}
		})
	}
}

// A peer that never comes fails the queue pair once there is something to send.
func TestPeerThatNeverComes(t *testing.T) {
	a, b := twoEngines(t)
	a.times.come = 50 * time.Millisecond
	a.recv(1)
	a.must("RTR", a.toRTR(b.far))
	a.toRTS(1)
	a.must("post send", a.send(2))
	a.must("post send", a.send(3))
	begin := time.Now()
	got := map[uint64]uint32{}
	for range 3 {
		wc := a.wc()
		got[wc.ID] = wc.Status
	}
	if got[2] != wcRetryExceeded || got[3] != wcFlushed || got[1] != wcFlushed {
		t.Errorf("statuses %v", got)
	}
	if spent, least := time.Since(begin), a.times.come; spent < least {
		t.Errorf("it took only %v; want %v", spent, least)
	}
	var event Async
	a.readable(a.contexts.get(a.ctx).async.num)
	a.must("next event", a.AsyncNext(a.ctx, &event))
	if event.Type != eventQPFatal {
		t.Errorf("event %d", event.Type)
	}
	var attr QPAttr
	if a.must("query", a.QPQuery(a.qp, &attr)); attr.State != qpsErr {
		t.Errorf("state %d; want ERR", attr.State)
	}
	b.must("destroy", b.QPDestroy(b.qp))
}

// Programs bring queue pairs back to RESET, in whatever state, and use them anew.
func TestQueuePairGoesBackToReset(t *testing.T) {
	a, b := twoEngines(t)
	c := b.near()
	reset := func(n *near) {
		n.Helper()
		n.must("RESET", n.QPModify(n.qp, &QPAttr{State: qpsReset}, qpState))
		n.init()
	}
	a.connect(c.far) // which does not come
	a.must("post send", a.send(1))
	reset(a)
	for _, peer := range []*near{b, c, b} {
		a.connect(peer.far)
		peer.connect(a.far)
		passText(a, peer, "to another")
		reset(a)
		reset(peer)
	}
	a.must("RTR", a.toRTR(b.far))
	a.must("ERR", a.QPModify(a.qp, &QPAttr{State: qpsErr}, qpState))
	a.must("post send", a.send(3))
	a.want(3, wcFlushed)
	reset(a)
	a.must("RTR", a.toRTR(b.far))
	a.must("destroy", a.QPDestroy(a.qp))
}

func TestPeersThatAreRefused(t *testing.T) {
	n := newCMLab(t).near()
	for name, tt := range map[string]struct {
		far  far
		mask uint32
		idx  uint32
		want Errno
	}{
		"number of 25 bits":     {far{qpn: 1 << 24, gid: loopbackGID, global: true}, rtrMask, 0, syscall.EINVAL},
		"no address":            {far{qpn: 1<<14 | 9, global: true}, rtrMask, 0, syscall.EINVAL},
		"multicast":             {far{qpn: 1<<14 | 9, gid: [16]byte{0xff, 2, 15: 1}, global: true}, rtrMask, 0, syscall.EINVAL},
		"GID that is not there": {far{qpn: 1<<14 | 9, gid: loopbackGID, global: true}, rtrMask, 999, syscall.EINVAL},
		"no number":             {far{gid: loopbackGID, global: true}, rtrMask &^ qpDestQPN, 0, syscall.EINVAL},
		"no AV":                 {far{qpn: 1<<14 | 9}, rtrMask &^ qpAV, 0, syscall.EINVAL},
	} {
		a := QPAttr{State: qpsRTR, DestQPN: tt.far.qpn, DGID: tt.far.gid, IsGlobal: flag(tt.far.global), SGIDIndex: tt.idx}
		if bad := n.QPModify(n.qp, &a, tt.mask); bad != tt.want {
			t.Errorf("%s: %v; want %v", name, bad, tt.want)
		}
		var attr QPAttr
		if n.must("query", n.QPQuery(n.qp, &attr)); attr.State != qpsInit || attr.DestQPN != 0 {
			t.Errorf("%s: the queue pair is in state %d, with peer 0x%x", name, attr.State, attr.DestQPN)
		}
	}
	strict := newCMLab(t, "URNIC_STRICT=1").near()
	if bad := strict.toRTR(n.far); bad != syscall.EOPNOTSUPP {
		t.Errorf("strict: %v; want EOPNOTSUPP", bad)
	}
	if bad := strict.QPModify(strict.qp, &QPAttr{State: qpsRTR}, qpState); bad != ok {
		t.Errorf("strict, by rdma_cm: %v", bad)
	}
}

// A process that finds no port has queue pairs all the same.
func TestNoPortIsLeft(t *testing.T) {
	var taken []net.Listener
	defer func() {
		for _, l := range taken {
			_ = l.Close()
		}
	}()
	where := loopback.Of(t).Addr(1)
	first, settings := rendezvousAt(where)
	for p := first; p < first+maxSlots; p++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("%v:%d", where, p)); err == nil { // or somebody else has it
			taken = append(taken, l)
		}
	}
	a := newCMLab(t, settings...).near()
	if a.far.qpn>>indexBits != 0 {
		t.Fatalf("QP 0x%x has a slot", a.far.qpn)
	}
	_ = taken[17].Close()
	b := newCMLab(t, settings...).near()
	if b.far.qpn>>indexBits == 0 {
		t.Fatalf("QP 0x%x has no slot", b.far.qpn)
	}
	called := b.far
	called.gid = where.As16()
	a.connect(called)
	b.connect(a.far)
	passText(a, b, "without a slot")
}
