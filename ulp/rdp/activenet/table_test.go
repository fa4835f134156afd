//go:build !race

package activenet

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"urnic/ulp/rdp/congestion"
)

// The marks around a table in the page.
const (
	tableBegin = "<!-- by ulp/rdp/activenet.TestExperimentTable -->\n"
	tableEnd   = "<!-- end -->\n"
)

// The table of docs/rdp-congestion.md is that of the code.
func TestExperimentTable(t *testing.T) {
	var list []scenario
	for _, c := range congestion.Names() {
		for _, p := range []string{"end to end", "RED", "report only", "ACC"} {
			if c == congestion.NameNone && p == "RED" {
				continue // it knows no marks
			}
			s := scenario{control: c, program: p, rtt: 100 * ms, burst: 500 * ms}
			list = append(list, s)
			s.mixed = true
			list = append(list, s)
		}
	}
	all := play(t, list)
	var b strings.Builder
	b.WriteString("| control | at the node | goodput, Mb/s | dropped of the flows, % | dropped of the cross traffic, % | queue | timeouts | fairness | fairness, paths of 100 to 380 ms |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := 0; i < len(list); i += 2 {
		o, mixed := all[i], all[i+1]
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %.2f | %.1f | %.0f | %.2f | %.2f |\n", list[i].control, list[i].program, o.goodput, 100*o.loss, 100*o.cross, o.queue, o.timeouts, o.fairness, mixed.fairness)
	}
	page, err := os.ReadFile(docs("rdp-congestion.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegin)
	table, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("docs/rdp-congestion.md has no table between %q and %q", tableBegin, tableEnd)
	}
	if *update {
		table = b.String()
		if err := os.WriteFile(docs("rdp-congestion.md"), []byte(before+tableBegin+table+tableEnd+after), 0o644); err != nil { //nolint:gosec // it is for everybody
			t.Fatal(err)
		}
	}
	if table != b.String() {
		t.Errorf("the table of docs/rdp-congestion.md is not what happens: go test ./ulp/rdp/activenet -update\n%s", b.String())
	}
}
