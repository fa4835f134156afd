//go:build interop

package interop

import (
	"fmt"
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
	f.n.t.Logf("%d connections were lost, %d messages sent again", cuts, f.n.counter("retransmitted"))
	f.n.wantNone(rds.PeerViolation, rds.MessageLost, rds.NoSocket, rds.PeerRestarted)
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
