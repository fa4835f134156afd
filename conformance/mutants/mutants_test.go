package mutants

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urnic/conformance/catalogue"
)

const root = "../.."

func TestNamesOfMutantsAreUnique(t *testing.T) {
	word := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	faults := map[string]string{}
	for _, m := range All() {
		if !word.MatchString(m.Name) || seen[m.Name] {
			t.Errorf("%q is no name, or the name of two", m.Name)
		}
		seen[m.Name] = true
		if got, ok := Lookup(m.Name); !ok || got.Fault != m.Fault {
			t.Errorf("Lookup(%q) = %q, %t", m.Name, got.Fault, ok)
		}
		if !strings.HasSuffix(m.Fault, ".") || faults[m.Fault] != "" {
			t.Errorf("the fault of %s is no sentence, or that of %q too: %q", m.Name, faults[m.Fault], m.Fault)
		}
		faults[m.Fault] = m.Name
	}
	if _, ok := Lookup("nobody"); ok {
		t.Error("Lookup finds what is not there")
	}
}

func TestMutantsBreakClausesThatCanBeTested(t *testing.T) {
	for _, m := range All() {
		if len(m.Clauses) == 0 {
			t.Errorf("%s breaks nothing", m.Name)
		}
		for i, id := range m.Clauses {
			c, ok := catalogue.Lookup(id)
			switch {
			case !ok:
				t.Errorf("%s breaks %s, which is not in the catalogue", m.Name, id)
			case c.Untestable != "":
				t.Errorf("%s breaks %s, which nobody can test: %s", m.Name, id, c.Untestable)
			case slices.Index(m.Clauses, id) != i:
				t.Errorf("%s names %s twice", m.Name, id)
			}
		}
	}
}

// A mutant that names the case which has to find it, or a build, does so rightly.
func TestMutantsNameCasesOfTheirClauses(t *testing.T) {
	for _, m := range All() {
		if m.Case == "" {
			continue
		}
		if clause, _, ok := strings.Cut(m.Case, "/"); !ok || !slices.Contains(m.Clauses, clause) {
			t.Errorf("%s is to be found by %s, which none of its clauses names", m.Name, m.Case)
		}
	}
}

func TestEditsApplyOnceAndLeaveSourceFormatted(t *testing.T) {
	seen := map[string]string{}
	layer := regexp.MustCompile(`^(mpa|ddp|rdmap|stag|pd|rnic|rnic/internal/life|ulp/rpcrdma|ulp/oncrpc)/[a-z_]+\.go$`)
	for _, m := range All() {
		files, err := m.Apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		var all bytes.Buffer
		for _, e := range m.Edits {
			if !layer.MatchString(e.File) || strings.HasSuffix(e.File, "_test.go") {
				t.Errorf("%s edits %s, which is no source of the stack", m.Name, e.File)
			}
			all.WriteString(e.File + "\x00" + e.Old + "\x00" + e.New + "\x00")
		}
		if other := seen[all.String()]; other != "" {
			t.Errorf("%s and %s are the same", m.Name, other)
		}
		seen[all.String()] = m.Name
		for name, b := range files {
			formatted, err := format.Source(b)
			if err != nil {
				t.Errorf("%s: %s after the edit: %v", m.Name, name, err)
				continue
			}
			if !bytes.Equal(formatted, b) {
				t.Errorf("%s: %s is not formatted after the edit: %s", m.Name, name, firstDifference(b, formatted))
			}
			original, err := os.ReadFile(filepath.Join(root, name))
			if err != nil || bytes.Equal(original, b) {
				t.Errorf("%s: %s is unchanged (%v)", m.Name, name, err)
			}
		}
	}
}

func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "\n" + x[i] + "\nshould be\n" + y[i]
		}
	}
	return "its end"
}

func TestEditThatDoesNotFitIsAnError(t *testing.T) {
	file := func(edits ...Edit) error {
		m := Mutant{Name: "m", Edits: edits}
		_, err := m.Apply(root)
		return err
	}
	for name, err := range map[string]error{
		"no such file":  file(Edit{"mpa/nothing.go", "a", "b"}),
		"no such text":  file(Edit{"mpa/crc.go", "a text that is not there", "b"}),
		"text twice":    file(Edit{"mpa/crc.go", "uint32", "b"}),
		"edits overlap": file(Edit{"mpa/crc.go", "const CRCLen = 4", "x"}, Edit{"mpa/crc.go", "CRCLen = 4", "y"}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
