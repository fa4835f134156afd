package rdp

import (
	"net/netip"
	"testing"
)

func TestResolve(t *testing.T) {
	for address, want := range map[string]netip.AddrPort{
		"127.0.0.1:7":        netip.MustParseAddrPort("127.0.0.1:7"),
		"[::1]:7":            netip.MustParseAddrPort("[::1]:7"),
		"[::ffff:1.2.3.4]:7": netip.MustParseAddrPort("1.2.3.4:7"),
		":7":                 netip.AddrPortFrom(netip.Addr{}, 7),
	} {
		if got, err := Resolve(t.Context(), address); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, %v", address, got, err)
		}
	}
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:port?", "127.0.0.1:70000"} {
		if got, err := Resolve(t.Context(), address); err == nil {
			t.Errorf("%q: %v", address, got)
		}
	}
}
