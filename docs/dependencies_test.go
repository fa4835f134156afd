package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// direct returns the modules that a go.mod names itself: those that it requires, without
// those that only others need, and those of its tools.
func direct(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var modules, required, tools []string
	block := ""
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == ")":
			block = ""
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		switch {
		case len(words) < 2:
		case words[0] == "tool":
			tools = append(tools, words[1])
		case words[0] == "require":
			required = append(required, words[1])
			if !strings.Contains(line, "// indirect") {
				modules = append(modules, words[1])
			}
		}
	}
	for _, tool := range tools {
		module := ""
		for _, m := range required {
			if strings.HasPrefix(tool+"/", m+"/") && len(m) > len(module) {
				module = m
			}
		}
		if module == "" && !strings.HasPrefix(tool, "urnic/") {
			t.Errorf("%s: no module is required for the tool %s", file, tool)
		}
		if module != "" && !slices.Contains(modules, module) {
			modules = append(modules, module)
		}
	}
	return modules
}

// The table of dependencies has the modules that the project needs, and says of each what
// it is for, why it was chosen, and who maintains it.
func TestDependenciesAreInTheTable(t *testing.T) {
	var want []string
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path != ".." && strings.HasPrefix(d.Name(), ".") || d.Name() == "artifacts") {
			return fs.SkipDir
		}
		if d.Name() == "go.mod" {
			files++
			want = append(want, direct(t, path)...)
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files go.mod, %v", files, err)
	}
	b, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(b), "\n## Dependencies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("there is no section on dependencies")
	}
	var got []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		module := strings.TrimSpace(cells[0])
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		got = append(got, strings.Trim(module, "`"))
		if len(cells) != 4 || slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "" }) {
			t.Errorf("%s has not all of its four cells", module)
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the table has\n%q\nand the files go.mod\n%q", got, want)
	}
}
