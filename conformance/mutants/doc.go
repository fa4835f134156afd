// Package mutants lists endpoints with deliberate faults. Each [Mutant] is urnic's own stack
// with one fault that an engineer could make. It names the clauses of package catalogue that
// it breaks.
//
// A tester that lets a mutant pass does not test what it claims. So command run of this
// package builds each mutant and runs the conformance cases of those clauses against it. One
// of them has to fail.
//
// The stack has no code for this. A fault is one edit of its source: [Mutant.Apply] returns
// the edited file, with which command run compiles the stack. The program that is built is
// package target: the test service, and nothing else.
//
// Mutants are grouped in families by the kind of their fault; each [Family] has a file,
// named for the RFC, or the part of it, whose clause they break first. A mutant must build.
// Its fault must be visible at its connection or its test service, in a case that ends soon.
// If one case exists for this mutant, [Mutant.Case] names it, and no other case counts.
//
// Some faults begin later in a stream: [Mutant.Later]. They are for the cases that test a
// rule again later in a stream, and show that these cases are needed: the other cases of the
// clauses have to pass.
//
// Some faults take too long to show: the MSN wraps after 2^32 messages. Such a mutant is
// applied to a [Build] of the stack whose numbers begin near there. The tester begins there
// too, and the build without the fault must pass the same cases.
//
// A mutant with a [Loss] crashes or hangs. Then no case can fail; the mutant is caught if
// the run reports that the target was lost.
package mutants
