package report

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urnic/conformance"
	"urnic/conformance/catalogue"
	"urnic/internal/page/pagetest"
)

func asHTML(t *testing.T, r *conformance.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// whole is the page with what is compressed put in.
func whole(t *testing.T, r *conformance.Report) string {
	t.Helper()
	return pagetest.Whole(t, asHTML(t, r))
}

// What comes from a target is text in the page, whichever field it is in.
func TestPageEscapesEverything(t *testing.T) {
	r := sample(t)
	r.Tool, r.Target, r.Profile = hostile, hostile, hostile
	for i := range r.Coverage {
		r.Coverage[i].RFC = hostile
	}
	for i := range r.Results {
		c := &r.Results[i]
		c.Case += hostile
		c.Role, c.Group, c.Title, c.Level, c.Cite, c.Clause = hostile, hostile, hostile, hostile, hostile, hostile
		c.Clauses = []string{hostile, hostile}
		c.Reason, c.Sent, c.Expected, c.Got, c.Pcap = hostile, hostile, hostile, hostile, hostile
		for j := range c.Exchange {
			e := &c.Exchange[j]
			e.What, e.Wrong, e.Fields = hostile, hostile, []string{hostile}
		}
	}
	out := whole(t, r)
	for _, bad := range []string{"<script>alert", "<b>&amp;", "\x1b", "\x00", "\xff", "\u202e", "ZgotmplZ"} {
		if strings.Contains(out, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if n := strings.Count(out, "</script>"); n != 1 {
		t.Errorf("%d scripts end in the page", n)
	}
}

// The verdict on the run stands in the page before all else, green or red.
func TestPageBeginsWithTheVerdict(t *testing.T) {
	failed := sample(t)
	passed := assemble(slices.DeleteFunc(slices.Clone(failed.Results), func(r conformance.Result) bool {
		return r.Verdict == conformance.Fail
	}))
	for want, r := range map[string]*conformance.Report{
		`<p class="outcome red"><strong>FAIL</strong> 4 of 13 cases failed</p>`:     failed,
		`<p class="outcome green"><strong>PASS</strong> none of 9 cases failed</p>`: passed,
	} {
		out := whole(t, r)
		if at := strings.Index(out, want); at < 0 || at > strings.Index(out, `<dl class="facts">`) {
			t.Errorf("the verdict %s stands at %d", want, at)
		}
	}
}

// The page refers to nothing but itself.
func TestPageStandsAlone(t *testing.T) {
	out := whole(t, sample(t))
	for _, m := range regexp.MustCompile(`\b(?:src|href|action|srcset|data)="([^"]*)"`).FindAllStringSubmatch(out, -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("the page refers to %s", m[1])
		}
	}
	for _, bad := range []string{"http:", "https:", "@import", "url("} {
		if strings.Contains(out, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// Each place is there once, and each link in the page leads to a place.
func TestPageLinksLeadSomewhere(t *testing.T) {
	out := whole(t, sample(t))
	places := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(out, -1) {
		if places[m[1]] {
			t.Errorf("the place %s is there twice", m[1])
		}
		places[m[1]] = true
	}
	links := regexp.MustCompile(` href="#([^"?]*)[^"]*"`).FindAllStringSubmatch(out, -1)
	for _, m := range links {
		if !places[m[1]] {
			t.Errorf("a link leads to %s, and there is no such place", m[1])
		}
	}
	if !places["rfc5041-7.1-4/end-one-octet-beyond@initiator"] || len(links) < 40 {
		t.Errorf("%d places, %d links", len(places), len(links))
	}
}

// All clauses of the catalogue are in the page, those that can't be tested with
// the reason.
func TestPageListsEveryClause(t *testing.T) {
	out := whole(t, sample(t))
	for _, want := range []string{
		`<td class="other-profile">other profile</td><td><p class="why">its cases are for the profile rpcrdma</p>`,
		`<td class="not-selected">not selected</td>`,
		"This run exercised 99 of 144 clauses that cases test. Of the others: 9 for other profiles, 30 not selected by --only, 6 skipped.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, c := range catalogue.All() {
		if !strings.Contains(out, `<tr id="clause-`+c.ID+`">`) {
			t.Errorf("%s is not in the page", c.ID)
		}
	}
	states := map[string]string{}
	for _, m := range regexp.MustCompile(`<th scope="row">([^<]*)</th><td>[^<]*</td><td>[^<]*</td><td class="([^"]*)">[^<]*</td><td>(<p class="why">)?`).FindAllStringSubmatch(out, -1) {
		name, state, why := m[1], m[2], m[3]
		states[name] = state
		if ran := state == "kept" || state == "broken" || state == "unknown"; ran != (why == "") {
			t.Errorf("%s is %s; the reason is given: %v", name, state, why != "")
		}
	}
	for id, want := range map[string]string{
		"rfc5041-7.1-4":    "broken",
		"rfc5041-7.1-11":   "broken", // tested beside the one before
		"rfc5041-4.1-9":    "kept",
		"rfc5041-5.2-9":    "skipped",
		"rfc5044-7.1.1-15": "unknown",
		"rfc5041-4.3-5":    "untestable",
		"rfc5041-4.2-1":    "not-selected",
		"rfc8166-3.3.1-1":  "other-profile",
	} {
		if states[id] != want {
			t.Errorf("%s is %s; want %s", id, states[id], want)
		}
	}
}

// However much a run has recorded, the page stays small; what failed keeps its
// exchange, and what has lost it says so.
func TestPageIsBounded(t *testing.T) {
	r := many(t, 800)
	for i := range r.Results {
		for range 3 {
			r.Results[i].Exchange = append(r.Results[i].Exchange, r.Results[i].Exchange...)
		}
	}
	out := asHTML(t, r)
	if len(out) > 6<<20 {
		t.Errorf("the page has %d octets", len(out))
	}
	ladders, left := strings.Count(out, `<ol class="ladder"`), strings.Count(out, "The exchange is left out")
	if left == 0 || ladders == 0 {
		t.Fatalf("%d exchanges of failures are in the page, and %d left out", ladders, left)
	}
	if first := strings.Index(out, "The exchange is left out"); strings.Contains(out[first:], `<ol class="ladder"`) {
		t.Error("an exchange is in the page after one that found no room")
	}
	if !strings.Contains(out, "events left out") {
		t.Error("long exchanges are whole")
	}
}

// The page of a large run without failures has at most 1 MB. It begins with the verdict, and has no exchange that is not compressed.
func TestPageOfACleanRunIsSmall(t *testing.T) {
	r := many(t, 4000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range r.Results {
		c := &r.Results[i]
		c.Verdict, c.Reason = conformance.Pass, ""
		for j := range c.Exchange { // as different as those of a real run are
			c.Exchange[j].What += fmt.Sprintf(", STag 0x%08x", random.Uint32())
		}
	}
	r = assemble(r.Results)
	out := asHTML(t, r)
	if len(out) > 1_000_000 {
		t.Errorf("the page has %d octets", len(out))
	}
	if strings.Contains(out, `<ol class="ladder"`) || strings.Contains(out, `<li class="case`) {
		t.Error("a case that passed is not compressed")
	}
	all := pagetest.Whole(t, out)
	ladders, left := strings.Count(all, `<ol class="ladder"`), strings.Count(all, "The exchange is left out")
	if ladders < 1000 || ladders+left != 4000 || strings.Count(all, `<li class="case`) != 4000 {
		t.Errorf("%d exchanges, %d left out", ladders, left)
	}
}

func TestErrorOfTheWriterOfAPageIsReturned(t *testing.T) {
	for _, n := range []int{0, 1, 50, 30_000} {
		if err := HTML(&failingWriter{n}, sample(t)); !errors.Is(err, errFull) {
			t.Errorf("after %d octets: %v", n, err)
		}
	}
	asHTML(t, &conformance.Report{})
}
