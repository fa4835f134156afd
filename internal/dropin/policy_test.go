//go:build linux

package dropin

import (
	"testing"

	"urnic/internal/door/policy"
)

// With URNIC_STRICT=1, a message waits for no receive; in all else the RNIC is as lenient as
// programs expect of hardware.
func TestPolicyForPrograms(t *testing.T) {
	for _, strict := range []bool{false, true} {
		p := policyOf(&settings{strict: strict, times: defaultTimes()})
		if waits := p.RNR() > 0; waits == strict {
			t.Errorf("strict %v: messages wait: %v", strict, waits)
		}
		for d := policy.CheckAtTurn; d != 0; d <<= 1 {
			if !p.Allows(d) {
				t.Errorf("strict %v: departure %b is not allowed", strict, d)
			}
		}
	}
}
