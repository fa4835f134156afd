package rxudp_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxudp"
)

// What one process must hold: the two ends of manyConns connections, which have all carried a
// call, within memoryOfMany.
const (
	manyConns    = 10_000
	memoryOfMany = 256 << 20
	scaleProcess = "URNIC_RX_SCALE"
)

// The connections are in a process of their own, so that all of its memory counts and nothing
// else.
func TestManyConnectionsFitTheirMemory(t *testing.T) {
	if os.Getenv(scaleProcess) != "" {
		holdMany(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestManyConnectionsFitTheirMemory$", "-test.v")
	cmd.Env = append(os.Environ(), scaleProcess+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, " KiB ") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

func holdMany(t *testing.T) {
	n := manyConns
	if raceEnabled {
		n /= 10 // its memory is not what it is without
	}
	server := serve(t, echo)
	client := open(t, rxudp.Config{Addr: loopback})
	conns := make([]rx.Conn, n)
	for i := range conns {
		c, err := client.Dial(t.Context(), server.Addr(), 7, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c
		want := fmt.Sprint(i)
		if got, err := exchange(t.Context(), c, []byte(want)); err != nil || string(got) != want {
			t.Fatalf("connection %d: %q, %v", i, got, err)
		}
	}
	runtime.GC()
	debug.FreeOSMemory()
	peak, now := resident(t)
	t.Logf("%d connections with both ends: %d KiB resident, %d KiB at the most", n, now>>10, peak>>10)
	if s := server.Stats(); int(s.ServerConns) != n {
		t.Errorf("the server has %d connections, not %d", s.ServerConns, n)
	}
	if peak > memoryOfMany && !raceEnabled {
		t.Errorf("%d bytes of memory; %d are allowed", peak, memoryOfMany)
	}
	for i, c := range conns { // they still work
		if i%97 != 0 {
			continue
		}
		if _, err := exchange(t.Context(), c, []byte("again")); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
}

// resident returns how much memory of the process is in use, at the most and now. Where the
// system does not tell, it is what Go has.
func resident(t *testing.T) (peak, now int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.Sys), int(m.HeapInuse)
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			peak = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			now = kib << 10
		}
	}
	if peak == 0 {
		t.Fatal("the system does not tell how much memory is in use")
	}
	return peak, now
}

// A flood of packets that begin connections, each from another address or ID, leaves a server
// with no more of them than it may have, and honest clients are served.
func TestFloodOfConnectionsIsBounded(t *testing.T) {
	const most = 100
	server := open(t, rxudp.Config{Addr: loopback, MaxConns: most, Services: []rx.Service{{ID: 7, Handler: rx.HandlerFunc(echo)}}})
	honest := dial(t, server)
	if _, err := exchange(t.Context(), honest, []byte("before")); err != nil {
		t.Fatal(err)
	}
	flooder := open(t, rxudp.Config{Addr: loopback})
	for i := range 5 * most {
		c, err := flooder.Dial(t.Context(), server.Addr(), 7, rx.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := exchange(t.Context(), c, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if s := server.Stats(); s.ServerConns > most || s.Evicted == 0 {
		t.Errorf("%d connections, %d evicted", s.ServerConns, s.Evicted)
	}
	if got, err := exchange(t.Context(), dial(t, server), []byte("after")); err != nil || string(got) != "after" {
		t.Errorf("an honest client got %q, %v", got, err)
	}
}
