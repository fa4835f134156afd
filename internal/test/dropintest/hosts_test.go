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
	hosts[0].ip(t, "link add name wire type veth peer name wire netns %d", hosts[1].tid)
	for i, n := range hosts {
		n.ip(t, "link set wire up")
		n.ip(t, "addr add 192.0.2.%d/24 dev wire", i+1)
		n.ip(t, "addr add 2001:db8::%d/64 dev wire nodad", i+1)
	}
	return hosts
}

// ip carries a command of ip(8) out in the network.
func (n *network) ip(t *testing.T, format string, args ...any) {
	t.Helper()
	line := strings.Fields(fmt.Sprintf(format, args...))
	var out []byte
	var err error
	n.do(func() { out, err = exec.CommandContext(t.Context(), "ip", line...).CombinedOutput() })
	if err != nil {
		t.Fatalf("ip %q (of iproute2): %v\n%s", line, err, out)
	}
}

// oneHost makes a network with an interface that is not the loopback interface, and has the address 192.0.2.1.
func oneHost(t *testing.T) *network {
	t.Helper()
	n, other := newNetwork(t), newNetwork(t)
	n.ip(t, "link add name wire type veth peer name wire netns %d", other.tid)
	n.ip(t, "link set wire up")
	other.ip(t, "link set wire up")
	n.ip(t, "addr add 192.0.2.1/24 dev wire")
	return n
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
