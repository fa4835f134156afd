package mutants

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Mutant is a package with one fault in it: a text of a file is replaced by another.
type Mutant struct {
	Name     string
	Fault    string // what the package does wrong
	File     string
	Old, New string
}

// A Stage is a part of the tests.
type Stage struct {
	Name string
	Args []string // of the tests' binary
}

// A Suite is the mutants of a package.
type Suite struct {
	Package string  // directory of the package, from that of the module
	Stages  []Stage // those that take longest last
	Mutants []Mutant
}

// apply returns the file's text with the fault in it. The old text must stand there once.
func (m *Mutant) apply(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, m.File))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return "", fmt.Errorf("%s: what is to be replaced stands in %s %d times", m.Name, m.File, n)
	}
	return strings.Replace(string(text), m.Old, m.New, 1), nil
}

var word = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check verifies that each mutant has a name and a fault of its own, and is the package in dir
// with a change.
func (s *Suite) Check(dir string) error {
	var errs []error
	seen := map[string]bool{}
	for _, m := range s.Mutants {
		if !word.MatchString(m.Name) || seen[m.Name] || seen[m.Fault] || !strings.HasSuffix(m.Fault, ".") {
			errs = append(errs, fmt.Errorf("%q: %q is not a name and a fault, or they are those of another one", m.Name, m.Fault))
		}
		seen[m.Name], seen[m.Fault] = true, true
		text, err := m.apply(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if m.Old == m.New {
			errs = append(errs, fmt.Errorf("%s changes nothing", m.Name))
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.File, text, 0); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Name, err))
		}
	}
	return errors.Join(errs...)
}
