//go:build linux

package dropin

import "urnic/internal/door/policy"

// policyOf returns in what the RNIC departs from the rules of iWARP for programs that were
// written for hardware, mostly for InfiniBand's.
func policyOf(s *settings) policy.Policy {
	l := policy.Lenient{
		Departures: policy.CheckAtTurn | policy.TakeLate | // hardware looks at requests when their turn comes
			policy.HoldSends | policy.HoldReceives | // programs post until that fails
			policy.PairImmediate |
			policy.SplitReads | // with URNIC_STRICT, judgeSinks refuses them
			policy.FireForQueued | // perftest polls once for each event
			policy.NotifyEach, // others fetch one event for each arming
	}
	if !s.strict { // hardware of iWARP ends the connection (RFC 5041 §7.1)
		l.Wait = s.times.receive
	}
	return l
}
