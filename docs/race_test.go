package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// The packages that make race leaves out start no goroutine, in code or in tests, and most are not linked with any package of the
// module that does.
func TestPackagesWithoutGoroutinesHaveNone(t *testing.T) {
	for _, dir := range variable(t, "CALLERS") {
		if found := concurrent(t, dir, true); found != "" {
			t.Errorf("%s: %s: make race must have the package", dir, found)
		}
	}
	for _, dir := range variable(t, "SEQUENTIAL") {
		out, err := exec.Command("go", "list", "-deps", "-test", "-f", `{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}`, "../"+dir).Output()
		if err != nil {
			t.Fatal(err)
		}
		own, err := filepath.Abs(filepath.Join("..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for linked := range strings.FieldsSeq(string(out)) {
			if found := concurrent(t, linked, linked == own); found != "" {
				t.Errorf("%s is linked with %s, with %s: make race must have the package", dir, linked, found)
			}
		}
	}
	for _, dir := range []string{"benchrx", "picture", "prove", "vetfor"} {
		if found := concurrent(t, "internal/tools/"+dir, true); found != "" {
			t.Errorf("%s: %s: make race must have the package", dir, found)
		}
	}
}

var startsGoroutines = regexp.MustCompile(`(?m)^\s*go (func|[a-z][A-Za-z.]*\()|\.[G]o\(|[A]fterFunc\(|t\.[P]arallel\(|Run[P]arallel`)

// concurrent returns what starts a goroutine in the Go files of a directory.
func concurrent(t *testing.T, dir string, tests bool) string {
	t.Helper()
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") && !tests {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := startsGoroutines.Find(b); found != nil {
			return strings.TrimSpace(string(found)) + " in " + filepath.Base(file)
		}
	}
	return ""
}

// The tests that make race leaves out are there.
func TestTestsThatAreNotRacedExist(t *testing.T) {
	want := make(map[string]bool)
	for _, name := range variable(t, "NOT_RACED") {
		want["func "+name+"("] = true
	}
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for name := range want {
			if strings.Contains(string(b), "\n"+name) {
				delete(want, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		t.Errorf("the Makefile names %s, which is nowhere", name)
	}
}
