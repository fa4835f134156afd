package catalogue

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// rfcs are the RFCs of the catalogue, in the order of All.
var rfcs = []struct {
	name    string
	clauses []Clause
}{
	{"RFC 5044", rfc5044},
	{"RFC 5041", rfc5041},
	{"RFC 5040", rfc5040},
	{"RFC 6581", rfc6581},
	{"RFC 7306", rfc7306},
	{"RFC 5042", rfc5042},
	{"RFC 8166", rfc8166},
	{"RFC 8797", rfc8797},
	{"RFC 8167", rfc8167},
}

// ofEach runs a test over the clauses of each RFC.
func ofEach(t *testing.T, test func(t *testing.T, clauses []Clause)) {
	for _, rfc := range rfcs {
		t.Run(rfc.name, func(t *testing.T) {
			if len(rfc.clauses) == 0 {
				t.Fatal("the RFC has no clauses")
			}
			test(t, rfc.clauses)
		})
	}
}

// idForm is the form of an ID: RFC, section (that of an appendix begins with a
// letter) and ordinal.
var idForm = regexp.MustCompile(`^rfc([0-9]{4})-(([1-9][0-9]*|[A-Z])(\.[1-9][0-9]*)*)-([1-9][0-9]*)$`)

// compareSections orders sections as their RFC does: 4.2 before 4.10, and the
// appendices last.
func compareSections(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		i, errA := strconv.Atoi(a)
		j, errB := strconv.Atoi(b)
		switch {
		case errA == nil && errB == nil:
			return cmp.Compare(i, j)
		case errA == nil:
			return -1
		case errB == nil:
			return 1
		}
		return cmp.Compare(a, b)
	})
}

func TestSectionsAreOrderedAsInTheirRFC(t *testing.T) {
	sections := []string{"1.2", "3", "4.1", "4.2", "4.10", "6.2", "6.2.1", "6.3", "10", "A", "A.1", "B"}
	for i, a := range sections {
		for j, b := range sections {
			if got, want := compareSections(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("%s against %s: %d; want %d", a, b, got, want)
			}
		}
	}
}

func TestIDsAreWellFormedAndUnique(t *testing.T) {
	seen := map[string]bool{} // of all RFCs
	ofEach(t, func(t *testing.T, clauses []Clause) {
		for _, c := range clauses {
			m := idForm.FindStringSubmatch(c.ID)
			if m == nil {
				t.Errorf("%q is no ID", c.ID)
				continue
			}
			if seen[c.ID] {
				t.Errorf("%s stands there twice", c.ID)
			}
			seen[c.ID] = true
			if rfc := "RFC " + m[1]; !strings.HasSuffix(t.Name(), strings.ReplaceAll(rfc, " ", "_")) {
				t.Errorf("%s is among the clauses of another RFC", c.ID)
			}
			if got, want := c.RFC(), "RFC "+m[1]; got != want {
				t.Errorf("RFC of %s: %q; want %q", c.ID, got, want)
			}
			if got, want := c.Section(), m[2]; got != want {
				t.Errorf("section of %s: %q; want %q", c.ID, got, want)
			}
			if got, want := c.Cite(), fmt.Sprintf("RFC %s §%s", m[1], m[2]); got != want {
				t.Errorf("%s cites %q; want %q", c.ID, got, want)
			}
		}
	})
}

func TestClausesStandInTheOrderOfSectionsAndCountFromOne(t *testing.T) {
	ofEach(t, func(t *testing.T, clauses []Clause) {
		section, ordinal := "", 0
		for _, c := range clauses {
			m := idForm.FindStringSubmatch(c.ID)
			if m == nil {
				continue // another test tells
			}
			if m[2] != section {
				if section != "" && compareSections(section, m[2]) > 0 {
					t.Errorf("%s stands behind §%s", c.ID, section)
				}
				section, ordinal = m[2], 0
			}
			ordinal++
			if m[5] != strconv.Itoa(ordinal) {
				t.Errorf("%s is clause %d of its section", c.ID, ordinal)
				ordinal, _ = strconv.Atoi(m[5]) // each gap is told once
			}
		}
	})
}

