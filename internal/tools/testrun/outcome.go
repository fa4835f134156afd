package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// An event is one of those that "go test -json" prints (see go doc test2json).
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string // of what was built
	FailedBuild string // of what the package needs and can't be built
}

// A test is one test of a package, or the package itself if name is "".
type test struct{ pkg, name string }

func (t test) String() string { return strings.TrimSuffix(t.pkg+"."+t.name, ".") }

// within reports whether t is a subtest of a test, at any depth, or of the package.
func (t test) within(of test) bool {
	return t.pkg == of.pkg && t.name != of.name && (of.name == "" || strings.HasPrefix(t.name, of.name+"/"))
}

// A result is how the runs of one test ended.
type result struct {
	ends []string // pass, fail or skip, one for each run
	said strings.Builder
}

func (r *result) failedOnce() bool { return slices.Contains(r.ends, "fail") }
func (r *result) last() string     { return r.ends[len(r.ends)-1] }

// An outcome is what the events of a run and of the runs again say.
type outcome struct {
	tests     map[test]*result
	order     []test // in which they ended first
	raced     []string
	panicked  []string
	notBuilt  []string
	compiler  strings.Builder
	unplanned []string // packages that failed although none of their tests did
}

var (
	raceReport  = regexp.MustCompile(`^WARNING: DATA RACE`)
	panicReport = regexp.MustCompile(`^(panic: |fatal error: )`)
)

// read reads the events of a run.
func read(r io.Reader) (*outcome, error) {
	o := &outcome{tests: make(map[test]*result)}
	failing := make(map[string]int) // tests of a package that have failed in its current run
	panics := make(map[string]bool)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%q is no event of a test: %w", line, err)
		}
		t := test{e.Package, e.Test}
		switch e.Action {
		case "build-fail":
			o.notBuilt = append(o.notBuilt, e.ImportPath)
		case "build-output":
			o.compiler.WriteString(e.Output)
		case "run", "start":
			o.result(t)
		case "output":
			o.result(t).said.WriteString(e.Output)
			if raceReport.MatchString(e.Output) {
				o.raced = append(o.raced, t.String())
			}
			if panicReport.MatchString(e.Output) {
				panics[e.Package] = true
			}
		case "pass", "fail", "skip":
			o.end(t, e.Action)
			if e.Test != "" {
				if e.Action == "fail" {
					failing[e.Package]++
				}
				continue
			}
			if e.Action == "fail" {
				if failing[e.Package] == 0 && e.FailedBuild == "" {
					o.unplanned = append(o.unplanned, e.Package)
				}
				if panics[e.Package] {
					o.panicked = append(o.panicked, e.Package)
				}
			}
			failing[e.Package], panics[e.Package] = 0, false
		}
	}
	return o, nil
}

func (o *outcome) result(t test) *result {
	r := o.tests[t]
	if r == nil {
		r = &result{}
		o.tests[t] = r
	}
	return r
}

func (o *outcome) end(t test, how string) {
	r := o.result(t)
	if len(r.ends) == 0 {
		o.order = append(o.order, t)
	}
	r.ends = append(r.ends, how)
}

// failed returns the tests that failed and never passed afterwards, innermost ones only, and those that did, which are flaky.
// A subtest passed when its test did: not each has the same subtests again.
func (o *outcome) failed() (failed, flaky []test) {
	for _, t := range o.order {
		if t.name == "" || !o.tests[t].failedOnce() {
			continue
		}
		root, _, _ := strings.Cut(t.name, "/")
		switch again := o.tests[test{t.pkg, root}]; {
		case len(again.ends) > 0 && again.last() == "pass":
			flaky = append(flaky, t)
		case o.tests[t].last() == "fail":
			failed = append(failed, t)
		}
	}
	return innermost(failed), innermost(flaky)
}

// unfinished returns the tests that began and never ended.
func (o *outcome) unfinished() (tests []test) {
	for t, r := range o.tests {
		if t.name != "" && len(r.ends) == 0 {
			tests = append(tests, t)
		}
	}
	slices.SortFunc(tests, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return tests
}

// innermost leaves out tests of which a subtest is in the list.
func innermost(tests []test) []test {
	return slices.DeleteFunc(slices.Clone(tests), func(t test) bool {
		return slices.ContainsFunc(tests, func(other test) bool { return other.within(t) })
	})
}

// skipped returns the tests that were skipped and that a pattern does not allow.
func (o *outcome) skipped(allowed *regexp.Regexp) (tests []test) {
	for _, t := range o.order {
		if t.name != "" && o.tests[t].last() == "skip" && !allowed.MatchString(t.name) {
			tests = append(tests, t)
		}
	}
	return tests
}

// count returns how many tests passed and were skipped, and in how many packages.
func (o *outcome) count() (passed, skipped, packages int) {
	for t, r := range o.tests {
		if len(r.ends) == 0 {
			continue
		}
		switch last := r.last(); {
		case t.name == "" && last == "pass":
			packages++
		case t.name != "" && last == "pass":
			passed++
		case t.name != "" && last == "skip":
			skipped++
		}
	}
	return passed, skipped, packages
}
