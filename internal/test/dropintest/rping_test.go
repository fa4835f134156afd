//go:build dropin

package dropintest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestRping(t *testing.T) {
	const rounds = 20
	for _, c := range []struct{ name, server, client string }{
		{"plain", "-s", "-c -a 127.0.0.1"},
		{"validated", "-s -V", "-c -V -a 127.0.0.1"},
		{"at an address", "-s -a 127.0.0.1", "-c -a 127.0.0.1"},
		{"source address", "-s", "-c -a 127.0.0.1 -I 127.0.0.2"},
		{"another port", "-s -p 9999", "-c -a 127.0.0.1 -p 9999"},
		{"the least", "-s -S 27", "-c -V -S 27 -a 127.0.0.1"},
		{"the most", "-s -S 65535", "-c -V -S 65535 -a 127.0.0.1"},
		{"debugging", "-s -d", "-c -d -a 127.0.0.1"},
		{"count at both", "-s -C 20", "-c -a 127.0.0.1"},
		{"own queue pair", "-s -q", "-c -V -q -a 127.0.0.1"},
		{"own queue pair at the client", "-s", "-c -V -q -a 127.0.0.1"},
		{"own queue pair at the server", "-s -q", "-c -V -a 127.0.0.1"},
		{"IPv6", "-s -a ::1", "-c -V -a ::1"},
		{"IPv6, any address", "-s -a ::0", "-c -V -a ::1"},
		{"IPv4 at IPv6's any address", "-s -a ::0", "-c -V -a 127.0.0.1"},
		{"IPv6, own queue pair", "-s -a ::1 -q", "-c -V -a ::1 -q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				rping := "rping"
				if strings.Contains(c.client, "-d") { // what it says to stderr comes between, but not within, lines
					rping = "stdbuf -oL rping"
				}
				server := n.start(t, m.run("", rping+" -v "+c.server))
				port := 7174
				if strings.Contains(c.server, "-p") {
					port = 9999
				}
				server.listens(n, port)
				client := n.start(t, m.run("", fmt.Sprintf("%s -v -C %d %s", rping, rounds, c.client)))
				wantText(t, client.wait(), "ping data: rdma-ping-", rounds)
				wantText(t, server.wait(), "server ping data: rdma-ping-", rounds)
			})
		})
	}
}

func TestRpingPersistentServer(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		server := n.start(t, m.run("", "rping -s -P -v"))
		server.listens(n, 7174)
		const clients, rounds = 4, 2000
		var ps []*program
		for range clients {
			p := n.start(t, m.run("", fmt.Sprintf("stdbuf -oL rping -c -a 127.0.0.1 -C %d -v -V", rounds)))
			// The server forgets a request that it has not looked at when the next one comes.
			p.says("ping data: rdma-ping-3:")
			ps = append(ps, p)
		}
		for _, p := range ps {
			wantText(t, p.wait(), "ping data: rdma-ping-", rounds)
		}
		server.interrupt(syscall.SIGINT)
	})
}

// A client that is killed leaves a server that serves the next one.
func TestRpingClientIsKilled(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		server := n.start(t, m.run("", "rping -s -P"))
		server.listens(n, 7174)
		client := n.start(t, m.run("", "stdbuf -oL rping -c -a 127.0.0.1 -v"))
		client.says("ping data: rdma-ping-10:")
		client.interrupt(syscall.SIGKILL)
		wantText(t, n.start(t, m.run("", "rping -c -a 127.0.0.1 -C 10 -v -V")).wait(), "ping data: rdma-ping-", 10)
	})
}

func TestRpingNobodyListens(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		p := newNetwork(t).start(t, m.run("", "rping -c -a 127.0.0.1 -C 1"), "URNIC_TIMES=refused=0s")
		<-p.done
		if p.err == nil || !strings.Contains(p.output(), "RDMA_CM_EVENT_REJECTED") && !strings.Contains(p.output(), "RDMA_CM_EVENT_UNREACHABLE") {
			t.Errorf("%v; output:\n%s", p.err, p.output())
		}
	})
}
