//go:build interop

package interop

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"urnic/ulp/rds"
)

// rdsConnections is what ss calls the connections of RDS over TCP.
var rdsConnections = fmt.Sprintf("'( sport = :%d or dport = :%d )'", rds.TCPPort, rds.TCPPort)

// cut ends connections again and again while messages of all sizes are exchanged.
func (s sides) cut(t *testing.T) {
	n := s.overTCP(t)
	const sockets, messages = 8, 60
	f := n.flows(s, sockets, messages, []int{1000, 300_000, 64, 65_536, 4097})
	cutter := theGuest.start(t, "while sleep 0.2; do ss -K -t state established "+rdsConnections+"; done")
	f.run()
	cutter.end()
	f.wantLosses(2)
}

// wantLosses checks that connections were lost at least so often, and that nothing else was.
func (f *flows) wantLosses(least int) {
	f.n.t.Helper()
	f.n.mu.Lock()
	cuts := len(f.n.of(rds.Disconnected))
	f.n.mu.Unlock()
	if cuts < least {
		f.n.t.Errorf("%d connections were lost", cuts)
	}
	f.n.t.Logf("%d connections were lost, %d messages sent again, %d reported as lost", cuts, f.n.counter("retransmitted"), f.told())
	f.n.wantNone(rds.PeerViolation, rds.NoSocket, rds.PeerRestarted)
}

// told returns how many messages were reported as lost. To a peer with a lower address that does
// not tell its paths, what a lost connection has not delivered for certain is not sent again.
func (f *flows) told() int {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	all := f.n.of(rds.MessageLost)
	for _, e := range all {
		if !errors.Is(e.Err, rds.ErrPathUnknown) {
			f.n.t.Errorf("a message is lost: %v", e.Err)
		}
	}
	return len(all)
}

// counter returns a counter of a node.
func (n *rdsNode) counter(name string) uint64 {
	for _, c := range n.Info(0).Counters {
		if c.Name == name {
			return c.Value
		}
	}
	n.t.Errorf("there is no counter %s", name)
	return 0
}

// maybeLost checks what rdspeer has received of each pair: all but those that may be lost,
// each once and in order.
func (f *flows) maybeLost(ours map[rdsPair]*rdsFlow) {
	t := f.n.t
	t.Helper()
	lost := map[rdsPair]int{}
	f.n.mu.Lock()
	for _, e := range f.n.of(rds.MessageLost) {
		lost[rdsPair{e.Socket.Addr().Port, e.Port}]++
	}
	f.n.mu.Unlock()
	found := 0
	for line := range strings.Lines(f.recv.output()) {
		var p rdsPair
		var got, bytes, first, missing, doubled, wrong int
		if n, _ := fmt.Sscanf(line, "pair from=%d to=%d messages=%d bytes=%d first=%d lost=%d doubled=%d wrong=%d", &p.from, &p.to, &got, &bytes, &first, &missing, &doubled, &wrong); n != 8 {
			continue
		}
		found++
		o := ours[p]
		if o == nil || doubled+wrong > 0 || o.messages-got > lost[p] {
			t.Errorf("%d messages are reported as lost: %s", lost[p], line)
		}
		if o != nil && got == o.messages && !strings.Contains(line, "sha256="+o.sha256()) {
			t.Errorf("SHA-256 %s on our side: %s", o.sha256(), line)
		}
	}
	if found != len(ours) {
		t.Errorf("the guest tells of %d pairs; there are %d", found, len(ours))
	}
}
