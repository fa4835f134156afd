package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each rule of RDP names a test, which TestEveryTestNamedExists looks up, and the file that carries it
// out. All rules are there: a letter, and numbers from one to another.
func TestEveryRuleOfRDPNamesATest(t *testing.T) {
	text, err := os.ReadFile("rdp-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(line, "|") || cells[0] == "ID" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		if len(cells) != 5 || seen[cells[0]] || cells[1] == "" || cells[2] == "" {
			t.Errorf("no row, or one that stands there twice: %s", line)
			continue
		}
		seen[cells[0]] = true
		if !named.MatchString(cells[4]) {
			t.Errorf("%s names no test: %s", cells[0], cells[4])
		}
		if _, err := os.Stat(filepath.Join("..", strings.Trim(cells[3], "`"))); err != nil {
			t.Errorf("%s: %v", cells[0], err)
		}
	}
	rules := 0
	for _, g := range []struct {
		letter   string
		from, to int
	}{{"H", 1, 6}, {"U", 1, 16}, {"C", 1, 3}, {"W", 1, 2}, {"L", 1, 4}, {"S", 1, 6}, {"R", 0, 8}, {"O", 1, 10}, {"T", 1, 3}, {"A", 1, 48}, {"I", 1, 21}} {
		for i := g.from; i <= g.to; i++ {
			rules++
			if id := fmt.Sprintf("%s%d", g.letter, i); !seen[id] {
				t.Errorf("%s has no row", id)
			}
		}
	}
	if len(seen) != rules {
		t.Errorf("there are %d rows for %d rules", len(seen), rules)
	}
}
