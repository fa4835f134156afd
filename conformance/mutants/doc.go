// Package mutants lists endpoints that are wrong on purpose. Each [Mutant] is
// urnic's own stack with one fault, such as an engineer could make, and names the
// clauses of package catalogue that it breaks.
//
// A tester that lets a mutant pass does not test what it says. So command run of
// this package builds each mutant, runs the conformance cases of those clauses
// against it, and wants one of them to fail.
//
// The stack knows nothing of this. A fault is one place of its source, edited:
// [Mutant.Apply] returns the edited file, with which command run compiles the stack
// anew. Package target is what is built: the test service, and nothing else.
//
// A mutant goes into the file that is named for the RFC, or the part of it, whose
// clause it breaks first. It must build, and whoever speaks to it and to its test
// service must be able to tell it from the real thing, in a case that ends soon and
// does not crash it.
package mutants