func TestEveryClauseHasALevelAndAParty(t *testing.T) {
	const everybody = Initiator | Responder | Source | Sink | Local | Requester
	ofEach(t, func(t *testing.T, clauses []Clause) {
		for _, c := range clauses {
			if c.Level < Must || c.Level > ShouldNot {
				t.Errorf("%s has level %d", c.ID, c.Level)
			}
			if c.Who == 0 || c.Who&^everybody != 0 {
				t.Errorf("%s binds party %#b", c.ID, c.Who)
			}
		}
	})
}

// maxSummary is how many characters a summary can have to fit a line of a report.
const maxSummary = 140

func TestTextsAreOneLineWithoutAFullStop(t *testing.T) {
	ofEach(t, func(t *testing.T, clauses []Clause) {
		for _, c := range clauses {
			if c.Summary == "" {
				t.Errorf("%s has no summary", c.ID)
			}
			if n := utf8.RuneCountInString(c.Summary); n > maxSummary {
				t.Errorf("%s: a summary of %d characters; at most %d", c.ID, n, maxSummary)
			}
			for _, text := range []string{c.Summary, c.Untestable} {
				switch {
				case strings.HasSuffix(text, "."):
					t.Errorf("%s: %q ends with a full stop", c.ID, text)
				case strings.ContainsAny(text, "\n\r\t|"):
					t.Errorf("%s: %q is no text for a cell of a table", c.ID, text)
				case strings.TrimSpace(text) != text:
					t.Errorf("%s: %q has space around it", c.ID, text)
				}
			}
		}
	})
}

// A summary tells what is demanded, so that two clauses of a section with the
// same words are one clause.
func TestClausesOfASectionDemandDifferentThings(t *testing.T) {
	ofEach(t, func(t *testing.T, clauses []Clause) {
		by := map[string]string{}
		for _, c := range clauses {
			key := c.Section() + " " + c.Summary
			if other, ok := by[key]; ok {
				t.Errorf("%s demands what %s does: %s", c.ID, other, c.Summary)
			}
			by[key] = c.ID
		}
	})
}

func TestAllHasTheClausesOfEveryRFC(t *testing.T) {
	all := All()
	for _, rfc := range rfcs {
		n := len(rfc.clauses)
		if len(all) < n || !slices.Equal(all[:n], rfc.clauses) {
			t.Fatalf("All does not go on with the clauses of %s", rfc.name)
		}
		all = all[n:]
	}
	if len(all) != 0 {
		t.Errorf("All has %d clauses more, from %s on", len(all), all[0].ID)
	}
}

func TestLookupFindsEveryClauseAndNoOther(t *testing.T) {
	for _, c := range All() {
		if got, ok := Lookup(c.ID); !ok || got != c {
			t.Errorf("Lookup(%q) = %v, %v", c.ID, got, ok)
		}
	}
	for _, id := range []string{"", "rfc5041", "rfc5041-7.1", "rfc5041-7.1-0", "5041-7.1-3"} {
		if c, ok := Lookup(id); ok {
			t.Errorf("Lookup(%q) found %v", id, c)
		}
	}
}

func TestLevelsAndPartiesHaveTheNamesOfTheRFCs(t *testing.T) {
	for level, want := range map[Level]struct {
		name    string
		binding bool
	}{
		0:         {"no level", false},
		Must:      {"MUST", true},
		MustNot:   {"MUST NOT", true},
		Should:    {"SHOULD", false},
		ShouldNot: {"SHOULD NOT", false},
	} {
		if got := level.String(); got != want.name {
			t.Errorf("level %d is %q; want %q", level, got, want.name)
		}
		if got := level.Binding(); got != want.binding {
			t.Errorf("%s is binding: %v; want %v", level, got, want.binding)
		}
	}
	for party, want := range map[Party]string{
		0:                         "",
		Initiator | Responder:     "initiator, responder",
		Source | Sink:             "data source, data sink",
		Local:                     "local interface",
		Sink | Local | Initiator:  "initiator, data sink, local interface",
		Requester | Responder:     "responder, requester",
		Responder | Source | 1<<7: "responder, data source",
	} {
		if got := party.String(); got != want {
			t.Errorf("party %#b is %q; want %q", party, got, want)
		}
	}
}
