// Command mutants shows that the tests of the machine of RDS notice faults in it: see package
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
		Package: "ulp/rds/machine",
		Stages: []mutants.Stage{
			{Name: "tests", Args: []string{"-test.skip", "Simulation|Faults|Fuzz"}},
			{Name: "schedules", Args: []string{"-test.run", "Simulation", "-schedules", "300"}},
			{Name: "faults", Args: []string{"-test.run", "Faults"}},
			{Name: "schedules", Args: []string{"-test.run", "Simulation", "-schedules", "10000"}},
		},
	}
	for _, m := range list {
		s.Mutants = append(s.Mutants, mutants.Mutant(m))
	}
	return s
}

func main() { mutants.Main(suite()) }
