package report

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urnic/conformance"
)

func junit(t *testing.T, r *conformance.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := JUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// program returns the path of a program, and skips the test if there is none.
func program(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: install the package %s", err, pkg)
		}
		t.Skipf("%v: install the package %s", err, pkg)
	}
	return path
}

// xmllint validates a document against docs/junit.xsd.
func xmllint(t *testing.T, document []byte) error {
	t.Helper()
	path := program(t, "xmllint", "libxml2-utils")
	file := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "--nonet", "--noout", "--schema", "../../docs/junit.xsd", file).CombinedOutput()
	t.Logf("xmllint: %.400s", out)
	return err
}

func TestJUnitReportFitsTheSchema(t *testing.T) {
	strict := sample(t)
	strict.Strict = true
	odd := sample(t)
	odd.Results[0].Verdict, odd.Results[0].Group = 77, hostile
	for name, r := range map[string]*conformance.Report{
		"sample": sample(t), "strict": strict, "empty": {}, "odd": odd,
	} {
		if err := xmllint(t, junit(t, r)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJUnitSchemaRefusesWhatIsNoReport(t *testing.T) {
	good := string(junit(t, sample(t)))
	for name, change := range map[string][2]string{
		"a suite twice":       {`<testsuite name="RFC 5044"`, `<testsuite name="RFC 5041"`},
		"a test without time": {` time="0.012345"`, ``},
		"an outcome unknown":  {`failure`, `mishap`},
		"no count":            {` failures="4"`, ``},
		"a control character": {`RFC 5041 §7.1`, "\x01"},
	} {
		bad := strings.ReplaceAll(good, change[0], change[1])
		if bad == good {
			t.Errorf("%s: %q is not in the report", name, change[0])
		}
		if xmllint(t, []byte(bad)) == nil {
			t.Errorf("%s is taken for a report", name)
		}
	}
}

// parsed is what a build server makes of the document.
func parsed(t *testing.T, document []byte) (all junitSuites, cases map[string]junitCase) {
	t.Helper()
	if err := xml.Unmarshal(document, &all); err != nil {
		t.Fatal(err)
	}
	cases = map[string]junitCase{}
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			cases[c.Name] = c
		}
	}
	return all, cases
}

func TestJUnitOutcomes(t *testing.T) {
	r := sample(t)
	all, cases := parsed(t, junit(t, r))
	if all.Tests != 13 || all.Failures != 4 || all.Errors != 0 || all.Skipped != 5 || len(all.Suites) != 4 || len(cases) != 13 {
		t.Errorf("got %+v, %d suites, %d cases", all.junitCounts, len(all.Suites), len(cases))
	}
	if s := all.Suites[1]; s.Name != "RFC 5041" || s.Tests != 4 || s.Failures != 2 || s.Skipped != 1 || s.Properties[1].Value != r.Target {
		t.Errorf("got %+v", s)
	}
	if c := cases["rfc5041-4.1-9/dv-zero (responder)"]; c.Failure != nil || c.Error != nil || c.Skipped != nil || c.ClassName != "conform.rfc5041.ddp" || c.Time != "0.012345" {
		t.Errorf("a pass is %+v", c)
	}
	fail := cases["rfc5041-7.1-4/end-one-octet-beyond (initiator)"]
	if fail.Failure == nil || fail.Failure.Type != "MUST" || !strings.HasPrefix(fail.Failure.Message, "Terminate names another error") ||
		!strings.Contains(fail.Failure.Body, "  expected  Terminate of DDP") || !strings.Contains(fail.Failure.Body, "0000  00 53 41 43") {
		t.Errorf("a failure is %+v", fail)
	}
	if c := cases["rfc5041-5.2-9/zero-length (initiator)"]; c.Skipped == nil || c.Skipped.Message != "the profile raw can't ask the target to write" {
		t.Errorf("a skip is %+v", c)
	}
	const name, message = "rfc5044-7.1.1-15/revision-seven (responder)", "inconclusive: nothing came within 2 s, and the connection stayed open"
	if c := cases[name]; c.Skipped == nil || c.Skipped.Message != message || c.Error != nil {
		t.Errorf("an inconclusive case is %+v", c)
	}
	r.Strict = true
	all, cases = parsed(t, junit(t, r))
	if c := cases[name]; c.Error == nil || c.Error.Message != message || c.Skipped != nil || all.Errors != 2 || all.Skipped != 3 {
		t.Errorf("in a strict run it is %+v of %+v", c, all.junitCounts)
	}
}

// What a target has sent is in the document as text that people can read.
func TestJUnitShowsControlsAsEscapes(t *testing.T) {
	_, cases := parsed(t, junit(t, sample(t)))
	c := cases["rfc5040-5.4-7/nothing-after-terminate (responder)"]
	const want = `\x1b[2J</script><script>alert(1)</script>\x00 ]]> \xff\xfe \u202e<b>&amp;`
	if c.Failure == nil || !strings.Contains(c.Failure.Message, want) {
		t.Errorf("got %+v", c.Failure)
	}
}

// A case that no clause of an RFC names is in a suite of its group.
func TestJUnitCaseWithoutRFCIsInItsGroup(t *testing.T) {
	r := &conformance.Report{Totals: conformance.Totals{Pass: 1}, Results: []conformance.Result{{Case: "own/one", Group: "robustness", Verdict: conformance.Pass}}}
	all, cases := parsed(t, junit(t, r))
	if len(all.Suites) != 1 || all.Suites[0].Name != "robustness" || cases["own/one"].ClassName != "conform.robustness.robustness" {
		t.Errorf("got %+v", all.Suites)
	}
}

// Build servers go by errors and failures, so a run that was not successful has one, though no
// case has.
func TestJUnitHasTheVerdictOnARunThatDidNotPass(t *testing.T) {
	for want, r := range map[string]*conformance.Report{
		"target lost":  {Lost: "it has gone", Totals: conformance.Totals{Pass: 1}},
		"interrupted":  {Interrupted: true, Totals: conformance.Totals{Pass: 1}},
		"inconclusive": {Totals: conformance.Totals{Skipped: 1}},
	} {
		all, cases := parsed(t, junit(t, r))
		c := cases["verdict on the run"]
		if all.Errors != 1 || c.Error == nil || c.Error.Type != want || !strings.HasPrefix(c.Error.Message, strings.ToUpper(want)+": ") {
			t.Errorf("%s: %d errors, %+v", want, all.Errors, c.Error)
		}
	}
	for _, n := range []conformance.Totals{{Pass: 1}, {Fail: 1}} {
		if all, _ := parsed(t, junit(t, &conformance.Report{Totals: n})); len(all.Suites) != 0 {
			t.Errorf("%+v: suites %+v", n, all.Suites)
		}
	}
}
