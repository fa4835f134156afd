package cases

import (
	"slices"
	"testing"

	"urnic/conformance/mutants"
)

// Each case that tries a rule later has to find a mutant that no other case finds, which
// "make mutants" looks after. So the mutants have to know these cases, all of them.
func TestMutantsKnowTheLaterCases(t *testing.T) {
	var ids []string
	for _, c := range slices.Concat(framingLater(), ddpLater(), rdmapLater(), extensionsLater) {
		ids = append(ids, c.ID())
	}
	known := mutants.LaterCases()
	for _, id := range ids {
		if !slices.Contains(known, id) {
			t.Errorf("%s is missing", id)
		}
	}
	for _, id := range known {
		if !slices.Contains(ids, id) {
			t.Errorf("there is no case %s", id)
		}
	}
}
