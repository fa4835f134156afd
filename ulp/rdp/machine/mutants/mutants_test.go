package main

import "testing"

// Each mutant has a name and a fault of its own, and is the machine as it is now with a change.
func TestMutantsAreOfTheMachine(t *testing.T) {
	s := suite()
	if err := s.Check(".."); err != nil {
		t.Error(err)
	}
	if len(s.Mutants) < 45 {
		t.Errorf("there are %d mutants", len(s.Mutants))
	}
}
