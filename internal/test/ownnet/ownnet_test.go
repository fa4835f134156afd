package ownnet

import (
	"net"
	"testing"
)

func TestRunHasIPv6AndTheAddresses(t *testing.T) {
	Run(t, func(t *testing.T) {
		for _, a := range []string{"127.0.0.1", "::1", "192.0.2.1", "198.51.100.7", "fd00::7"} {
			l, err := net.Listen("tcp", net.JoinHostPort(a, "0"))
			if err != nil {
				t.Error(err)
				continue
			}
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
			} else {
				c.Close()
			}
			l.Close()
		}
		if all, err := net.Interfaces(); err != nil || len(all) != 1 || all[0].Name != "lo" {
			t.Errorf("%v, %v", all, err)
		}
	}, "192.0.2.1", "198.51.100.7", "fd00::7")
}
