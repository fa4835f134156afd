package rxrdma_test

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma"
	"urnic/ulp/rx/rxtest"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// device opens a device that is closed when the test ends.
func device(t testing.TB, cfg rnic.Config) *rnic.Device {
	t.Helper()
	dev, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// endpoint opens an endpoint that is closed when the test ends.
func endpoint(t testing.TB, dev *rnic.Device, cfg rxrdma.Config) *rxrdma.Endpoint {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e, err := rxrdma.Open(context.Background(), dev, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

// opener opens endpoints with configurations.
func opener(addr netip.AddrPort, client, server rxrdma.Config) rxtest.Opener {
	return func(t testing.TB, services []rx.Service) (rx.Endpoint, rx.Endpoint) {
		t.Helper()
		server := server
		server.Addr, server.Services = addr, services
		s := endpoint(t, device(t, rnic.Config{Name: "server"}), server)
		return endpoint(t, device(t, rnic.Config{Name: "client"}), client), s
	}
}

func TestServicesOverTheRNIC(t *testing.T) {
	for _, tt := range []struct {
		name           string
		addr           netip.AddrPort
		client, server rxrdma.Config
	}{
		{"IPv4", loopback4, rxrdma.Config{}, rxrdma.Config{}},
		{"IPv6", loopback6, rxrdma.Config{}, rxrdma.Config{}},
		{"a client without bulk", loopback4, rxrdma.Config{Bulk: -1}, rxrdma.Config{}},
		{"a server without bulk", loopback4, rxrdma.Config{}, rxrdma.Config{Bulk: -1}},
		{"small windows, short messages", loopback4, rxrdma.Config{Window: 1, Receive: 6000, LeastBulk: 1}, rxrdma.Config{Window: 2, LeastBulk: 1000}},
	} {
		if (testing.Short() || raceEnabled) && tt.client.Window == 1 {
			continue // a round trip for each message
		}
		t.Run(tt.name, func(t *testing.T) { rxtest.Run(t, opener(tt.addr, tt.client, tt.server)) })
	}
}
