package rds

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
)

// What can't be used is refused when the node is opened, in words that tell what to do; nothing is
// left of it.
func TestConfigurationsThatAreRefused(t *testing.T) {
	leakcheck.Check(t)
	mine := &TCP{Port: 26385}
	nodes(t, 1, transports["tcp"], nil) // it has its port
	for name, tt := range map[string]struct {
		want   string
		change func(c *Config)
	}{
		"no address":          {"is no address of a node", func(c *Config) { c.Addr = netip.Addr{} }},
		"no transport":        {"no carrier", func(c *Config) { c.Transports = nil }},
		"a nil transport":     {"transport 0 is nil", func(c *Config) { c.Transports = []Transport{nil} }},
		"a nil TCP":           {"transport 1 is nil", func(c *Config) { c.Transports = append(c.Transports, (*TCP)(nil)) }},
		"a transport twice":   {"twice", func(c *Config) { c.Transports = []Transport{mine, mine} }},
		"no RNIC":             {"set IWARP.Device", func(c *Config) { c.Transports = []Transport{&IWARP{}} }},
		"too few receives":    {"IWARP.Receives", func(c *Config) { c.Transports = []Transport{newIWARP(t, &IWARP{Receives: 3})} }},
		"no place to listen":  {"iwarp", func(c *Config) { c.Transports = []Transport{newIWARP(t, &IWARP{Address: "not an address"})} }},
		"too many paths":      {"paths", func(c *Config) { c.Transports = []Transport{&TCP{Paths: 9}} }},
		"a negative limit":    {"negative", func(c *Config) { c.MaxPeers = math.MinInt }},
		"bounds turned round": {"reconnecting", func(c *Config) { c.ReconnectMin = time.Hour }},
		"a port in use":       {"address already in use", func(c *Config) { c.Addr = ownAddr(1) }},
	} {
		cfg := Config{Addr: ownAddr(30), Transports: []Transport{mine}}
		tt.change(&cfg)
		n, err := Open(t.Context(), cfg)
		if err == nil {
			_ = n.Close()
			t.Errorf("%s: it is accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "rds: ") || strings.Count(err.Error(), "rds: ") > 1 {
			t.Errorf("%s: %q; want it to say %q, and rds once", name, err, tt.want)
		}
	}
	// A transport is one node's, and can be another's later.
	for range 2 {
		n, err := Open(t.Context(), Config{Addr: ownAddr(30), Transports: []Transport{mine}})
		if err != nil {
			t.Fatal(err)
		}
		if other, err := Open(t.Context(), Config{Addr: ownAddr(31), Transports: []Transport{mine}}); err == nil {
			_ = other.Close()
			t.Error("a transport is that of two nodes")
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// However many close a node, each returns when it is closed: its port is free.
func TestEachCloseWaits(t *testing.T) {
	for range 20 {
		n := nodes(t, 1, transports["tcp"], nil)[0]
		closed := make(chan error)
		for range 3 {
			go func() {
				err := n.Close()
				closed <- err
			}()
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		listenAt(t, netip.AddrPortFrom(n.Addr(), 26385).String()).Close()
		for range 2 {
			<-closed
		}
	}
}

// What String returns can be parsed.
func TestAddrString(t *testing.T) {
	for _, s := range []string{"192.0.2.1:4000", "[2001:db8::1]:0", "192.0.2.1:4000/7", "[fe80::1]:65535/255"} {
		a, err := ParseAddr(s)
		if err != nil || a.String() != s {
			t.Errorf("%q: %v, %v", s, a, err)
		}
	}
	for _, s := range []string{"", "192.0.2.1", "192.0.2.1:x", "192.0.2.1:70000", "host:1", "192.0.2.1:1/", "192.0.2.1:1/256", "192.0.2.1:1/-1", "192.0.2.1:1/1/1"} {
		if a, err := ParseAddr(s); err == nil {
			t.Errorf("%q is %v", s, a)
		}
	}
	if a, err := ParseAddr("[::ffff:192.0.2.1]:1"); err != nil || !a.Host.Is4() {
		t.Errorf("an address of IPv4 in the form of IPv6: %v, %v", a, err)
	}
}
