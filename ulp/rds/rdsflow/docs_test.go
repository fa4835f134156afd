package rdsflow

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page about dissect has a row for each rule, with its clause; and each rule has a fault
// by which it is shown to be found.
func TestRulesAreDocumentedAndPlanted(t *testing.T) {
	source, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dissect.md"))
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	for _, f := range faults {
		for _, w := range f.want {
			id, _, _ := strings.Cut(w, " ")
			planted[id] = true
		}
	}
	var rules, rows []string
	for _, m := range regexp.MustCompile("ID: \"(.+?)\", Clause: [\"`](.+)[\"`]}").FindAllSubmatch(source, -1) {
		rules = append(rules, string(m[1])+" "+string(m[2]))
		if !planted[string(m[1])] {
			t.Errorf("no fault breaks %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(rds-.+?)` \\| (.+?) \\|").FindAllSubmatch(page, -1) {
		rows = append(rows, string(m[1])+" "+string(m[2]))
	}
	slices.Sort(rules)
	slices.Sort(rows)
	if !slices.Equal(rules, rows) || len(rules) < 10 {
		t.Errorf("rules\n%q\nrows\n%q", rules, rows)
	}
}
