//go:build linux

package dropin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urnic/internal/dropin/sysfs"
	"urnic/internal/dropin/sysfsdir"
)

// counterDir writes a directory of sysfs, and returns it with the setting that names it.
func counterDir(t *testing.T, settings ...string) (dir string, all []string) {
	t.Helper()
	devices, err := View(settings)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "sys")
	if err := sysfsdir.Write(dir, sysfs.Tree(devices)); err != nil {
		t.Fatal(err)
	}
	return dir, append(settings, "URNIC_SYSFS="+dir)
}

// wantCounters compares the files of a port.
func wantCounters(t *testing.T, dir string, want map[sysfs.Counter]string) {
	t.Helper()
	for c := range sysfs.Counters {
		b, err := os.ReadFile(filepath.Join(dir, sysfs.CounterFile(defaultDevice, 1, c)))
		if err != nil {
			t.Fatal(err)
		}
		if w := want[c]; strings.TrimSpace(string(b)) != w && (w != "" || string(b) != "0\n") {
			t.Errorf("%s is %q; want %q", sysfs.CounterFile(defaultDevice, 1, c), b, w)
		}
	}
}

// The counters of a port are those of all processes that have the directory, of queue pairs that are
// gone, too.
func TestCountersOfAllProcesses(t *testing.T) {
	dir, settings := counterDir(t, ethernetSetting)
	one, other := newLab(t, settings...), newLab(t, settings...)
	a, b := one.udEnd(), other.udEnd()
	ah := a.ah(AHAttr{})
	for i := range uint64(3) {
		b.recv(i, b.sge(0, 200))
		a.post(send(wrSend, i, a.sge(0, 102)).at(ah, b.init.QPN, testKey))
		a.want(i, wcSuccess)
		b.want(i, wcSuccess)
	}
	one.tellCounters()
	other.tellCounters()
	want := map[sysfs.Counter]string{
		sysfs.XmitData: "76", sysfs.XmitPackets: "3", sysfs.UnicastXmitPackets: "3",
		sysfs.RcvData: "76", sysfs.RcvPackets: "3", sysfs.UnicastRcvPackets: "3",
	}
	wantCounters(t, dir, want)
	one.must("destroy", one.QPDestroy(a.qp))
	one.tellCounters() // nothing is new
	wantCounters(t, dir, want)

	x, y := one.udEnd(), one.udEnd()
	ah = x.ah(AHAttr{})
	y.recv(1, y.sge(0, 200))
	for i := range uint64(2) {
		x.post(send(wrSend, i, x.sge(0, 100)).at(ah, y.init.QPN, testKey))
		x.want(i, wcSuccess)
	}
	y.want(1, wcSuccess)
	one.until("the second one is dropped", func() bool {
		y.none()
		return one.qp(y.qp).count()[sysfs.OutOfBuffer] == 1
	})
	one.must("destroy", one.QPDestroy(x.qp))
	one.must("destroy", one.QPDestroy(y.qp))
	one.tellCounters()
	wantCounters(t, dir, map[sysfs.Counter]string{
		sysfs.XmitData: "126", sysfs.XmitPackets: "5", sysfs.UnicastXmitPackets: "5",
		sysfs.RcvData: "101", sysfs.RcvPackets: "4", sysfs.UnicastRcvPackets: "4", sysfs.OutOfBuffer: "1",
	})
}

// Reliable connections count their messages, and of each the payload and what it asks for: 28 bytes of a Read Request.
func TestCountersOfConnections(t *testing.T) {
	dir, settings := counterDir(t)
	l := newLab(t, settings...)
	a, b := l.pair()
	b.recv(1, b.sge(0, 100))
	a.post(send(wrWrite, 1, a.sge(0, 1000)).toward(b, 0), send(wrSend, 2, a.sge(0, 100)))
	a.want(1, wcSuccess)
	a.want(2, wcSuccess)
	b.want(1, wcSuccess)
	a.post(send(wrRead, 3, a.sge(0, 400)).toward(b, 0))
	a.want(3, wcSuccess)
	l.must("destroy", l.QPDestroy(a.qp))
	l.must("destroy", l.QPDestroy(b.qp))
	l.tellCounters()
	wantCounters(t, dir, map[sysfs.Counter]string{
		sysfs.XmitData: "382", sysfs.RcvData: "382", sysfs.XmitPackets: "4", sysfs.RcvPackets: "4",
		sysfs.UnicastXmitPackets: "4", sysfs.UnicastRcvPackets: "4", sysfs.WriteRequests: "1", sysfs.ReadRequests: "1",
	})
}

// A process whose directory is gone, or is no directory of sysfs, goes on.
func TestCountersWithoutADirectory(t *testing.T) {
	l := newLab(t, "URNIC_SYSFS=/nonexistent", "URNIC_LOG=debug")
	a, b := l.pair()
	b.recv(1, b.sge(0, 100))
	a.post(send(wrSend, 2, a.sge(0, 100)))
	a.want(2, wcSuccess)
	b.want(1, wcSuccess)
	l.tellCounters()
	if !strings.Contains(l.said.String(), "counters: open /nonexistent") {
		t.Errorf("the log says:\n%s", l.said)
	}
}
