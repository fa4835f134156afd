package peeruid

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestOnlyAConnectionWithinThisHostHasAUser(t *testing.T) {
	for _, tc := range []struct {
		local, remote string
		want          bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", true},
		{"::1", "::1", true},
		{"::ffff:127.0.0.1", "127.0.0.1", true},
		{"198.51.100.7", "198.51.100.7", true},
		{"fe80::1%eth0", "fe80::1%eth0", true},
		{"fe80::1%eth0", "fe80::1%eth1", false},
		{"198.51.100.7", "198.51.100.8", false},
		{"198.51.100.7", "127.0.0.1", true}, // a socket can be bound to either before it connects
		{"127.0.0.1", "198.51.100.7", true},
		{"0.0.0.0", "0.0.0.0", false},
	} {
		l, r := netip.MustParseAddr(tc.local), netip.MustParseAddr(tc.remote)
		if got := SameHost(l, r); got != tc.want {
			t.Errorf("from %s to %s: %v", r, l, got)
		}
		if tc.want {
			continue
		}
		_, err := Between(net.TCPAddrFromAddrPort(netip.AddrPortFrom(l, 1)), net.TCPAddrFromAddrPort(netip.AddrPortFrom(r, 2)))
		if !errors.Is(err, ErrRemote) {
			t.Errorf("from %s to %s: %v", r, l, err)
		}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		a, _ := netip.AddrFromSlice(i.(*net.IPNet).IP)
		if !SameHost(netip.MustParseAddr("198.51.100.7"), a.Unmap()) {
			t.Errorf("%v, an address of this host, is taken for another's", a)
		}
	}
	if SameHost(netip.Addr{}, netip.Addr{}) {
		t.Error("no addresses at all are said to be of one host")
	}
	if _, err := Between(&net.UnixAddr{Name: "x"}, &net.UnixAddr{Name: "x"}); err == nil {
		t.Error("a connection that isn't TCP has a user")
	}
}
