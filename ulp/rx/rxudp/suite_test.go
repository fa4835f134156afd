package rxudp_test

import (
	"log/slog"
	"net/netip"
	"testing"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxtest"
	"urnic/ulp/rx/rxudp"
)

// The suite passes over UDP as it does over the RNIC, with IPv4 and with IPv6.
func TestServicesOverUDP(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			rxtest.Run(t, func(tb testing.TB, services []rx.Service) (client, server rx.Endpoint) {
				at := netip.MustParseAddrPort(addr)
				server = open(tb, rxudp.Config{Addr: at, Services: services, Log: slog.New(slog.DiscardHandler)})
				return open(tb, rxudp.Config{Addr: at}), server
			})
		})
	}
}
