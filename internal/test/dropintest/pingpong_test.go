//go:build dropin

package dropintest

import (
	"strings"
	"testing"
)

// The programs of libibverbs connect their queue pairs by themselves, with what they
// have told each other by a TCP connection.
const pingpongPort = 18515

func TestPingpong(t *testing.T) {
	for _, c := range []struct{ name, program, flags string }{
		{"rc", "ibv_rc_pingpong", "-c"},
		{"rc, by GID", "ibv_rc_pingpong", "-c -g 0"},
		{"rc, by GID of IPv6", "ibv_rc_pingpong", "-c -g 1"},
		{"rc, events", "ibv_rc_pingpong", "-c -e -g 0"},
		{"rc, long", "ibv_rc_pingpong", "-c -g 0 -s 1048576 -n 50 -r 10"},
		{"rc, short", "ibv_rc_pingpong", "-c -g 0 -s 1"},
		{"rc, ibv_wr_*", "ibv_rc_pingpong", "-c -g 0 -N"},
		{"srq", "ibv_srq_pingpong", "-c"},
		{"srq, by GID", "ibv_srq_pingpong", "-c -g 0"},
		{"srq, events", "ibv_srq_pingpong", "-c -e -g 0"},
		{"srq, one queue pair", "ibv_srq_pingpong", "-c -q 1 -g 0"},
		{"srq, 32 queue pairs", "ibv_srq_pingpong", "-c -q 32 -g 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, transport := range []string{"iwarp", "ethernet"} {
				t.Run(transport, func(t *testing.T) {
					bothModes(t, func(t *testing.T, m mode) {
						t.Parallel()
						n := newNetwork(t)
						run := "--transport " + transport
						server := n.start(t, m.run(run, c.program+" "+c.flags))
						server.listens(n, pingpongPort)
						client := n.start(t, m.run(run, c.program+" "+c.flags+" 127.0.0.1"))
						for _, p := range []*program{client, server} {
							out := p.wait()
							iterations := "1000 iters in "
							if strings.Contains(c.flags, "-n 50") {
								iterations = "50 iters in "
							}
							wantText(t, out, iterations, 1)
							wantText(t, out, "invalid data", 0)
						}
					})
				})
			}
		})
	}
}
