package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each rule of Rx names a test, which TestEveryTestNamedExists looks up, and the file
// that carries it out.
func TestEveryRuleOfRxNamesATest(t *testing.T) {
	text, err := os.ReadFile("rx-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`^[a-z]+-\d+$`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(line, "|") || cells[0] == "ID" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		if len(cells) != 5 || !id.MatchString(cells[0]) || seen[cells[0]] {
			t.Errorf("no row, or one that stands there twice: %s", line)
			continue
		}
		seen[cells[0]] = true
		if strings.HasPrefix(cells[4], "not ours: ") {
			continue
		}
		if !named.MatchString(cells[4]) {
			t.Errorf("%s names no test: %s", cells[0], cells[4])
		}
		if _, err := os.Stat(filepath.Join("..", strings.Trim(cells[3], "`"))); err != nil {
			t.Errorf("%s: %v", cells[0], err)
		}
	}
	if len(seen) < 75 {
		t.Errorf("there are %d rules", len(seen))
	}
}
