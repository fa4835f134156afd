package cases

import (
	"slices"

	"urnic/conformance"
)

// startup is the cases on the start-up of a connection (RFC 5044 §7.1).
func startup() []conformance.Case {
	return crashInitiators(slices.Concat(
		startupKeys(), startupFlags(), startupRevisions(), startupPrivateData(), startupCuts(),
		startupFirst, startupNegotiation(), startupRejections,
	))
}

// crashInitiators notes of cases that what they do to a target as Initiator is known
// to crash one.
func crashInitiators(cases []conformance.Case) []conformance.Case {
	for i, c := range cases {
		if c.For()&conformance.Initiator != 0 && c.Harm == "" {
			cases[i].Harm = "Linux siw 6.1 as Initiator may bring its kernel down when a start-up comes to nothing"
			cases[i].HarmAs = conformance.Initiator
		}
	}
	return cases
}
