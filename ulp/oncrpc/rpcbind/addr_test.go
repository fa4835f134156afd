package rpcbind_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"urnic/ulp/oncrpc/rpcbind"
)

// RFC 5665 §5.2.3.3, §5.2.3.4.
func TestUniversalAddresses(t *testing.T) {
	for universal, plain := range map[string]string{
		"0.0.0.0.0.111":             "0.0.0.0:111",
		"192.0.2.1.8.1":             "192.0.2.1:2049",
		"127.0.0.1.255.255":         "127.0.0.1:65535",
		"::.0.111":                  "[::]:111",
		"2001:db8::1.78.81":         "[2001:db8::1]:20049",
		"fe80::1:2:3.0.0":           "[fe80::1:2:3]:0",
		"1:2:3:4:5:6:77:8888.0.255": "[1:2:3:4:5:6:77:8888]:255",
	} {
		want := netip.MustParseAddrPort(plain)
		if got, err := rpcbind.ParseAddr(universal); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", universal, got, err, want)
		}
		if got := rpcbind.FormatAddr(want); got != universal {
			t.Errorf("%v is %s; want %s", want, got, universal)
		}
	}
	mapped := netip.MustParseAddrPort("[::ffff:192.0.2.1]:1")
	if got := rpcbind.FormatAddr(mapped); got != "192.0.2.1.0.1" {
		t.Errorf("%v is %s", mapped, got)
	}
}

func TestAddressesThatAreNot(t *testing.T) {
	for _, s := range []string{
		"", ".", "1.2", "192.0.2.1", "192.0.2.1.1", "192.0.2.1.1.256", "192.0.2.1.-1.1", "192.0.2.1.+1.1", "192.0.2.1. 1.1",
		"192.0.2.1.1.", "192.0.2.1.0x1.1", "192.0.2.256.1.1", "::1", "::1.1", "fe80::1%eth0.1.1", "::ffff:192.0.2.1.1.1", "host.1.1",
		"/run/rpcbind.sock", strings.Repeat("0", 100) + ".1.1",
	} {
		var bad *rpcbind.AddrError
		if a, err := rpcbind.ParseAddr(s); !errors.As(err, &bad) {
			t.Errorf("%q is %v, %v", s, a, err)
		} else if bad.Error() == "" {
			t.Errorf("%q: the error says nothing", s)
		}
	}
}

func FuzzUniversalAddress(f *testing.F) {
	f.Add("192.0.2.1.8.1")
	f.Add("2001:db8::1.78.81")
	f.Add("::ffff:192.0.2.1.8.1")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := rpcbind.ParseAddr(s)
		if err != nil {
			return
		}
		again, err := rpcbind.ParseAddr(rpcbind.FormatAddr(a))
		if err != nil || again != a {
			t.Errorf("%q is %v, which is written as %q, which is %v, %v", s, a, rpcbind.FormatAddr(a), again, err)
		}
	})
}
