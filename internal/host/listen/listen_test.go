package listen

import (
	"net"
	"os"
	"testing"
)

// reaches reports whether a connection to an address comes about.
func reaches(t *testing.T, network, host string, port string) bool {
	t.Helper()
	c, err := net.Dial(network, net.JoinHostPort(host, port))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func TestAddressOfOneFamilyMeansThatFamily(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
	} else if os.Getenv("CI") != "" {
		t.Fatalf("no IPv6 here: %v", err)
	} else {
		t.Skipf("no IPv6 here: %v", err)
	}
	for _, test := range []struct {
		host      string
		four, six bool
	}{
		{"0.0.0.0", true, false},
		{"127.0.0.1", true, false},
		{"::ffff:127.0.0.1", true, false},
		{"::ffff:0.0.0.0", true, false},
		{"::", false, true},
		{"::1", false, true},
		{"", true, true},
	} {
		l, err := TCP(t.Context(), net.JoinHostPort(test.host, "0"))
		if err != nil {
			t.Errorf("%q: %v", test.host, err)
			continue
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if four, six := reaches(t, "tcp4", "127.0.0.1", port), reaches(t, "tcp6", "::1", port); four != test.four || six != test.six {
			t.Errorf("%q: IPv4 %t, IPv6 %t; want %t, %t", test.host, four, six, test.four, test.six)
		}
		l.Close()
	}
}

func TestNetworkOfAnAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:7174": "tcp4", "[2001:db8::1]:7174": "tcp6", "[fe80::1%eth0]:7174": "tcp6", "[::]:0": "tcp6", "0.0.0.0:0": "tcp4",
		":7174": "tcp", "localhost:7174": "tcp", "::1": "tcp", "192.0.2.1": "tcp", "": "tcp",
	} {
		if got := Network(address); got != want {
			t.Errorf("%q: %s; want %s", address, got, want)
		}
	}
}

func TestErrorsAreThoseOfPackageNet(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.0.0.1:port", "192.0.2.1:0"} {
		if l, err := TCP(t.Context(), address); err == nil {
			l.Close()
			t.Errorf("%q is taken", address)
		}
	}
}
