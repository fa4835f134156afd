// Package cases holds the cases of the conformance tester, group by group.
//
// A case is small: it brings the connection to the state in which the clause
// applies, does one thing, and checks the result. docs/conformance.md says how to
// add one.
package cases

import "urnic/conformance"

// All returns the suite.
func All() []conformance.Group {
	return []conformance.Group{
		{Name: "start-up", Cases: startup()},
		{Name: "enhanced", Cases: enhanced()},
		{Name: "framing", Cases: framing()},
		{Name: "ddp", Cases: ddp()},
		{Name: "rdmap", Cases: rdmap()},
		{Name: "extensions", Cases: extensions()},
		{Name: "protection", Cases: protection()},
		{Name: "robustness", Cases: robustness()},
		{Name: "teardown", Cases: teardown()},
		{Name: "rpcrdma", Cases: rpcOverRDMA()},
	}
}
