//go:build linux

package dropin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// reachable reports whether the rendezvous port of a queue pair takes connections.
func reachable(t *testing.T, at string, qpn uint32) bool {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort(at, fmt.Sprint(DefaultRendezvousPort+int(qpn>>indexBits)-1)))
	if err == nil {
		_ = c.Close() // it was only to be seen that it can be opened
		return true
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
	return false
}

// blank makes a queue pair in state RESET.
func (l *cmLab) blank() QPInit {
	l.Helper()
	entries := uint32(8)
	cq, bad := l.CQCreate(l.ctx, &entries, 0, 1)
	l.must("create CQ", bad)
	init := QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	l.must("create QP", l.QPCreate(l.pd, &init))
	return init
}

const initMask = qpState | qpPKeyIndex | qpPort | qpAccess

func (l *cmLab) toInit(qp Handle) {
	l.Helper()
	l.must("INIT", l.QPModify(qp, &QPAttr{State: qpsInit, Port: 1}, initMask))
}

// The port of a process is closed until a queue pair comes to INIT without rdma_cm. Even
// so, nobody else can have it.
func TestPortIsClosedUntilAQueuePairNeedsIt(t *testing.T) {
	l := newCMLab(t)
	init := l.blank()
	if init.QPN>>indexBits == 0 {
		t.Fatalf("QP 0x%x has no slot", init.QPN)
	}
	if reachable(t, "127.0.0.1", init.QPN) {
		t.Error("the port is open when the queue pair is made")
	}
	port := fmt.Sprint(DefaultRendezvousPort + int(init.QPN>>indexBits) - 1)
	for _, host := range []string{"", "127.0.0.1", "::1"} {
		if n, err := net.Listen("tcp", net.JoinHostPort(host, port)); err == nil {
			_ = n.Close()
			t.Errorf("somebody else can listen at port %s of %q", port, host)
		}
	}
	l.toInit(init.QP)
	for _, host := range []string{"127.0.0.1", "::1"} {
		if !reachable(t, host, init.QPN) {
			t.Errorf("the port of %s is closed though the queue pair is in INIT", host)
		}
	}
}

// Programs with rdma_cm bring their queue pairs to INIT, too. Their port stays closed
// unless they name a peer in RTR.
func TestPortIsClosedForProgramsWithRDMACM(t *testing.T) {
	l := newCMLab(t)
	l.port().id(1)
	init := l.blank()
	l.toInit(init.QP)
	if reachable(t, "127.0.0.1", init.QPN) {
		t.Error("the port is open")
	}
	l.must("RTR", l.QPModify(init.QP, &QPAttr{State: qpsRTR, DestQPN: init.QPN + 1}, rtrMask))
	if !reachable(t, "127.0.0.1", init.QPN) {
		t.Error("the port is closed though a peer is named")
	}
}

// In strict mode, and if rendezvous is off, there is no port, and no peer can be named.
func TestNoPortWithoutRendezvous(t *testing.T) {
	for _, setting := range []string{"URNIC_STRICT=1", "URNIC_RENDEZVOUS=off"} {
		n := newCMLab(t, setting).near()
		if n.far.qpn>>indexBits != 0 {
			t.Errorf("%s: QP 0x%x has a slot", setting, n.far.qpn)
		}
		if bad := n.toRTR(far{qpn: 1<<indexBits | 1, gid: loopbackGID, global: true}); bad != syscall.EOPNOTSUPP {
			t.Errorf("%s: a peer is named: %v; want EOPNOTSUPP", setting, bad)
		}
		if opened, err := n.meeting.m.Listen(); opened || err != nil {
			t.Errorf("%s: a port is opened: %v", setting, err)
		}
	}
}

// A process can be called at one address only, if that is wanted; programs on one host
// find each other there with GIDs and without.
func TestPortAtOneAddress(t *testing.T) {
	const where = "127.0.0.83"
	for _, global := range []bool{true, false} {
		a, b := newCMLab(t, "URNIC_RENDEZVOUS="+where).near(), newCMLab(t, "URNIC_RENDEZVOUS="+where).near()
		for _, n := range []*near{a, b} {
			n.far.global = global
			if !reachable(t, where, n.far.qpn) || reachable(t, "127.0.0.1", n.far.qpn) {
				t.Errorf("the port is not open at %s, and there alone", where)
			}
		}
		if global { // their own GID is another one of the host
			a.far.gid = netip.MustParseAddr("::ffff:" + where).As16()
			b.far.gid = a.far.gid
			rtr := func(n *near, to far) {
				n.must("RTR", n.QPModify(n.qp, &QPAttr{State: qpsRTR, DestQPN: to.qpn, RQPSN: to.psn, MaxDestReadAtomic: 4, DGID: to.gid, IsGlobal: 1, SGIDIndex: n.index(loopbackGID)}, rtrMask))
				n.toRTS(14)
			}
			rtr(a, b.far)
			rtr(b, a.far)
		} else {
			a.connect(b.far)
			b.connect(a.far)
		}
		passText(a, b, "at one address")
	}
}
