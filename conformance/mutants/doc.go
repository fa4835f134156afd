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
// Mutants are grouped in families by the kind of their fault; each [Family] has a file,
// named for the RFC, or the part of it, whose clause they break first. A mutant must
// build, and whoever speaks to it and to its test service must be able to tell it from
// the real thing, in a case that ends soon. If one case is there for its sake,
// [Mutant.Case] names it, and no other case counts.
//
// Some faults take too long to show: the MSN wraps after 2^32 messages. A mutant of that
// kind is put into a [Build] of the stack that begins near there. The tester begins
// there too, and the build without the fault must pass the same cases.
//
// A mutant with a [Loss] crashes or hangs. No case can fail then: it is caught if the
// run says that the target was lost.
package mutants
