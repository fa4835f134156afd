package rxudp

import (
	"net/netip"
	"testing"
	"time"
)

var here = netip.MustParseAddrPort("127.0.0.1:7001")

func TestDatagramsFitTheLink(t *testing.T) {
	now := time.Unix(1, 0)
	looked := 0
	net := func(prefix, addr string, mtu int, loop bool) linkNet {
		return linkNet{netip.MustParsePrefix(prefix), netip.MustParseAddr(addr), mtu, loop}
	}
	l := &links{now: func() time.Time { return now }, lookUp: func() []linkNet {
		looked++
		return []linkNet{
			net("127.0.0.0/8", "127.0.0.1", 65536, true), net("10.1.0.0/16", "10.1.0.1", 1500, false),
			net("10.1.2.0/24", "10.1.2.1", 9000, false), net("2001:db8::/64", "2001:db8::1", 1280, false), net("10.2.0.0/16", "10.2.0.1", 100, false),
		}
	}}
	for _, tt := range []struct {
		peer   string
		size   int
		source string
	}{
		{"127.0.0.9", 16384, "127.0.0.1"},
		{"10.1.9.9", 1444, "10.1.0.1"},
		{"10.1.2.9", 8944, "10.1.2.1"},
		{"10.1.2.1", 16384, "10.1.2.1"}, // this machine
		{"2001:db8::9", 1224, "2001:db8::1"},
		{"192.0.2.1", 1444, ""},
		{"10.2.0.2", 520, "10.2.0.1"},
	} {
		a := netip.MustParseAddr(tt.peer)
		if got := l.datagram(netip.AddrPortFrom(a, 7)); got != tt.size {
			t.Errorf("%s: %d bytes; want %d", tt.peer, got, tt.size)
		}
		want, _ := netip.ParseAddr(tt.source)
		if got := l.source(a); got != want {
			t.Errorf("%s is seen from %v; want %s", tt.peer, got, tt.source)
		}
	}
	if looked != 1 {
		t.Errorf("the interfaces were looked at %d times", looked)
	}
	now = now.Add(time.Minute)
	l.most = 1000
	if got := l.datagram(here); got != 1000 || looked != 2 {
		t.Errorf("%d bytes, after %d looks", got, looked)
	}
}

func TestWindowFitsTheSocketsBuffer(t *testing.T) {
	for _, tt := range []struct{ wanted, buffer, want int }{
		{0, 8 << 20, 255}, {0, 2 << 20, 64}, {0, 100_000, 32}, {7, 8 << 20, 7}, {1000, 0, 255},
	} {
		if got := window(tt.wanted, tt.buffer); got != tt.want {
			t.Errorf("a buffer of %d bytes, and %d wanted: %d packets; want %d", tt.buffer, tt.wanted, got, tt.want)
		}
	}
}
