// Package report writes the outcome of a conformance run, a
// [conformance.Report], for those who read it: [Text] for a terminal or the log
// of a build, [JSON] for programs (docs/conform.schema.json describes it), [JUnit]
// for build servers (docs/junit.xsd), and [HTML] for a page that a browser opens
// without a network, to attach to a bug.
//
// Much of a report comes from the target and is hostile: each form shows control
// characters and octets that are no UTF-8 as escapes, and each keeps to a bounded
// size, saying what it has left out. JSON alone holds all that there is.
package report
