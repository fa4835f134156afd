// Command mutants shows that the tests of the machine of Rx notice faults in it: see package
// [urnic/internal/test/mutants].
//
//	mutants [-run REGEXP]
package main

import "urnic/internal/test/mutants"

// mutant is a row of the list.
type mutant struct{ Name, Fault, File, Old, New string }

// suite is what is run.
func suite() mutants.Suite {
	s := mutants.Suite{
		Package: "ulp/rx/machine",
		Stages: []mutants.Stage{
			{Name: "tests", Args: []string{"-test.skip", "Simulation|Fuzz"}},
			{Name: "schedules", Args: []string{"-test.run", "Simulation", "-schedules", "1000"}},
			{Name: "fuzz", Args: []string{"-test.run", "Fuzz"}},
			{Name: "schedules", Args: []string{"-test.run", "Simulation", "-schedules", "50000"}},
		},
	}
	for _, m := range list {
		s.Mutants = append(s.Mutants, mutants.Mutant(m))
	}
	return s
}

func main() { mutants.Main(suite()) }
