package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// Each mutant has a name and a fault of its own, and is the machine as it is now with a change.
func TestMutantsAreOfTheMachine(t *testing.T) {
	word := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, m := range mutants {
		if !word.MatchString(m.name) || seen[m.name] || seen[m.fault] || !strings.HasSuffix(m.fault, ".") {
			t.Errorf("%q: %q is not a name and a fault, or they are those of another one", m.name, m.fault)
		}
		seen[m.name], seen[m.fault] = true, true
		text, err := m.apply("..")
		if err != nil {
			t.Error(err)
			continue
		}
		if m.old == m.new {
			t.Errorf("%s changes nothing", m.name)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, 0); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if len(mutants) < 40 {
		t.Errorf("there are %d mutants", len(mutants))
	}
}
