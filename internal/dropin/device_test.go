//go:build linux

package dropin

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDevice(t *testing.T) {
	for settings, want := range map[string][3]uint32{"": {1, 0, 32}, "URNIC_TRANSPORT=ethernet": {0, 0, 32}, "URNIC_STRICT=1": {1, 1, 1}} {
		l := newLab(t, settings)
		var d DeviceAttr
		l.must("device", l.Device(0, &d))
		if name := strings.TrimRight(string(d.Name[:]), "\x00"); name != "urnic0" {
			t.Errorf("name %q", name)
		}
		if got := [3]uint32{d.IWARP, d.Strict, d.MaxReadSGE}; got != want {
			t.Errorf("%s: %v; want %v", settings, got, want)
		}
		if d.GUID == [8]byte{} || d.GUID != guid() {
			t.Errorf("GUID %x", d.GUID)
		}
		if d.MaxQP != 16383 || d.MaxSGE != 32 || d.MaxInline != 1024 || d.MaxQPWR == 0 || d.MaxCQE == 0 || d.MaxReadAtomic != 128 || d.MaxMR == 0 || d.MaxMRSize == 0 || d.MaxMessage == 0 || d.MaxSRQ == 0 || d.MaxMW == 0 || d.MaxPD == 0 {
			t.Errorf("%+v", d)
		}
		var gid GID
		for i := range d.GIDs {
			l.must("GID", l.GID(0, 1, i, &gid))
			if gid.IfIndex == 0 {
				t.Errorf("GID %d: %+v", i, gid)
			}
		}
		l.want("beyond the table", l.GID(0, 1, d.GIDs, &gid), unix.EINVAL)
	}
}

// The addresses that lead farthest come first; there always is one of the loopback
// interface.
func TestGIDsAreOrdered(t *testing.T) {
	all := hostGIDs()
	last, loopback := 0, false
	for i := range all {
		if r := reach(&all[i]); r < last {
			t.Errorf("%v comes behind one that leads less far", all[i].addr())
		} else {
			last = r
		}
		loopback = loopback || all[i].addr().IsLoopback()
	}
	if !loopback {
		t.Errorf("%v", all)
	}
	for address, want := range map[string]int{"192.0.2.1": 0, "2001:db8::1": 1, "fe80::1": 2, "169.254.1.1": 2, "127.0.0.1": 3, "::1": 3} {
		g := GID{Raw: netip.MustParseAddr(address).As16()}
		if got := reach(&g); got != want || g.addr().String() != address {
			t.Errorf("%s, seen as %v: %d; want %d", address, g.addr(), got, want)
		}
	}
}

// Capacities that are made are at least those that were asked for, and are told.
func TestCapacities(t *testing.T) {
	l := newLab(t)
	for _, want := range []QPInit{{}, {MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: 1}, {MaxSendWR: 32768, MaxRecvWR: 32768, MaxSendSGE: 32, MaxRecvSGE: 3, MaxInline: 1024}} {
		e := l.end(func(e *end) {
			want.Cookie, want.SendCQ, want.RecvCQ = e.init.Cookie, e.cq, e.cq
			e.init = want
		})
		got := e.init
		if got.MaxSendWR < max(want.MaxSendWR, 1) || got.MaxRecvWR < max(want.MaxRecvWR, 1) || got.MaxSendSGE < max(want.MaxSendSGE, 1) || got.MaxRecvSGE < max(want.MaxRecvSGE, 1) || got.MaxInline < want.MaxInline {
			t.Errorf("%+v; want at least %+v", got, want)
		}
		if got.QPN&maxQPs == 0 || got.QPN>>24 != 0 {
			t.Errorf("QPN 0x%x", got.QPN)
		}
	}
	e := l.end()
	for _, bad := range []QPInit{{MaxSendWR: 32769}, {MaxRecvWR: 32769}, {MaxSendSGE: 33}, {MaxRecvSGE: 33}, {MaxInline: 1025}} {
		bad.SendCQ, bad.RecvCQ = e.cq, e.cq
		l.want("too much", l.QPCreate(e.pd, &bad), unix.EINVAL)
	}
	other := l.end()
	l.want("a CQ of another context", l.QPCreate(e.pd, &QPInit{SendCQ: e.cq, RecvCQ: other.cq}), unix.EINVAL)
}

