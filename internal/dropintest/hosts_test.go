//go:build dropin

package dropintest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// twoHosts makes two networks with a link between them. The hosts have the addresses
// 192.0.2.1 and 2001:db8::1, and 192.0.2.2 and 2001:db8::2.
func twoHosts(t *testing.T) [2]*network {
	t.Helper()
	hosts := [2]*network{newNetwork(t), newNetwork(t)}
	ip := func(n *network, format string, args ...any) {
		t.Helper()
		line := strings.Fields(fmt.Sprintf(format, args...))
		var out []byte
		var err error
		n.do(func() { out, err = exec.CommandContext(t.Context(), "ip", line...).CombinedOutput() })
		if err != nil {
			t.Fatalf("ip %q (of iproute2): %v\n%s", line, err, out)
		}
	}
	ip(hosts[0], "link add name wire type veth peer name wire netns %d", hosts[1].tid)
	for i, n := range hosts {
		ip(n, "link set wire up")
		ip(n, "addr add 192.0.2.%d/24 dev wire", i+1)
		ip(n, "addr add 2001:db8::%d/64 dev wire nodad", i+1)
	}
	return hosts
}

// Programs without rdma_cm find each other between two hosts.
func TestPingpongBetweenHosts(t *testing.T) {
	for _, line := range []string{"ibv_rc_pingpong -c -g 0", "ibv_rc_pingpong -c -g 1", "ibv_srq_pingpong -c -g 0"} {
		t.Run(line, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				hosts := twoHosts(t)
				server := hosts[0].start(t, m.run("", line))
				server.listens(hosts[0], pingpongPort)
				client := hosts[1].start(t, m.run("", line+" 192.0.2.1"))
				for _, p := range []*program{client, server} {
					wantText(t, p.wait(), "1000 iters in ", 1)
				}
			})
		})
	}
}
