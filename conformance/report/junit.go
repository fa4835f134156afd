package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"urnic/conformance"
)

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitCounts
	Suites []*junitSuite `xml:"testsuite"`
}

type junitCounts struct {
	Tests     int    `xml:"tests,attr"`
	Failures  int    `xml:"failures,attr"`
	Errors    int    `xml:"errors,attr"`
	Skipped   int    `xml:"skipped,attr"`
	Time      string `xml:"time,attr"` // seconds
	Timestamp string `xml:"timestamp,attr"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitCounts
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`

	duration time.Duration
	began    time.Time
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	ClassName string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitOutcome `xml:"failure"`
	Error     *junitOutcome `xml:"error"`
	Skipped   *junitOutcome `xml:"skipped"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Body    string `xml:",chardata"`
}

// JUnit writes a report as the XML that build servers read for test results
// (docs/junit.xsd): a testsuite for each RFC, in which a testcase is a case in one
// of its roles. A test case that failed has a failure with all that the text report
// says of it. One that was skipped is skipped. One that is inconclusive is an
// error if the run was strict, and otherwise skipped with a message that begins
// with "inconclusive: ": build servers know no fourth outcome, and without
// strictness it does not break the build. A run that is neither pass nor fail has one more
// suite, with an error that says why: build servers judge by errors and failures. The error
// of JUnit is that of w.
func JUnit(w io.Writer, r *conformance.Report) error {
	all := junitSuites{Name: line(r.Tool) + " conform " + line(r.Target)}
	all.Timestamp, all.Time = junitTime(r.Began), junitSeconds(r.Duration)
	suites := map[string]*junitSuite{}
	for i := range r.Results {
		c := &r.Results[i]
		name := suiteName(c)
		s := suites[name]
		if s == nil {
			s = &junitSuite{Name: name, began: c.Began, Properties: []junitProperty{
				{"tool", line(r.Tool)},
				{"target", line(r.Target)},
				{"profile", line(r.Profile)},
				{"llp", r.LLP.Name()},
				{"strict", fmt.Sprint(r.Strict)},
			}}
			suites[name] = s
			all.Suites = append(all.Suites, s)
		}
		s.add(c, r.Strict)
	}
	if s := outcomeSuite(r); s != nil {
		all.Suites = append(all.Suites, s)
	}
	slices.SortStableFunc(all.Suites, func(a, b *junitSuite) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range all.Suites {
		s.Timestamp, s.Time = junitTime(s.began), junitSeconds(s.duration)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// outcomeSuite returns a suite with the verdict on the run as an error, or nil if the cases
// tell it.
func outcomeSuite(r *conformance.Report) *junitSuite {
	outcome := r.Outcome()
	if outcome == conformance.Passed || outcome == conformance.Failed {
		return nil
	}
	message := strings.ToUpper(string(outcome)) + ": " + line(r.Headline())
	return &junitSuite{
		Name: "run", junitCounts: junitCounts{Tests: 1, Errors: 1}, began: r.Began,
		Properties: []junitProperty{
			{"tool", line(r.Tool)},
			{"target", line(r.Target)},
			{"profile", line(r.Profile)},
			{"llp", r.LLP.Name()},
			{"strict", fmt.Sprint(r.Strict)},
		},
		Cases: []junitCase{{
			Name: "verdict on the run", ClassName: "conform.run", Time: junitSeconds(0),
			Error: &junitOutcome{Message: message, Type: string(outcome), Body: "\n" + message + "\n"},
		}},
	}
}

// suiteName returns the name of the suite that a case belongs to: its RFC, or its
// group if it is not named by a clause.
func suiteName(c *conformance.Result) string {
	if rfc := rfcOf(c); rfc != "" {
		return rfc
	}
	return line(c.Group)
}

func (s *junitSuite) add(c *conformance.Result, strict bool) {
	if c.Began.Before(s.began) {
		s.began = c.Began
	}
	s.duration += c.Duration
	s.Tests++
	// Tools take what is before the last dot for a package.
	class := strings.NewReplacer(" ", "", ".", "_").Replace(strings.ToLower(s.Name + "/" + line(c.Group)))
	t := junitCase{Name: heading(c), ClassName: "conform." + strings.ReplaceAll(class, "/", "."), Time: junitSeconds(c.Duration)}
	reason := line(c.Reason)
	switch c.Verdict {
	case conformance.Pass:
	case conformance.Fail:
		s.Failures++
		t.Failure = &junitOutcome{Message: reason, Type: line(c.Level), Body: junitBody(c)}
	case conformance.Inconclusive:
		if strict {
			s.Errors++
			t.Error = &junitOutcome{Message: "inconclusive: " + reason, Type: "inconclusive", Body: junitBody(c)}
			break
		}
		s.Skipped++
		t.Skipped = &junitOutcome{Message: "inconclusive: " + reason, Body: junitBody(c)}
	case conformance.Skipped:
		s.Skipped++
		t.Skipped = &junitOutcome{Message: reason}
	default: // of no meaning to us: not a pass
		s.Errors++
		t.Error = &junitOutcome{Message: c.Verdict.String(), Type: "verdict"}
	}
	s.Cases = append(s.Cases, t)
}

func junitBody(c *conformance.Result) string {
	var b strings.Builder
	b.WriteByte('\n')
	textCase(&b, c, defaultWidth, false)
	return b.String()
}

func junitSeconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

func junitTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
