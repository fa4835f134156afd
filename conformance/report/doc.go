// Package report writes the result of a conformance run, a
// [conformance.Report], in several forms: [Text] for a terminal or the log of a
// build, [JSON] for programs (docs/conform.schema.json describes it), [JUnit]
// for build servers (docs/junit.xsd), and [HTML] for a page that a browser
// opens without a network, to attach to a bug.
//
// Much of a report comes from the target and is hostile: each form escapes
// control characters and bytes that are not UTF-8. Each has a bounded size and
// says what it has left out; only JSON is complete.
package report
