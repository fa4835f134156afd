package machine

import (
	"os"
	"regexp"
	"testing"
)

// docs/rdp-rules.md names the rows of TestArrivals, all of them, and no others.
func TestTableOfRulesNamesTheArrivals(t *testing.T) {
	text, err := os.ReadFile("../../../docs/rdp-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`TestArrivals/([A-Z][0-9]+)`).FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	there := map[string]bool{}
	for _, a := range arrivals {
		if there[a.rule] = true; !named[a.rule] {
			t.Errorf("the page does not name TestArrivals/%s", a.rule)
		}
	}
	for rule := range named {
		if !there[rule] {
			t.Errorf("there is no TestArrivals/%s", rule)
		}
	}
}
