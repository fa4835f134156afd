package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A proof that runs tests depends on them, their testdata, and what they are linked with.
func TestRecordOfTestsHoldsWhileWhatTheyAreMadeOfStays(t *testing.T) {
	files := map[string]string{
		"go.mod":             "module example\n",
		"go.sum":             "",
		"p/p.go":             "package p\n\nimport _ \"example/below\"\n",
		"p/p_test.go":        "package p\n\nimport _ \"example/helper\"\n",
		"p/outside_test.go":  "package p_test\n\nimport _ \"example/other/helper\"\n",
		"p/testdata/f":       "f",
		"p/sub/sub.go":       "package sub\n",
		"p/sub/sub_test.go":  "package sub\n",
		"below/below.go":     "package below\n\nimport _ \"embed\"\n\n//go:embed sub/f\nvar _ string\n",
		"below/sub/f":        "f",
		"below/b_test.go":    "package below\n",
		"helper/helper.go":   "package helper\n",
		"other/helper/h.go":  "package helper\n",
		"elsewhere/other.go": "package elsewhere\n",
		"page.md":            "# Page\n\n| `p/p.go` | why |\n| `pq/q.go` | why |\n",
	}
	p := proof{name: "p", command: []string{"true"}, inputs: []string{"page.md#p"}, tests: []string{"p"}}
	c := clone(t, "LICENSE")
	for name, text := range files {
		c.put(t, name, text)
	}
	commit(t, c)
	if err := c.run(t.Context(), t.Output(), []proof{p}); err != nil {
		t.Fatal(err)
	}
	commit(t, c)
	if _, err := c.holds(p); err != nil {
		t.Fatalf("right after the proof: %v", err)
	}
	for _, tt := range []struct {
		file, text string // the text is added
		due        bool
	}{
		{file: "go.mod", text: "// a comment\n", due: true},
		{file: "go.sum", text: "\n", due: true},
		{file: "p/p.go", text: "func init() {}\n", due: true},
		{file: "p/p_test.go", text: "func init() {}\n", due: true},
		{file: "p/outside_test.go", text: "func init() {}\n", due: true},
		{file: "p/new_test.go", text: "package p\n", due: true},
		{file: "p/testdata/f", text: "changed", due: true},
		{file: "p/testdata/fuzz/new", text: "new", due: true},
		{file: "below/below.go", text: "func init() {}\n", due: true},
		{file: "below/sub/f", text: "changed", due: true},
		{file: "helper/helper.go", text: "func init() {}\n", due: true},
		{file: "other/helper/h.go", text: "func init() {}\n", due: true},
		{file: "page.md", text: "| `p/new.go` | why |\n", due: true},

		{file: "page.md", text: "| `pq/new.go` | why |\n\nMore about p.\n"},
		{file: "p/sub/sub.go", text: "func init() {}\n"},
		{file: "p/sub/sub_test.go", text: "func init() {}\n"},
		{file: "below/b_test.go", text: "func init() {}\n"},
		{file: "elsewhere/other.go", text: "func init() {}\n"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			c.put(t, tt.file, files[tt.file]+tt.text)
			commit(t, c)
			_, err := c.holds(p)
			if tt.due != (err != nil) || tt.due && !strings.Contains(err.Error(), "have changed") {
				t.Errorf("due: %v; want %v", err, tt.due)
			}
			must(t, c, "reset", "-q", "--hard", "HEAD~")
		})
	}
}

// Each fuzz target is in a proof.
func TestEachFuzzTargetIsFuzzedAtLength(t *testing.T) {
	top, err := checkout(".").git("rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	var fuzzed, have []string
	for _, p := range proofs {
		if p.command[0] == "internal/tools/fuzz" {
			fuzzed = append(fuzzed, p.tests...)
		}
	}
	list, err := checkout(top).git("grep", "-lE", `^func Fuzz[A-Z0-9]`, "--", ":(top)*_test.go", ":(top,exclude)internal/tools")
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(list) {
		have = append(have, filepath.ToSlash(filepath.Dir(strings.TrimSpace(file))))
	}
	slices.Sort(fuzzed)
	slices.Sort(have)
	if have = slices.Compact(have); !slices.Equal(fuzzed, have) {
		t.Errorf("the proofs fuzz\n%q\nand targets are in\n%q", fuzzed, have)
	}
}

func TestRecordHoldsForItsCommandOnly(t *testing.T) {
	c := clone(t, "dir/a", "top/f", "file", "named_test.go")
	if err := c.run(t.Context(), t.Output(), []proof{sample}); err != nil {
		t.Fatal(err)
	}
	p := sample
	p.command = []string{"true", "more"}
	if _, err := c.holds(p); err == nil || !strings.Contains(err.Error(), theCommand) {
		t.Errorf("for another command: %v", err)
	}
}

// What list says is what .ci/verify goes by: it runs the proofs that are due and do not take long. It records
// those with a peer in a guest when it has run all tests of their topic.
func TestListSaysWhatIsDue(t *testing.T) {
	top, err := checkout(".").git("rev-parse", "--show-toplevel")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := checkout(top).list(&out); err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(out.String()))
	if len(lines) != len(proofs) {
		t.Fatalf("%d lines for %d proofs:\n%s", len(lines), len(proofs), out.String())
	}
	verify, err := os.ReadFile(filepath.Join(top, ".ci", "verify"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range proofs {
		fields := strings.Fields(lines[i])
		if fields[0] != p.name || (fields[1] == "long") != p.long || fields[2] != "due" && fields[2] != "holds" {
			t.Errorf("%q is not about %s, long: %t", lines[i], p.name, p.long)
		}
		guest := slices.Contains(p.command, "interop")
		if recorded := strings.Contains(string(verify), "prove record "+p.name+";"); recorded != (guest && !p.long) {
			t.Errorf("%s: recorded with its topic: %t", p.name, recorded)
		}
	}
}
