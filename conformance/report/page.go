package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"urnic/conformance"
	"urnic/conformance/catalogue"
	"urnic/internal/page"
)

// A pageOf is what the template shows. Its texts are clean.
type pageOf struct {
	Tool, Target, Profile string
	LLP                   string
	Outcome, Headline     string // the verdict on the run, and why
	Passed                bool
	Strict                bool
	Began, BeganISO, Took string

	Totals       conformance.Totals
	Verdicts     []*pageGroup // all four
	Groups       []*pageGroup // those with cases
	RFCs         []string
	Roles        []string
	Levels       []string
	Coverage     []pageCoverage
	CoverageLead string
	Clauses      []*pageRFC

	exchanges int // bytes of those that are not compressed, so far
	parts     page.Parts
}

// foldedCases is how many cases a part has, each of some 1,100 bytes.
const foldedCases = 512

// A pageGroup holds the cases with one verdict.
type pageGroup struct {
	Name  string // fail
	Word  string // Failed
	Count int
	Cases []*pageCase
	Parts []string // hold the cases, in place of Cases
}

type pageCase struct {
	ID, Href                  string
	Case, Role, Group, Title  string
	RFC, Cite, Level, Clause  string
	ClauseHref                string
	Also                      []pageLink
	Verdict                   string
	Reason, Sent              string
	Expected, Got, Took, Pcap string
	Exchange                  template.HTML
	Part                      string // holds the exchange, at Index
	Index                     int
}

type pageLink struct{ Href, Text, Verdict string }

// A pageCoverage is the rows of one RFC: MUST and SHOULD.
type pageCoverage struct{ Rows []pageClauses }

type pageClauses struct {
	RFC, Level  string
	All, NotRun int
	conformance.Clauses
	Segments []pageSegment
}

// A pageSegment is a part of a bar, in percent.
type pageSegment struct{ Class, From, Width string }

// A pageRFC holds the clauses of an RFC.
type pageRFC struct {
	ID, RFC, Line string
	Part          string // holds the clauses, at Index
	Index         int
}

type pageClause struct {
	ID, Name, Level, Summary string
	State, Word, Why         string
	Cases                    []pageLink
}

