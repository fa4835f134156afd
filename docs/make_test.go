package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// makes returns the targets of the make commands in a text, as people write
// them: in a line of their own, or between backquotes.
func makes(text string) (targets []string) {
	for _, m := range regexp.MustCompile("(?m)(?:^\\$ |`|run: |[0-9] |\\()make ([a-z][a-z-]*(?: [a-z][a-z-]*)*)").FindAllStringSubmatch(text, -1) {
		targets = append(targets, strings.Fields(m[1])...)
	}
	return targets
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each make command that a page shows exists, and the gate runs it; so does the
// workflow.
func TestEveryMakeCommandIsRunByTheGate(t *testing.T) {
	exists, gate := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		exists[m[1]] = true
	}
	for _, target := range makes(read(t, ".ci/run")) {
		gate[target] = true
	}
	// The gate runs the program behind make prove itself, for one proof at a time.
	gate["prove"] = strings.Contains(read(t, ".ci/run"), `"$logs/prove" record "$1"`)
	gate["lint"] = gate["lint-code"] && gate["tidy"]
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"README.md", "CONTRIBUTING.md", ".github/workflows/ci.yml", ".ci/run"}
	for _, page := range pages {
		files = append(files, "docs/"+page)
	}
	shown := 0
	for _, file := range files {
		for _, target := range makes(read(t, file)) {
			shown++
			if !exists[target] {
				t.Errorf("%s: there is no target %s", file, target)
			}
			if !gate[target] {
				t.Errorf("%s: .ci/run does not run make %s", file, target)
			}
		}
	}
	if shown < 25 {
		t.Errorf("found %d make commands; the pattern misses some", shown)
	}
}
