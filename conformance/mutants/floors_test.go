package mutants

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/conformance/catalogue"
)

// familyFloors is how many mutants each family has at least: as many as it had when the
// number was last changed. To remove a mutant takes a change of its number as well.
var familyFloors = map[string]int{
	"framing": 17, "markers": 15, "start-up": 26, "operation": 31,
	"ddp-source": 18, "ddp-sink": 24, "placement": 15, "wrap": 10,
	"rdmap-messages": 31, "rdmap-errors": 18, "completion": 10, "connect": 39,
	"extensions": 20, "atomicity": 6, "security": 13, "windows": 21, "revocation": 4, "losses": 4, "later": 37, "later-effects": 17,
	"rpc-headers": 21, "rpc-responder": 21, "rpc-requester": 14,
}

// linesPerMutant is for how many lines of a package there is a mutant at least. Codecs and
// checks have most; much of package rnic and of the ULPs is local and breaks no clause.
var linesPerMutant = map[string]int{
	"mpa": 30, "ddp": 25, "rdmap": 30, "stag": 40, "rnic": 400, "ulp/rpcrdma": 90,
}

// sectionFloors are the sections of the catalogue whose floor is not the ordinary one.
var sectionFloors = map[string]struct {
	floor int
	why   string
}{
	"rfc5041-3":     {1, "what DDP wants of its LLP: MPA's own clauses say it again, and their mutants break it"},
	"rfc5041-6.2.2": {1, "what a fatal error makes of requests: RDMAP's clauses say it again"},
	"rfc8166-6.1":   {0, "what a version keeps compatible: there is only one"},
}

// section returns the part of a clause's ID that names its section: rfc5041-7.1.
func section(id string) string { return id[:strings.LastIndex(id, "-")] }

// shortfalls tells where families have too few mutants: in a family, of a package, or of a
// section of an RFC. A section has one at least for every three of its clauses that can be
// tested, as the clauses of a section overlap.
func shortfalls(families []Family, lines map[string]int) []string {
	var out []string
	short := func(what string, has, want int) {
		if has < want {
			out = append(out, fmt.Sprintf("%s: %d mutants, want %d at least", what, has, want))
		}
	}
	inFamily, inPackage, inSection := map[string]int{}, map[string]int{}, map[string]int{}
	for _, f := range families {
		inFamily[f.Name] = len(f.Mutants)
		if _, ok := familyFloors[f.Name]; !ok {
			out = append(out, fmt.Sprintf("family %s has no floor: set it to %d", f.Name, len(f.Mutants)))
		}
		for _, m := range f.Mutants {
			packages, sections := map[string]bool{}, map[string]bool{}
			for _, e := range m.Edits {
				packages[path.Dir(e.File)] = true
			}
			for _, id := range m.Clauses {
				sections[section(id)] = true
			}
			for p := range packages {
				inPackage[p]++
			}
			for s := range sections {
				inSection[s]++
			}
		}
	}
	for name, floor := range familyFloors {
		short("family "+name, inFamily[name], floor)
	}
	for name, n := range linesPerMutant {
		short("package "+name, inPackage[name], lines[name]/n)
	}
	testable := map[string]int{}
	for _, c := range catalogue.All() {
		if c.Untestable == "" {
			testable[section(c.ID)]++
		}
	}
	for s, n := range testable {
		floor := n / 3
		if other, ok := sectionFloors[s]; ok {
			floor = other.floor
		}
		short("section "+s, inSection[s], floor)
	}
	slices.Sort(out)
	return out
}

// linesOf counts the lines of the packages that mutants edit, tests aside.
func linesOf(t *testing.T) map[string]int {
	t.Helper()
	lines := map[string]int{}
	for name := range linesPerMutant {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines[name] += bytes.Count(b, []byte("\n"))
		}
		if lines[name] == 0 {
			t.Errorf("%s has no lines", name)
		}
	}
	return lines
}

func TestThereAreMutantsOfEveryRFC(t *testing.T) {
	for _, s := range shortfalls(Families(), linesOf(t)) {
		t.Error(s)
	}
	for s, f := range sectionFloors {
		if f.why == "" {
			t.Errorf("nobody says why %s has another floor", s)
		}
	}
}

// The floors notice the loss of one mutant in three, of any family, and of all mutants of
// any package or of any larger section.
func TestFloorsNoticeWhatIsLost(t *testing.T) {
	lines := linesOf(t)
	without := func(lost func(i int, family string, m Mutant) bool) []string {
		var left []Family
		i := 0
		for _, f := range Families() {
			f.Mutants = slices.DeleteFunc(slices.Clone(f.Mutants), func(m Mutant) bool {
				i++
				return lost(i, f.Name, m)
			})
			left = append(left, f)
		}
		return shortfalls(left, lines)
	}
	wants := func(what, shortfall string, got []string) {
		t.Helper()
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, shortfall+": ") }) {
			t.Errorf("without %s, the floors say %q, and nothing of %s", what, got, shortfall)
		}
	}
	third := without(func(i int, _ string, _ Mutant) bool { return i%3 == 0 })
	for name := range familyFloors {
		wants("one mutant in three", "family "+name, third)
		wants("family "+name, "family "+name, without(func(_ int, family string, _ Mutant) bool { return family == name }))
	}
	for name := range linesPerMutant {
		wants("mutants of "+name, "package "+name, without(func(_ int, _ string, m Mutant) bool {
			return slices.ContainsFunc(m.Edits, func(e Edit) bool { return path.Dir(e.File) == name })
		}))
	}
	testable := map[string]int{}
	for _, c := range catalogue.All() {
		if _, other := sectionFloors[section(c.ID)]; c.Untestable == "" && !other {
			testable[section(c.ID)]++
		}
	}
	for s := range maps.Keys(testable) {
		if testable[s] < 3 {
			continue
		}
		wants("mutants of "+s, "section "+s, without(func(_ int, _ string, m Mutant) bool {
			return slices.ContainsFunc(m.Clauses, func(id string) bool { return section(id) == s })
		}))
	}
}

// Half of the mutants of package mpa at least are of full operation, and not of start-up.
func TestMutantsOfMPAAreOfFullOperationToo(t *testing.T) {
	startups := []string{"negotiate.go", "startup.go", "frame.go", "enhanced.go", "config.go"}
	startup, all := 0, 0
	for _, m := range All() {
		is := func(e Edit) bool { return path.Dir(e.File) == "mpa" }
		if !slices.ContainsFunc(m.Edits, is) {
			continue
		}
		all++
		if slices.ContainsFunc(m.Edits, func(e Edit) bool { return is(e) && slices.Contains(startups, path.Base(e.File)) }) {
			startup++
		}
	}
	if 2*startup > all {
		t.Errorf("%d of the %d mutants of mpa are of start-up", startup, all)
	}
}
