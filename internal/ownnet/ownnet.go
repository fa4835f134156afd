// Package ownnet runs tests in a network of their own, which has what a machine may lack:
// IPv6, and addresses that are not loopback.
package ownnet

import (
	"os"
	"testing"
)

// inside is the variable that is set in the process with a network of its own.
const inside = "URNIC_TEST_OWN_NET"

// Run runs a test in a process with a network of its own, which has only the loopback
// interface, with IPv6, and with addresses of IPv4 besides. In that process it calls f. In the
// one that calls it first, it starts that process, and the test fails if that fails. Where
// there can be no such network, the test is skipped, or fails if CI is set.
func Run(t *testing.T, f func(t *testing.T), addresses ...string) {
	t.Helper()
	if os.Getenv(inside) == "" {
		again(t)
		return
	}
	if err := up(addresses); err != nil {
		t.Fatal(err)
	}
	f(t)
}
