package cases

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"urnic/conformance"
	"urnic/conformance/catalogue"
)

var update = flag.Bool("update", false, "write the pages that are made of catalogue and cases")

const (
	pageOfClauses = "../../docs/conformance-clauses.md"
	page          = "../../docs/conformance.md"
)

// The pages say which clauses the cases test: they are as catalogue and cases are.
func TestPagesAreTrue(t *testing.T) {
	compare(t, pageOfClauses, clausesPage())
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), "<!-- coverage", coverageTable())
	want = between(t, want, "<!-- case", "```go\n"+source(t, "ddp_tagged.go", "stag-with-another-key")+"```\n")
	compare(t, page, want)
}

// source returns the lines of a case in a file, moved to the margin.
func source(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), `Name: "`+name+`"`)
	rest, _, ends := strings.Cut(after, "\n\t},\n")
	begin := strings.LastIndex(before, "\n\t{\n")
	if !found || !ends || begin < 0 {
		t.Fatalf("%s has no case %s", file, name)
	}
	lines := before[begin+1:] + `Name: "` + name + `"` + rest + "\n\t},\n"
	return strings.ReplaceAll(strings.TrimPrefix(lines, "\t"), "\n\t", "\n")
}

func compare(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte(want)) {
		t.Errorf("%s is not as catalogue and cases are: run this test with -update", name)
	}
}

// between replaces what stands between a comment's line and the end's.
func between(t *testing.T, text, comment, replacement string) string {
	t.Helper()
	begin := strings.Index(text, comment)
	if begin < 0 {
		t.Fatalf("no %q", comment)
	}
	begin += strings.Index(text[begin:], "\n") + 1
	end := strings.Index(text[begin:], "<!-- end -->")
	if end < 0 {
		t.Fatalf("no end of %q", comment)
	}
	return text[:begin] + replacement + text[begin+end:]
}

// coverageTable is the table of docs/conformance.md.
func coverageTable() string {
	var b strings.Builder
	groups := All()
	cases := 0
	for _, g := range groups {
		cases += len(g.Cases)
	}
	fmt.Fprintf(&b, "%d cases. What can be tested of what binds has at least one; the catalogue says why the rest can't.\n\n", cases)
	b.WriteString("| RFC | MUST, MUST NOT: tested | can't be tested | open | SHOULD, SHOULD NOT: tested | can't be tested | open |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: |\n")
	for _, c := range conformance.CoverageOf(groups) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", c.RFC,
			c.Binding.Tested, c.Binding.Untestable, c.Binding.Open, c.Advised.Tested, c.Advised.Untestable, c.Advised.Open)
	}
	return b.String()
}

// clausesPage is docs/conformance-clauses.md.
func clausesPage() string {
	tested := map[string][]string{}
	for _, g := range All() {
		for _, c := range g.Cases {
			for _, id := range c.Clauses() {
				tested[id] = append(tested[id], c.ID())
			}
		}
	}
	var b strings.Builder
	b.WriteString("# The clauses, and the cases that test them\n\n" +
		"Each MUST, MUST NOT, SHOULD and SHOULD NOT of the RFCs of iWARP and of RPC-over-RDMA, in our words, with whom it\n" +
		"binds, and the cases of `urnic conform` that test it, or why none can. This page is made of `conformance/catalogue` and\n" +
		"`conformance/cases`; a test compares them.\n")
	rfc := ""
	for _, c := range catalogue.All() {
		if c.RFC() != rfc {
			rfc = c.RFC()
			fmt.Fprintf(&b, "\n## %s\n\n| Clause | Level | Binds | Demand | Cases |\n| --- | --- | --- | --- | --- |\n", rfc)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Level, c.Who, cell(c.Summary), cell(casesOf(c, tested[c.ID])))
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// casesOf names a clause's cases: the first few of them, if there are many.
func casesOf(c catalogue.Clause, ids []string) string {
	const most = 4
	switch {
	case len(ids) == 0 && c.Untestable != "":
		return "none: " + c.Untestable
	case len(ids) == 0:
		return "open"
	}
	names := make([]string, 0, most+1)
	for _, id := range ids[:min(most, len(ids))] {
		names = append(names, "`"+strings.TrimPrefix(id, c.ID)+"`")
	}
	if len(ids) > most {
		names = append(names, fmt.Sprintf("and %d more", len(ids)-most))
	}
	return strings.Join(names, ", ")
}

// Every clause that binds and can be tested has a case.
func TestEachTestableClauseThatBindsHasACase(t *testing.T) {
	tested := map[string]bool{}
	for _, g := range All() {
		for _, c := range g.Cases {
			for _, id := range c.Clauses() {
				tested[id] = true
			}
		}
	}
	for _, c := range catalogue.All() {
		if c.Level.Binding() && c.Untestable == "" && !tested[c.ID] {
			t.Errorf("%s (%s) has no case: %s", c.ID, c.Level, c.Summary)
		}
	}
}

// The suite is as large as it says it is.
func TestThereAreThreeHundredCases(t *testing.T) {
	n := 0
	for _, g := range All() {
		n += len(g.Cases)
	}
	if n < 300 {
		t.Errorf("there are %d cases", n)
	}
}
