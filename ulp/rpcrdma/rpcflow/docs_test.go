package rpcflow

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The page about dissect has a row for each rule, with its clause.
func TestRulesAreInTheDocumentation(t *testing.T) {
	source, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dissect.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rules, rows []string
	for _, m := range regexp.MustCompile(`ID: "(.+?)", Clause: "(.+?)"`).FindAllSubmatch(source, -1) {
		rules = append(rules, string(m[1])+" "+string(m[2]))
	}
	rules = append(rules, ruleHeaderID+" the broken clause")
	for _, m := range regexp.MustCompile("(?m)^\\| `(rpc-.+?)` \\| (.+?) \\|").FindAllSubmatch(page, -1) {
		rows = append(rows, string(m[1])+" "+string(m[2]))
	}
	slices.Sort(rules)
	slices.Sort(rows)
	if !slices.Equal(rules, rows) || len(rules) < 10 {
		t.Errorf("rules\n%q\nrows\n%q", rules, rows)
	}
}
