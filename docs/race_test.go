package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variable returns the words of a variable of the Makefile.
func variable(t *testing.T, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` := ((?:.*\\\n)*.*)$`).FindStringSubmatch(read(t, "Makefile"))
	if m == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.Fields(strings.ReplaceAll(m[1], "\\\n", " "))
}

// The packages that make race names are there.
func TestRacedPackagesExist(t *testing.T) {
	for _, pattern := range variable(t, "RACED") {
		dir := filepath.Join("..", strings.TrimSuffix(pattern, "/..."))
		if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 && !strings.HasSuffix(pattern, "/...") {
			t.Errorf("the Makefile names %s, where no package is", pattern)
		} else if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

// The tests that .ci/later and .ci/skips name are there. One that a landing leaves out is in one package: another
// package's test of the same name would be left out without a word.
func TestTestsThatAreLeftOutExist(t *testing.T) {
	type leftOut struct {
		name *regexp.Regexp
		once bool
		in   map[string]bool // packages
	}
	var all []leftOut
	for file, column := range map[string]int{".ci/later": 1, ".ci/skips": 0} {
		for line := range strings.Lines(read(t, file)) {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") {
				continue
			}
			name, _, _ := strings.Cut(words[column], "/")
			if column == 1 {
				name = "^" + strings.Replace(name+"$", "*$", "", 1)
			}
			all = append(all, leftOut{regexp.MustCompile(name), column == 1 && words[0] != "race-all", make(map[string]bool)})
		}
	}
	if len(all) < 40 {
		t.Errorf("%d tests are left out; the pattern misses some", len(all))
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(b, -1) {
			for _, l := range all {
				if l.name.Match(m[1]) {
					l.in[filepath.Dir(path)] = true
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if in := slices.Sorted(maps.Keys(l.in)); len(in) == 0 || l.once && len(in) > 1 {
			t.Errorf("%v is left out, and is in the packages %q", l.name, in)
		}
	}
}
