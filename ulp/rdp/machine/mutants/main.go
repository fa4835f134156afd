// Command mutants shows that the tests of the machine of RDP notice faults in it: see package
// [urnic/internal/test/mutants]. Those whose names begin with "literal" are what the pseudo-code of
// RFC 908 says where it is wrong.
//
//	mutants [-run REGEXP]
package main

import "urnic/internal/test/mutants"

// mutant is a row of the list.
type mutant struct{ Name, Fault, File, Old, New string }

// suite is what is run: the simulation first, as it stands for no rule in particular.
func suite() mutants.Suite {
	s := mutants.Suite{
		Package: "ulp/rdp/machine",
		Stages: []mutants.Stage{
			{Name: "schedules", Args: []string{"-test.run", "Simulation", "-schedules", "4000"}},
			{Name: "tests", Args: []string{"-test.skip", "Simulation"}},
			{Name: "schedules", Args: []string{"-test.run", "Simulation", "-schedules", "60000"}},
		},
	}
	for _, m := range list {
		s.Mutants = append(s.Mutants, mutants.Mutant(m))
	}
	return s
}

func main() { mutants.Main(suite()) }
