//go:build dropin

package dropintest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// rcopy's port.
const rcopyPort = 7427

// rdma-core's programs for rsockets, in each way that they send and wait, and with
// checks of what arrives.
func TestRsocketStreams(t *testing.T) {
	for _, c := range []struct{ name, flags, line string }{
		{"rstream", "", "rstream -T v -S 4096 -C 100 -I 2"},
		{"rstream, many sizes", "", "rstream -C 10 -I 1 -S all"},
		{"rstream, blocking", "", "rstream -T v -T b -S 65536 -C 20 -I 2"},
		{"rstream, nonblocking", "", "rstream -T v -T n -S 65536 -C 20 -I 2"},
		{"rstream, asynchronous", "", "rstream -T v -T a -S 65536 -C 20 -I 2"},
		{"rstream, resolved by rdma_cm", "", "rstream -T v -T r -S 1000000 -C 2 -I 2"},
		{"rstream, small buffers", "", "rstream -T v -B 8192 -S 20000 -C 20 -I 2"},
		{"rstream, no inline data", "", "rstream -T v -i 0 -S 16 -C 100 -I 2"},
		{"rstream, strict", "--strict", "rstream -T v -S 4096 -C 20 -I 2"},
		{"rstream, ethernet", "--transport ethernet", "rstream -T v -S 4096 -C 20 -I 2"},
		{"riostream", "", "riostream -T v -S 65536 -C 20 -I 2"},
		{"riostream, blocking", "", "riostream -T v -T b -S 4096 -C 20 -I 2"},
		{"riostream, nonblocking", "", "riostream -T v -T n -S 4096 -C 20 -I 2"},
		{"riostream, asynchronous", "--strict", "riostream -T v -T a -S 4096 -C 20 -I 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				server := n.start(t, m.run(c.flags, c.line))
				server.listens(n, cmPort)
				client := n.start(t, m.run(c.flags, c.line+" -s 127.0.0.1"))
				for _, p := range []*program{client, server} {
					out := p.wait()
					if rows := strings.Count(out, "\n"); rows < 2 || !strings.Contains(out, "usec/xfer") {
						t.Errorf("no results:\n%s", out)
					}
				}
			})
		})
	}
}

// udpong's server serves without end.
func TestRsocketDatagrams(t *testing.T) {
	for _, c := range []struct{ flags, line string }{
		{"", "udpong -C 200 -S 1000"},
		{"--strict", "udpong -C 200 -S 64 -T a"},
		{"--transport ethernet", "udpong -C 200 -S 4096 -T n"},
		{"--rendezvous off", "udpong -C 200 -S 64 -T e"},
	} {
		t.Run(c.line, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				line := fmt.Sprintf("%s -p %d", c.line, udaddyPort)
				server := n.start(t, m.run(c.flags, line+" -b 127.0.0.1"))
				server.serves(n)
				out := n.start(t, m.run(c.flags, line+" -s 127.0.0.1")).wait()
				if !strings.Contains(out, "custom") || strings.Count(out, "\n") != 2 {
					t.Errorf("no results:\n%s", out)
				}
				server.interrupt(syscall.SIGTERM)
			})
		})
	}
}

func TestRcopy(t *testing.T) {
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		server := n.start(t, m.run("", "rcopy"))
		server.listens(n, rcopyPort)
		content := make([]byte, 5_000_000)
		for i := range content {
			content[i] = byte(rand.Uint32()) //nolint:gosec // any octets will do
		}
		from, to := filepath.Join(directory(t), "from"), filepath.Join(directory(t), "to")
		if err := os.WriteFile(from, content, 0o644); err != nil {
			t.Fatal(err)
		}
		client := n.start(t, m.run("", fmt.Sprintf("rcopy %s 127.0.0.1:%s", from, to)))
		wantText(t, client.wait(), "5000000 bytes in", 1)
		got, err := os.ReadFile(to)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("the copy has %d octets that are not those of the file: %v", len(got), err)
		}
	})
}

// rstream speaks plain TCP with -T s. Under librspreload.so it is a program of sockets that
// are rsockets, by urnic run.
func TestSocketsUnderRunBecomeRsockets(t *testing.T) {
	preload, err := filepath.Glob("/usr/lib/*/rsocket/librspreload.so")
	if err != nil || len(preload) != 1 {
		t.Fatalf("librspreload.so is not there (%v): on Debian, apt-get install librdmacm1", preload)
	}
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		n := newNetwork(t)
		const line = "rstream -T s -T v -S 4096 -C 20 -I 2"
		server := n.start(t, m.run("--log debug", line), "LD_PRELOAD="+preload[0])
		server.listens(n, cmPort)
		client := n.start(t, m.run("--log debug", line+" -s 127.0.0.1"), "LD_PRELOAD="+preload[0])
		for _, p := range []*program{client, server} {
			out := p.wait()
			wantText(t, out, ": RTS", 1)
			wantText(t, out, "usec/xfer", 1)
		}
	})
}
