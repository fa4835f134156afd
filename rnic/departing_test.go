package rnic_test

import (
	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rnic"
)

// departing returns attributes with a policy that departs from the strict rules.
func departing(attr rnic.QPAttr, d policy.Departure) rnic.QPAttr {
	door.SetPolicyOfQP(&attr, policy.Lenient{Departures: d})
	return attr
}

// departingCQ is departing for a completion queue.
func departingCQ(attr rnic.CQAttr, d policy.Departure) rnic.CQAttr {
	door.SetPolicyOfCQ(&attr, policy.Lenient{Departures: d})
	return attr
}
