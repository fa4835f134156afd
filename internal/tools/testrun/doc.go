// Command testrun runs the tests of packages, runs those that fail again, and says what came of it.
//
//	testrun [flags] PACKAGE... [-- FLAG OF GO TEST...]
//
// It is what "make test" and "make race" run, in the checkout's top directory. Gotestsum runs the
// tests, and runs each that fails again, alone, up to -tries times. Testrun reads the events of all
// runs and decides:
//
//   - A test that fails and passes when it runs again is flaky. It is printed as "FLAKY NAME" with
//     what it said, and the run passes. docs/flaky.md lists those that were seen.
//   - A test that fails in each run, a data race, a panic, and a package that fails although none of
//     its tests does (such as one that leaves goroutines behind) fail the run. So do more than
//     eight failing tests: that is no chance.
//   - A skipped test fails the run if CI is set, unless .ci/skips names it. There, a skip says that
//     something is missing which the machine must have.
//
// The file .ci/later names tests that a run leaves out (-later), with the reason. "make verify" runs them.
//
// The events and the output of flaky tests are left in -out, as NAME.json and NAME-flaky.txt.
package main