// results sets the cases, those that failed first.
func (p *pageOf) results(r *conformance.Report) {
	for _, g := range []struct {
		verdict conformance.Verdict
		word    string
	}{
		{conformance.Fail, "Failed"},
		{conformance.Inconclusive, "Inconclusive"},
		{conformance.Pass, "Passed"},
		{conformance.Skipped, "Skipped"},
	} {
		group := &pageGroup{Name: g.verdict.String(), Word: g.word}
		for i := range r.Results {
			if r.Results[i].Verdict == g.verdict {
				group.Cases = append(group.Cases, p.pageCase(&r.Results[i]))
			}
		}
		group.Count = len(group.Cases)
		if g.verdict == conformance.Pass || g.verdict == conformance.Skipped {
			p.fold(group)
		}
		p.Verdicts = append(p.Verdicts, group)
		if group.Count > 0 {
			p.Groups = append(p.Groups, group)
		}
	}
	add := func(list *[]string, s string) {
		if s != "" && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	for i := range r.Results {
		c := &r.Results[i]
		add(&p.RFCs, rfcOf(c))
		add(&p.Roles, line(c.Role))
		add(&p.Levels, line(c.Level))
	}
	slices.Sort(p.RFCs)
	slices.Sort(p.Levels)
}

// fold puts the cases of a group into parts of the page.
func (p *pageOf) fold(g *pageGroup) {
	for i := 0; i < len(g.Cases); i += foldedCases {
		var b strings.Builder
		for _, c := range g.Cases[i:min(i+foldedCases, len(g.Cases))] {
			b.WriteString(string(execute("case", c)))
		}
		name := fmt.Sprintf("%s-%d", g.Name, i/foldedCases)
		_ = p.parts.Add(name, b.String()) // a string has a JSON form
		g.Parts = append(g.Parts, name)
	}
	g.Cases = nil
}

// place names a result's place in the page.
func place(r *conformance.Result) string {
	return strings.ReplaceAll(line(r.Case)+"@"+line(r.Role), " ", "_")
}

func clausePlace(id string) string { return "clause-" + strings.ReplaceAll(line(id), " ", "_") }

func (p *pageOf) pageCase(r *conformance.Result) *pageCase {
	c := &pageCase{
		ID: place(r), Href: "#" + place(r),
		Case: line(r.Case), Role: line(r.Role), Group: line(r.Group), Title: line(r.Title),
		RFC: rfcOf(r), Cite: line(r.Cite), Level: line(r.Level), Clause: line(r.Clause), ClauseHref: "#clauses",
		Verdict: r.Verdict.String(), Reason: lines(r.Reason), Sent: lines(r.Sent), Expected: lines(r.Expected), Got: lines(r.Got),
		Took: seconds(r.Duration), Pcap: line(r.Pcap),
	}
	for i, id := range r.Clauses {
		if i == 0 {
			c.ClauseHref = "#" + clausePlace(id)
			continue
		}
		c.Also = append(c.Also, pageLink{Href: "#" + clausePlace(id), Text: line(id)})
	}
	p.exchange(c, r)
	return c
}

func (p *pageOf) coverage(r *conformance.Report) {
	for _, c := range r.Coverage {
		p.Coverage = append(p.Coverage, pageCoverage{[]pageClauses{
			clausesRow(line(c.RFC), "MUST", c.Binding), clausesRow(line(c.RFC), "SHOULD", c.Advised),
		}})
	}
	p.CoverageLead = exercised(r)
}

func clausesRow(rfc, level string, c conformance.Clauses) pageClauses {
	row := pageClauses{RFC: rfc, Level: level, Clauses: c, All: c.Tested + c.Untestable + c.Open, NotRun: c.Tested - c.Run}
	from := 0
	for _, s := range []struct {
		class string
		n     int
	}{{"kept", c.Kept}, {"broken", c.Broken}, {"unknown", c.Unknown}, {"notrun", row.NotRun}, {"untestable", c.Untestable}, {"open", c.Open}} {
		if s.n > 0 && row.All > 0 {
			percent := func(n int) string { return fmt.Sprintf("%.2f", 100*float64(n)/float64(row.All)) }
			row.Segments = append(row.Segments, pageSegment{s.class, percent(from), percent(s.n)})
			from += s.n
		}
	}
	return row
}

// clauses sets the catalogue, with the cases of each clause.
func (p *pageOf) clauses(r *conformance.Report) {
	cases := map[string][]pageLink{}
	for i := range r.Results {
		c := &r.Results[i]
		for _, id := range c.Clauses {
			cases[id] = append(cases[id], pageLink{Href: "#" + place(c), Text: heading(c), Verdict: c.Verdict.String()})
		}
	}
	found := map[string]conformance.ClauseState{}
	for _, c := range r.Clauses {
		found[c.Clause] = c
	}
	var current *pageRFC
	var rows []pageClause
	states := map[conformance.State]int{}
	summary := func() {
		if current == nil {
			return
		}
		var parts []string
		for _, s := range clauseStates {
			if n := states[s]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, clauseWord(s)))
			}
		}
		current.Line = count(len(rows), "clause") + ": " + strings.Join(parts, ", ")
		current.Part, current.Index = p.parts.Batch(string(execute("clauses", struct {
			RFC  string
			Rows []pageClause
		}{current.RFC, rows})))
		rows = nil
	}
	for _, c := range catalogue.All() {
		if current == nil || current.RFC != c.RFC() {
			summary()
			clear(states)
			current = &pageRFC{ID: strings.ToLower(strings.ReplaceAll(c.RFC(), " ", "")), RFC: c.RFC()}
			p.Clauses = append(p.Clauses, current)
		}
		s := found[c.ID]
		if !slices.Contains(clauseStates, s.State) {
			s.State = conformance.Open
		}
		states[s.State]++
		rows = append(rows, pageClause{
			ID: clausePlace(c.ID), Name: c.ID, Level: c.Level.String(), Summary: c.Summary, Cases: cases[c.ID],
			State: strings.ReplaceAll(string(s.State), " ", "-"), Word: clauseWord(s.State), Why: line(s.Reason),
		})
	}
	summary()
}

// clauseStates is the order in which the page counts clauses.
var clauseStates = []conformance.State{
	conformance.Broken, conformance.Unknown, conformance.Kept, conformance.NotTried, conformance.OtherProfile,
	conformance.OtherLLP, conformance.NotSelected, conformance.Untestable, conformance.Open,
}

// clauseWord is what the page calls a state.
func clauseWord(s conformance.State) string {
	if s == conformance.Open {
		return "without a case"
	}
	return string(s)
}
