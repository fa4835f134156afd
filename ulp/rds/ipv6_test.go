package rds

import (
	"bytes"
	"net/netip"
	"testing"

	"urnic/internal/test/ownnet"
	"urnic/ulp/rds/wire"
)

// Over IPv6, nodes exchange messages of all sizes over either transport, at the port that both
// have; and over both at once, if one has another port.
func TestIPv6(t *testing.T) {
	addrs := []string{"::1", "fd00::7"}
	ownnet.Run(t, func(t *testing.T) {
		for name, transports := range map[string]func() []Transport{
			"tcp":   func() []Transport { return []Transport{&TCP{}} },
			"iwarp": func() []Transport { return []Transport{newIWARP(t, &IWARP{})} },
			"both":  func() []Transport { return []Transport{&TCP{Port: 16386}, newIWARP(t, &IWARP{})} },
		} {
			var nodes []*Node
			for _, a := range addrs {
				n, err := Open(t.Context(), Config{Addr: netip.MustParseAddr(a), Transports: transports()})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				nodes = append(nodes, n)
			}
			over6(t, name, nodes)
			for _, n := range nodes {
				if err := n.Close(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}, addrs[1])
}

func over6(t *testing.T, name string, nodes []*Node) {
	ctx := within(t)
	for i := range nodes {
		s, d := bind(t, nodes[i], 0), bind(t, nodes[1-i], 0)
		for via := range nodes[i].cfg.Transports {
			for _, size := range []int{0, 1, 4097, wire.MaxMessage} {
				want := bytes.Repeat([]byte{byte(size), 6}, size/2+1)[:size]
				if err := s.SendTo(ctx, want, d.Addr(), Via(via)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				msg, err := d.Receive(ctx)
				if err != nil || !bytes.Equal(msg.Data, want) || msg.Addr != s.Addr() {
					t.Fatalf("%s, %d bytes: %v", name, size, err)
				}
			}
		}
		if err := s.SendTo(ctx, nil, Addr{Host: nodes[1-i].Addr()}); err != nil { // a ping
			t.Error(err)
		}
		if msg, err := s.Receive(ctx); err != nil || msg.Addr.Port != wire.PingPort {
			t.Errorf("%s: %v, %v", name, msg, err)
		}
	}
}
