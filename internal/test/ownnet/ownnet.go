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
// interface, with IPv6, and with addresses besides. In that process it calls f. In the
// one that calls it first, it starts that process, and the test fails if that fails. Where
// there can be no such network, the test is skipped, or fails if CI is set.
func Run(t *testing.T, f func(t *testing.T), addresses ...string) {
	t.Helper()
	if os.Getenv(inside) == "" {
		again(t)
		return
	}
	if err := Up(addresses...); err != nil {
		t.Fatal(err)
	}
	f(t)
}

// Inside reports whether the process has a network of its own, made by Run.
func Inside() bool { return os.Getenv(inside) != "" }

// Up makes the network of a process work, if it is Inside: Run does so before the test, and a
// TestMain may need it earlier.
func Up(addresses ...string) error { return up(addresses) }
