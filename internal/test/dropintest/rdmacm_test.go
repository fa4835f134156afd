//go:build dropin

package dropintest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// rdma-core's tools for connection management take this port unless told otherwise.
const cmPort = 7471

func TestUcmatose(t *testing.T) {
	for _, c := range []struct{ name, server, client string }{
		{"plain", "", "-s 127.0.0.1"},
		{"many connections", "-c 50", "-c 50 -s 127.0.0.1"},
		{"long messages", "-c 3 -C 20 -S 1048576", "-c 3 -C 20 -S 1048576 -s 127.0.0.1"},
		{"no messages", "-c 3 -C 0", "-c 3 -C 0 -s 127.0.0.1"},
		{"migration", "-c 3 -m", "-c 3 -m -s 127.0.0.1"},
		{"type of service", "-t 32", "-t 32 -s 127.0.0.1"},
		{"bound", "-b 127.0.0.1", "-b 127.0.0.2 -s 127.0.0.1"},
		{"by name", "-f name -b localhost", "-f name -s localhost"},
		{"IPv6", "-f ipv6 -b ::1", "-f ipv6 -s ::1"},
		{"IPv6, any address", "-c 2 -b ::0", "-c 2 -s ::1"},
		{"another port", "-p 9999", "-p 9999 -s 127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				server := n.start(t, m.run("", "ucmatose "+c.server))
				port := cmPort
				if strings.Contains(c.server, "-p") {
					port = 9999
				}
				server.listens(n, port)
				client := n.start(t, m.run("", "ucmatose "+c.client))
				for _, p := range []*program{client, server} {
					out := p.wait()
					wantText(t, out, "return status 0", 1)
					if !strings.Contains(c.name, "no messages") {
						wantText(t, out, "data transfers complete", 1)
					}
					if strings.Contains(c.name, "migration") {
						wantText(t, out, "migrating to new event channel", 1)
					}
				}
			})
		})
	}
}

func TestRdmaServerAndClient(t *testing.T) {
	for _, c := range []struct{ name, server, client string }{
		{"plain", "", ""},
		{"at an address", "-s 127.0.0.1 -p 7500", "-s 127.0.0.1 -p 7500"},
		{"IPv6", "-s ::1", "-s ::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				server := n.start(t, m.run("", "rdma_server "+c.server))
				port := cmPort
				if strings.Contains(c.server, "-p") {
					port = 7500
				}
				server.listens(n, port)
				wantText(t, n.start(t, m.run("", "rdma_client "+c.client)).wait(), "rdma_client: end 0", 1)
				wantText(t, server.wait(), "rdma_server: end 0", 1)
			})
		})
	}
}

func TestCmtime(t *testing.T) {
	for name, host := range map[string]string{"IPv4": "127.0.0.1", "IPv6": "::1"} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T, m mode) {
				t.Parallel()
				n := newNetwork(t)
				const connections = 100
				server := n.start(t, m.run("", "cmtime -b "+host))
				server.listens(n, cmPort)
				out := n.start(t, m.run("", "cmtime -c "+strconv.Itoa(connections)+" -s "+host)).wait()
				for _, step := range []string{"create id", "resolve addr", "resolve route", "create qp", "connect", "disconnect", "destroy"} {
					f := regexp.MustCompile(`(?m)^` + step + ` *:((?: +[0-9.]+){4})$`).FindStringSubmatch(out)
					if f == nil {
						t.Errorf("no times for %q:\n%s", step, out)
						continue
					}
					// That is what the program begins with.
					const none = "999999999.00"
					if strings.Contains(f[1], none) {
						t.Errorf("no connection has come through %q:\n%s", step, out)
					}
				}
				if strings.Contains(out, "error") || strings.Contains(out, "fail") {
					t.Errorf("cmtime has met with errors:\n%s", out)
				}
			})
		})
	}
}
