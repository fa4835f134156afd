package rnic

import "urnic/internal/door/policy"

// orStrict returns the policy that was set, or else the one of a wider scope, or else the
// strict one.
func orStrict(set, wider policy.Policy) policy.Policy {
	switch {
	case set != nil:
		return set
	case wider != nil:
		return wider
	}
	return policy.Strict{}
}
