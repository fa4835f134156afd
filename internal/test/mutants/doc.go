// Package mutants shows that the tests of a package notice faults in it. It builds them with
// one named fault at a time, by an overlay of go build, so that nothing of it is in the
// package, and runs them until one fails.
//
// A command that has a [Suite] calls [Main]. Its test calls [Suite.Check], which needs no
// build.
package mutants
