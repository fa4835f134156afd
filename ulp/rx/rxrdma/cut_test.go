package rxrdma_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"urnic/internal/test/cutnet"
	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma"
	"urnic/ulp/rx/rxtest"
)

// over opens endpoints on a network.
func over(n rnic.Network) rxtest.Opener {
	return func(t testing.TB, services []rx.Service) (rx.Endpoint, rx.Endpoint) {
		t.Helper()
		cfg := rxrdma.Config{Receive: 4096, LeastBulk: 16 << 10}
		client := endpoint(t, device(t, rnic.Config{Name: "client", Network: n}), cfg)
		cfg.Addr, cfg.Services = loopback4, services
		return client, endpoint(t, device(t, rnic.Config{Name: "server", Network: n}), cfg)
	}
}

// However reads and writes of the network are cut into pieces, services pass the suite.
func TestServicesInPieces(t *testing.T) { rxtest.Run(t, over(&cutnet.Network{Seed: 1})) }

// Wherever a connection is cut, stands still or is damaged, each call ends with its bytes
// or with a code, calls on later connections are whole, and nothing is left behind: the
// bubble sees to that.
func TestCallsEndWhereverTheirConnectionIsCut(t *testing.T) {
	step, growth := int64(9), int64(20)
	if testing.Short() || raceEnabled {
		step, growth = 60, 4
	}
	for name, fault := range map[string]func(int64) simnet.Options{
		"cut to the server":     func(n int64) simnet.Options { return simnet.Options{AB: simnet.Faults{CutAt: n}} },
		"cut from the server":   func(n int64) simnet.Options { return simnet.Options{BA: simnet.Faults{CutAt: n}} },
		"still to the server":   func(n int64) simnet.Options { return simnet.Options{AB: simnet.Faults{StallAt: n}} },
		"still from the server": func(n int64) simnet.Options { return simnet.Options{BA: simnet.Faults{StallAt: n}} },
		"damaged":               func(n int64) simnet.Options { return simnet.Options{BA: simnet.Faults{CorruptAt: n}} },
	} {
		t.Run(name, func(t *testing.T) {
			failed, whole := 0, 0
			for which := range 5 { // of the connections
				for n := int64(1); n < 200_000; n += step + n/growth {
					var o rxtest.Outcomes
					t.Run(fmt.Sprint(which, "/", n), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							network := &simnet.Network{Options: func(k int) simnet.Options {
								if k == which {
									return fault(n)
								}
								return simnet.Options{}
							}}
							keys, services := rxtest.NewKeys(t)
							client, server := over(network)(t, services)
							o = rxtest.Survive(t, client, server, keys)
							if o.Whole+o.Failed == 0 {
								t.Error("there were no calls")
							}
						})
					})
					failed += o.Failed
					whole += o.Whole
				}
			}
			t.Logf("%d calls were whole, %d failed", whole, failed)
			if failed == 0 || whole < failed {
				t.Error("the faults are not what they should be")
			}
		})
	}
}
