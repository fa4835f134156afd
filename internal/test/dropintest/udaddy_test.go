//go:build dropin

package dropintest

import (
	"path/filepath"
	"strings"
	"testing"
)

const udaddyPort = 7174

// udaddy finds a queue pair of datagrams by rdma_cm, and answers by the address that it sees.
func TestUdaddy(t *testing.T) {
	for _, c := range []struct{ name, server, client string }{
		{"plain", "", "-s 127.0.0.1"},
		{"sizes", "-S 1024 -C 50", "-s 127.0.0.1 -S 1024 -C 50"},
		{"the MTU", "-S 4096 -C 20", "-s 127.0.0.1 -S 4096 -C 20"},
		{"several queue pairs", "-c 4", "-s 127.0.0.1 -c 4"},
		{"addresses", "-b 127.0.0.3", "-s 127.0.0.3 -b 127.0.0.2"},
		{"a type of service", "-t 8", "-s 127.0.0.1 -t 8"},
		{"IPv6", "-b ::1", "-s ::1 -b ::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				server := n.start(t, m.run("--transport ethernet", strings.TrimSpace("udaddy "+c.server)))
				server.serves(n)
				client := n.start(t, m.run("--transport ethernet", "udaddy "+c.client))
				for _, p := range []*program{client, server} {
					out := p.wait()
					wantText(t, out, "data transfers complete", 1)
					wantText(t, out, "return status 0", 1)
				}
			})
		})
	}
}

func TestUdaddyBetweenHosts(t *testing.T) {
	hosts := twoHosts(t)
	server := hosts[0].start(t, interpose.run("--transport ethernet", "udaddy -S 4096"))
	server.serves(hosts[0])
	client := hosts[1].start(t, interpose.run("--transport ethernet", "udaddy -S 4096 -s 192.0.2.1"))
	wantText(t, client.wait(), "return status 0", 1)
	wantText(t, server.wait(), "return status 0", 1)
}

// Nobody listens: the status is that of InfiniBand's connection manager for a service that is not there.
func TestUdaddyNobodyListens(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		client := newNetwork(t).start(t, m.run("--transport ethernet", "udaddy -s 127.0.0.1"))
		wantText(t, client.wait(1), "event: RDMA_CM_EVENT_UNREACHABLE, error: 1", 1)
	})
}

// Each receiver of a group gets all that is sent to it.
func TestMckey(t *testing.T) {
	for _, c := range []struct{ name, receiver, sender string }{
		{"plain", "-m 239.1.2.3 -b 127.0.0.1", "-m 239.1.2.3 -b 127.0.0.1 -s"},
		{"sizes", "-m 239.1.2.3 -b 127.0.0.1 -S 4096 -C 30", "-m 239.1.2.3 -b 127.0.0.1 -s -S 4096 -C 30"},
		{"several queue pairs", "-m 239.1.2.3 -b 127.0.0.1 -c 3", "-m 239.1.2.3 -b 127.0.0.1 -c 3 -s"},
		{"a sender that only sends", "-m 239.1.2.3 -b 127.0.0.1", "-m 239.1.2.3 -b 127.0.0.1 -s -o"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				var receivers []*program
				for range 3 {
					r := n.start(t, m.run("--transport ethernet", "stdbuf -oL mckey "+c.receiver))
					r.says("receiving data transfers")
					receivers = append(receivers, r)
				}
				sender := n.start(t, m.run("--transport ethernet", "mckey "+c.sender))
				wantText(t, sender.wait(), "return status 0", 1)
				for _, r := range receivers {
					out := r.wait()
					wantText(t, out, "data transfers complete", 1)
					wantText(t, out, "return status 0", 1)
				}
			})
		})
	}
}

// What urnic run records of datagrams, urnic dissect explains: the exchange of rdma_cm, and what follows.
func TestRecordingOfDatagramsKeepsTheProtocol(t *testing.T) {
	n := newNetwork(t)
	server := n.start(t, interpose.run("--transport ethernet", "udaddy"))
	server.serves(n)
	client := n.start(t, interpose.run("--transport ethernet --pcap client.pcapng", "udaddy -s 127.0.0.1"))
	client.wait()
	server.wait()
	out := n.start(t, urnicCommand("dissect", "--strict", filepath.Join(client.cmd.Dir, "client.pcapng"))).wait()
	wantText(t, out, "> datagram service request 0x", 1)
	wantText(t, out, "< datagram service reply 0x", 1)
	wantText(t, out, ", Q_Key 0x1234567, 100 bytes", 20)
	wantText(t, out, "VIOLATION", 0)
}
