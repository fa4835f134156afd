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
	for _, m := range regexp.MustCompile("(?m)(?:^\\$ |`|run: |[0-9] |gate [a-z]+ |&& |\\{ |\\()make ([a-z][a-z-]*(?: [a-z][a-z-]*)*)").FindAllStringSubmatch(text, -1) {
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

// Each make command that a page shows exists, and the landing gate or make verify runs it, as do the workflows.
func TestEveryMakeCommandIsRun(t *testing.T) {
	exists, run := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		exists[m[1]] = true
	}
	for _, target := range makes(read(t, ".ci/run") + read(t, ".ci/verify")) {
		run[target] = true
	}
	// What is run in another way, what writes pages, and what somebody starts who looks for something.
	for target := range strings.FieldsSeq("verify prove bench-peers bench-rx stress") {
		run[target] = true
	}
	for _, m := range regexp.MustCompile(`"make", "([a-z-]+)"`).FindAllStringSubmatch(read(t, "internal/tools/prove/proofs.go"), -1) {
		run[m[1]] = true
	}
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"README.md", "CONTRIBUTING.md", ".github/workflows/ci.yml", ".github/workflows/verify.yml", ".ci/run", ".ci/verify"}
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
			if !run[target] {
				t.Errorf("%s: neither .ci/run nor .ci/verify runs make %s", file, target)
			}
		}
	}
	if shown < 25 {
		t.Errorf("found %d make commands; the pattern misses some", shown)
	}
}
