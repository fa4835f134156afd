// Command mutation measures the tests of a package. It changes the package's code in one
// place at a time, runs the tests that reach the place, and reports the changes that no
// test notices.
//
//	mutation [flags] ./ddp
//
// All mutants are compiled into one test binary: each stands beside the code that it
// changes, and an environment variable selects the one that runs. So no mutant costs a
// build. The tool first runs each test alone, to learn how long it takes and which mutants
// it reaches. For a mutant it then runs only the tests that reach it, the fast ones
// first, until one fails. A mutant that makes tests hang is killed by a time limit.
//
// The mutants are: the boundary of a comparison (< and <=), its negation, && and ||
// exchanged, arithmetic and bitwise operators exchanged, ++ and --, a negation dropped, true and
// false exchanged, a result replaced by a zero value, and a statement removed: a call, an
// assignment, a defer, a send, a bare return, break or continue. Constants stay as
// they are, and so do calls of Lock and Unlock, whose absence is for the race detector.
//
// A mutant that no test can kill, because the changed program does the same, is
// listed with the reason in docs/mutation.md. It does not count. A row of that table that
// names no mutant, or one that a test kills, is an error.
//
// The exit status is 0 if no mutant survives that the table does not explain, 1 if one
// does or the table is stale, and 2 if the tests could not be run.
package main
