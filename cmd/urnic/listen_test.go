package main

import (
	"net"
	"regexp"
	"testing"
)

// Each command that listens takes an address of one family for that family alone.
func TestCommandsListenInTheFamilyOfTheirAddress(t *testing.T) {
	if len(loopbacks(t)) < 2 {
		return // it has said that this machine has no IPv6
	}
	port := regexp.MustCompile(`:(\d+)\b`)
	for _, host := range []string{"0.0.0.0", "::"} {
		address := net.JoinHostPort(host, "0")
		free := ownPort(t)
		for name, args := range map[string][]string{
			"conform serve": {"conform", "serve", "--listen", address},
			"perf server":   {"perf", "server", "--listen", address},
			"nfsd, TCP":     {"nfsd", "--memory", "--json", "--tcp", address, "--rdma", "off"},
			"nfsd, RDMA":    {"nfsd", "--memory", "--json", "--tcp", "127.0.0.1:0", "--rdma", address},
			"rping":         {"rping", "-s", "-P", "-a", host, "-p", free},
			"conform":       {"conform", "--listen", net.JoinHostPort(host, free), "--only", "rfc5044-7.1.1", "--timeout", "1m"},
		} {
			t.Run(name+" at "+host, func(t *testing.T) {
				p := start(t, args...)
				at := free
				if name != "rping" && name != "conform" {
					p.out.wait(t, "\n")
					all := port.FindAllStringSubmatch(p.out.String(), -1)
					at = all[0][1]
					if name == "nfsd, RDMA" {
						at = all[1][1]
					}
				}
				own, other := net.JoinHostPort("127.0.0.1", at), net.JoinHostPort("::1", at)
				if host == "::" {
					own, other = other, own
				}
				waitForListener(t, own)
				if c, err := net.Dial("tcp", other); err == nil {
					c.Close()
					t.Errorf("it listens at %s too", other)
				}
				p.interrupt()
				p.wait(t)
			})
		}
	}
}
