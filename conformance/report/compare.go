package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"urnic/conformance"
	"urnic/internal/page"

	_ "embed" // the page's parts
)

// An Endpoint is a column of a comparison: a report, and what the column is called.
type Endpoint struct {
	Name   string
	Report *conformance.Report
}

// A comparison is a matrix: cases by endpoints.
type comparison struct {
	Endpoints []compared
	Differ    []comparedCase // their verdicts are not all the same
	Same      []comparedCase
}

// A compared is the head of a column.
type compared struct {
	Letter, Name, Target, Profile, LLP string
	Outcome, Headline                  string
	Class                              string
	Totals                             conformance.Totals
}

type comparedCase struct {
	Case, Title, Cite, Level string
	Verdicts                 []string // "" if the case is not in the report
	Reasons                  []string
}

// none stands where a report does not have a case.
const none = "–"

func compare(endpoints []Endpoint) *comparison {
	c := &comparison{}
	rows := map[string]*comparedCase{}
	var order []string
	for i, e := range endpoints {
		r := e.Report
		head := compared{
			Letter: string(rune('A' + i)), Name: line(e.Name), Target: line(r.Target), Profile: line(r.Profile), LLP: r.LLP.String(),
			Outcome: strings.ToUpper(string(r.Outcome())), Headline: line(r.Headline()), Class: "fail", Totals: r.Totals,
		}
		if r.Outcome() == conformance.Passed {
			head.Class = "pass"
		}
		c.Endpoints = append(c.Endpoints, head)
		for j := range r.Results {
			result := &r.Results[j]
			key := heading(result)
			row := rows[key]
			if row == nil {
				row = &comparedCase{
					Case: key, Title: line(result.Title), Cite: line(result.Cite), Level: line(result.Level),
					Verdicts: make([]string, len(endpoints)), Reasons: make([]string, len(endpoints)),
				}
				rows[key] = row
				order = append(order, key)
			}
			row.Verdicts[i], row.Reasons[i] = result.Verdict.String(), line(result.Reason)
		}
	}
	for _, key := range order {
		row := rows[key]
		if slices.ContainsFunc(row.Verdicts, func(v string) bool { return v != row.Verdicts[0] }) {
			c.Differ = append(c.Differ, *row)
		} else {
			c.Same = append(c.Same, *row)
		}
	}
	return c
}

// headline sums the comparison up in a sentence.
func (c *comparison) headline() string {
	n := len(c.Differ) + len(c.Same)
	if len(c.Differ) == 0 {
		return fmt.Sprintf("the endpoints have the same verdict in all of %s", count(n, "case"))
	}
	return fmt.Sprintf("the verdicts differ in %d of %s", len(c.Differ), count(n, "case"))
}

// Compare writes what differs between the reports of several endpoints, in 80 columns: the totals of each, and a line for each
// case whose verdicts differ. Its error is that of w.
func Compare(w io.Writer, endpoints []Endpoint) error {
	c := compare(endpoints)
	var b strings.Builder
	b.WriteString(c.headline() + "\n\n")
	fmt.Fprintf(&b, "   %6s %6s %6s %6s  %s\n", "passed", "failed", "incon.", "skip.", "endpoint")
	for _, e := range c.Endpoints {
		label := e.Name
		if e.Target != "" {
			label += ": " + e.Target + ", profile " + e.Profile + ", " + e.LLP
		}
		for i, l := range wrap(label, minWidth-32) {
			if i == 0 {
				fmt.Fprintf(&b, "%s  %6d %6d %6d %6d  %s\n", e.Letter, e.Totals.Pass, e.Totals.Fail, e.Totals.Inconclusive, e.Totals.Skipped, l)
			} else {
				fmt.Fprintf(&b, "%32s%s\n", "", l)
			}
		}
	}
	if len(c.Differ) > 0 {
		c.matrix(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// matrix writes the cases that differ.
func (c *comparison) matrix(b *strings.Builder) {
	b.WriteString("\n")
	for _, e := range c.Endpoints {
		b.WriteString(pad(e.Letter, 6))
	}
	b.WriteString("case (role of the target)\n")
	short := map[string]string{"": none, "pass": "pass", "fail": "FAIL", "inconclusive": "inc.", "skipped": "skip"}
	for _, row := range c.Differ {
		for _, v := range row.Verdicts {
			b.WriteString(pad(short[v], 6))
		}
		left := 6 * len(row.Verdicts)
		for i, l := range fold(row.Case, max(minWidth-left, 20)) {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", left))
			}
			b.WriteString(l + "\n")
		}
	}
	fmt.Fprintf(b, "\n%s: the case is not in the report; inc.: inconclusive; skip: skipped\n", none)
}

var (
	//go:embed compare.js
	compareJS string
	//go:embed compare.css
	compareCSS string
)

// CompareHTML writes the comparison as a page: a row for each case, a column for each endpoint, what differs
// first. Its error is that of w.
func CompareHTML(w io.Writer, tool string, endpoints []Endpoint) error {
	c := compare(endpoints)
	parts := &page.Parts{}
	same := parts.Add("same", string(execute("matrix-rows", c.Same)))
	if same != nil {
		return same
	}
	document := page.Document{
		Title: "Comparison: " + c.headline(), Tool: line(tool), Style: compareCSS, Script: compareJS, Parts: parts,
		Body: execute("compare", struct {
			*comparison
			Headline string
			Count    int
		}{c, c.headline(), len(c.Same)}),
	}
	return document.Write(w)
}
