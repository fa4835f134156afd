// Command mutants shows that the tests of the life of a queue pair notice faults in it: see
// package [urnic/internal/test/mutants].
//
//	mutants [-run REGEXP]
package main

import "urnic/internal/test/mutants"

// mutant is a row of the list.
type mutant struct{ Name, Fault, File, Old, New string }

// suite is what is run.
func suite() mutants.Suite {
	s := mutants.Suite{
		Package: "rnic/internal/life",
		Stages: []mutants.Stage{
			{Name: "schedules", Args: []string{"-test.short", "-test.run", "Interleaving"}},
			{Name: "tests", Args: []string{"-test.skip", "Interleaving"}},
			{Name: "all", Args: []string{"-test.run", "Interleaving"}},
		},
	}
	for _, m := range list {
		s.Mutants = append(s.Mutants, mutants.Mutant(m))
	}
	return s
}

func main() { mutants.Main(suite()) }
