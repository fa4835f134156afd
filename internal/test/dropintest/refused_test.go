//go:build dropin

package dropintest

import (
	"fmt"
	"strings"
	"testing"
)

// Programs for what iWARP does not have end with an error, and soon.
func TestUnsupportedPrograms(t *testing.T) {
	for line, want := range map[string]string{
		"ibv_ud_pingpong -g 0":            "Couldn't create QP",
		"ibv_uc_pingpong -g 0":            "Couldn't create QP",
		"ibv_xsrq_pingpong -g 0":          "Couldn't Open the XRC Domain",
		"udaddy":                          "return status -1",
		"mckey -m 239.0.0.1 -b 127.0.0.1": "is for unreliable datagrams",
	} {
		name, _, _ := strings.Cut(line, " ")
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				transport := "ethernet"
				if name != "ibv_xsrq_pingpong" {
					transport = "iwarp" // for the other one has them: see TestDatagramPingpong, TestUdaddy and TestMckey
				}
				p := newNetwork(t).start(t, m.run("--transport "+transport, line))
				p.ends()
				if p.err == nil || !strings.Contains(p.output(), want) {
					t.Errorf("%s: %v; want an error, and %q:\n%s", line, p.err, want, p.output())
				}
			})
		})
	}
}

// perftest itself has no events for Writes, and takes no address of IPv6 with rdma_cm,
// so the tests have none.
func TestWhatPerftestRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"ib_write_bw -e":               "Events feature not available on WRITE verb",
		"ib_write_lat -e":              "Events feature not available on WRITE verb",
		"ib_write_bw -R --ipv6 ::1":    "Problem in resolving basic address and port",
		"ib_send_lat -R --ipv6 -a ::1": "Problem in resolving basic address and port",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			wantText(t, newNetwork(t).start(t, interpose.run("", line)).wait(1), want, 1)
		})
	}
}

// ib_send_bw measures on an iWARP device without rdma_cm, but then gives its PD up
// with the memory of its credits still registered, which is an error.
func TestSendBandwidthLeavesCredits(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		const size, times = 4096, 100
		line := m.run("", fmt.Sprintf("ib_send_bw -s %d -n %d", size, times))
		server := n.start(t, line)
		server.listens(n, perftestPort)
		client := n.start(t, append(line, "127.0.0.1"))
		for _, p := range []*program{client, server} {
			wantText(t, p.wait(1), "Failed to deallocate PD", 1)
		}
	})
}