// Numbers are used again only after all others.
func TestQPNumbers(t *testing.T) {
	var n qpNumbers
	n.slot.Store(3)
	seen := map[uint32]bool{}
	for i := range uint32(maxQPs) {
		got := n.reserve()
		if got != 3<<14|(i+1) || seen[got] {
			t.Fatalf("number %d: 0x%x", i, got)
		}
		seen[got] = true
	}
	if got := n.reserve(); got != 0 {
		t.Errorf("one more: 0x%x", got)
	}
	q := &qp{num: 3<<14 | 7}
	n.set(q.num, q)
	for qpn, want := range map[uint32]*qp{q.num: q, 7: nil, 2<<14 | 7: nil, 3<<14 | 8: nil, 1<<31 | q.num: nil} {
		if got := n.get(qpn); got != want {
			t.Errorf("0x%x: %v; want %v", qpn, got, want)
		}
	}
	n.release(q.num)
	n.release(3<<14 | 9)
	if n.get(q.num) != nil || n.reserve() != q.num || n.reserve() != 3<<14|9 {
		t.Error("numbers that are free are not given out in their order")
	}
}

// A recording holds what the process sends, in a file of its own.
func TestRecording(t *testing.T) {
	dir := t.TempDir()
	l := newLab(t, "URNIC_PCAP="+filepath.Join(dir, "urnic-%p.pcapng"))
	a, b := l.pair()
	b.recv(1, b.sge(0, 100))
	a.post(send(wrSend, 1, a.sge(0, 100)))
	b.want(1, wcSuccess)
	l.must("close", l.ContextClose(a.ctx))
	l.must("close", l.ContextClose(b.ctx))
	files, err := filepath.Glob(filepath.Join(dir, "urnic-[0-9]*.pcapng"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	s, err := os.Stat(files[0])
	if err != nil || s.Size() < 500 {
		t.Fatalf("%v, %v", s, err)
	}
	if s.Mode() != 0o600 {
		t.Errorf("its mode is %v", s.Mode())
	}
	if _, err := Open([]string{"URNIC_PCAP=" + filepath.Join(dir, "none", "x")}, nil); err == nil || !strings.Contains(err.Error(), "URNIC_PCAP") {
		t.Errorf("a file that can't be made: %v", err)
	}
}

// Lines for people begin with urnic, and say what their level wants.
func TestLog(t *testing.T) {
	for name, level := range levels {
		said := new(lines)
		l := &logger{level: level, w: said}
		l.print(logError, "error")
		l.print(logWarning, "warning")
		log := l.slog().With("a", 1).WithGroup("g")
		log.Info("info", "b", 2)
		log.Debug("debug")
		log.Warn("slog warning")
		log.Error("slog error")
		want := []string{"error", "slog error a=1"}
		for i, more := range []string{"warning,slog warning a=1", "info a=1 b=2", "debug a=1"} {
			if level >= logWarning+uint32(i) {
				want = append(want, strings.Split(more, ",")...)
			}
		}
		for _, w := range want {
			if !strings.Contains("\n"+said.String(), "\nurnic: "+w+"\n") {
				t.Errorf("%s: no %q in\n%s", name, w, said)
			}
		}
		if n := strings.Count(said.String(), "\n"); n != len(want) {
			t.Errorf("%s: %d lines; want %d:\n%s", name, n, len(want), said)
		}
	}
	said := new(lines)
	hostile := &logger{level: logDebug, w: said}
	hostile.slog().Debug("a peer", "error", errors.New("says \x1b[2J\nurnic: \u202eexe"))
	if want := `urnic: a peer error=says \x1b[2J\nurnic: \u202eexe` + "\n"; said.String() != want {
		t.Errorf("%q; want %q", said, want)
	}
	l := newLab(t)
	l.Engine.Log(logError, "from C")
	l.Engine.Log(logError, "from C")
	if l.said.String() != "urnic: from C\n" {
		t.Errorf("%q", l.said)
	}
}

// What a program asks for and is not there is told at every level, each kind of it once: the
// program itself may say only that a call has failed.
func TestUnsupportedRequestsAreToldOnce(t *testing.T) {
	l := newLab(t)
	for i := range 3 {
		for _, err := range []error{errors.New("no such operation"), errors.New("another")} {
			l.refuse(syscall.EOPNOTSUPP, "post send: request %d: %v", i, err)
		}
		l.refuse(syscall.EOPNOTSUPP, "register: access flags 0x%x", 1<<i)
		l.refuse(syscall.EINVAL, "register: no memory")
		l.Engine.Log(logError, "from C")
	}
	want := "urnic: post send: request 0: no such operation\nurnic: post send: request 0: another\nurnic: register: access flags 0x1\nurnic: from C\n"
	if l.said.String() != want {
		t.Errorf("%s\nwant\n%s", l.said, want)
	}
}
