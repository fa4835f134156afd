package cases

import (
	"testing"

	"urnic/conformance/catalogue"
)

// Each case is named by a clause that is in the catalogue and can be tested, once.
func TestCasesAreNamedByTestableClauses(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range All() {
		for _, c := range g.Cases {
			if seen[c.ID()] {
				t.Errorf("there are two cases %s", c.ID())
			}
			seen[c.ID()] = true
			if c.Name == "" || c.Title == "" || c.Run == nil {
				t.Errorf("%s lacks a name, a title or what to run", c.ID())
			}
			for _, id := range c.Clauses() {
				clause, ok := catalogue.Lookup(id)
				if !ok {
					t.Errorf("%s tests %s, which is not in the catalogue", c.ID(), id)
				} else if clause.Untestable != "" {
					t.Errorf("%s tests %s, which the catalogue takes for untestable: %s", c.ID(), id, clause.Untestable)
				}
			}
		}
	}
}
