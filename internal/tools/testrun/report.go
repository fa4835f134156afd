package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// shown is how many lines of what a test said a report has at most.
const shown = 60

// report prints what came of a run to w, and the flaky tests to kept as well. It returns whether the run passes.
func (o *outcome) report(w, kept io.Writer, allowed *regexp.Regexp) (passes bool) {
	failed, flaky := o.failed()
	skipped := o.skipped(allowed)
	for _, t := range flaky {
		both := io.MultiWriter(w, kept)
		r := o.tests[t]
		fmt.Fprintf(both, "FLAKY %v (failed %d of %d)\n", t, strings.Count(strings.Join(r.ends, " "), "fail"), len(r.ends))
		fmt.Fprint(both, excerpt(r.said.String()))
	}
	for _, t := range failed {
		fmt.Fprintf(w, "FAILED %v\n%s", t, excerpt(o.tests[t].said.String()))
	}
	for _, t := range o.unfinished() {
		fmt.Fprintf(w, "FAILED %v: it has not ended\n%s", t, excerpt(o.tests[t].said.String()))
	}
	for _, t := range skipped {
		fmt.Fprintf(w, "SKIPPED %v: .ci/skips does not name it\n%s", t, excerpt(o.tests[t].said.String()))
	}
	for _, pkg := range o.unplanned {
		fmt.Fprintf(w, "FAILED %s: the package, though none of its tests\n%s", pkg, excerpt(o.tests[test{pkg: pkg}].said.String()))
	}
	for _, name := range o.raced {
		fmt.Fprintf(w, "DATA RACE in %s\n", name)
	}
	for _, pkg := range o.panicked {
		fmt.Fprintf(w, "PANIC in %s\n%s", pkg, excerpt(o.tests[test{pkg: pkg}].said.String()))
	}
	for _, pkg := range o.notBuilt {
		fmt.Fprintf(w, "NOT BUILT %s\n", pkg)
	}
	fmt.Fprint(w, excerpt(o.compiler.String()))
	ok, skips, packages := o.count()
	fmt.Fprintf(w, "%d tests passed in %d packages, %d flaky, %d skipped\n", ok, packages, len(flaky), skips)
	return ok > 0 && len(failed)+len(o.unfinished())+len(skipped)+len(o.unplanned)+len(o.raced)+len(o.panicked)+len(o.notBuilt) == 0
}

// excerpt returns the beginning and the end of what a test said, without the lines that only say that tests run.
func excerpt(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "=== ") && strings.TrimSpace(line) != "" {
			lines = append(lines, "    "+strings.TrimRight(line, "\n")+"\n")
		}
	}
	if over := len(lines) - shown; over > 0 {
		lines = append(append(lines[:shown/2:shown/2], fmt.Sprintf("    ... %d lines ...\n", over)), lines[len(lines)-shown/2:]...)
	}
	return strings.Join(lines, "")
}
