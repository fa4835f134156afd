package report

import (
	"bytes"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
	"urnic/internal/page"
)

// The page's own parts, beside those that all pages have.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

// Bounds of the page, so that it opens at once.
const (
	pageExchanges    = 4 << 20   // bytes of the page for the exchanges of cases that failed or are inconclusive
	pageCompressed   = 520 << 10 // bytes of the page for what is compressed
	pageEvents       = 120       // events of an exchange that did not pass
	pageEventsPass   = 24        // events of one that did
	pageOctets       = 256       // bytes of an event that tells something
	pageOctetsFolded = 64        // of one that does not
)

// HTML writes a report as one page of HTML that needs nothing else, to be opened
// from a file: the verdict, coverage, the results with a filter, each with its exchange, and
// the clauses with their cases. Cases that passed or were skipped are compressed, and so are the clauses. The page of a run
// without failures has at most 1 MB: if there is more, it leaves out exchanges of cases that passed, and says so. Failures add up to
// some megabytes.
//
// Each result has a place of its own in the page, CASE@ROLE, that a link can name:
// report.html#rfc5041-7.1-4/end-one-octet-beyond@responder. A filter may follow, or stand alone:
// report.html#?verdict=fail&rfc=RFC+5041.
//
// The error is that of w.
func HTML(w io.Writer, r *conformance.Report) error {
	p := &pageOf{
		Tool: line(r.Tool), Target: line(r.Target), Profile: line(r.Profile), LLP: r.LLP.String(), Strict: r.Strict,
		Began: r.Began.UTC().Format("2 January 2006, 15:04:05 MST"), BeganISO: r.Began.UTC().Format(time.RFC3339),
		Took: seconds(r.Duration), Totals: r.Totals,
		Outcome: strings.ToUpper(string(r.Outcome())), Headline: line(r.Headline()), Passed: r.Outcome() == conformance.Passed,
	}
	p.clauses(r)
	p.results(r)
	p.coverage(r)
	document := page.Document{
		Title: p.Outcome + ": " + p.Headline + ": iWARP conformance of " + p.Target, Tool: p.Tool,
		Style: pageCSS, Script: pageJS, Body: execute("page", p), Parts: &p.parts,
	}
	return document.Write(w)
}

// execute fills a template in, which fits its data.
func execute(name string, data any) template.HTML {
	var b bytes.Buffer
	_ = pageTemplate.ExecuteTemplate(&b, name, data) // a Buffer takes everything
	return template.HTML(b.String())
}

// A pageEvent is an event, or a number of events left out, as the page draws it.
type pageEvent struct {
	LeftOut string
	Class   string
	At      string
	Who     string // for those who don't see the lanes
	What    string
	Wrong   string
	Open    bool   // unfolded
	Label   string // what there is to unfold
	Fields  string
	Octets  string
}

const exchangeLeftOut = `<p class="note">The exchange is left out, to keep this page small; the JSON report has it.</p>`

// quiet reports whether the page holds a case compressed.
func quiet(r *conformance.Result) bool {
	return r.Verdict == conformance.Pass || r.Verdict == conformance.Skipped
}

// exchange draws the exchange of a case, if it has one and there is room for it.
func (p *pageOf) exchange(c *pageCase, r *conformance.Result) {
	switch {
	case len(r.Exchange) == 0:
	case quiet(r):
		if p.parts.Size() > pageCompressed {
			c.Exchange = exchangeLeftOut
			return
		}
		c.Part, c.Index = p.parts.Batch(string(execute("exchange", pageEventsOf(r.Exchange, pageEventsPass))))
	case p.exchanges > pageExchanges:
		c.Exchange = exchangeLeftOut
	default:
		c.Exchange = execute("exchange", pageEventsOf(r.Exchange, pageEvents))
		if p.exchanges += len(c.Exchange); p.exchanges > pageExchanges {
			c.Exchange = exchangeLeftOut
		}
	}
}

func pageEventsOf(events []wire.Event, n int) []pageEvent {
	several, current := connections(events) > 1, 0
	var out []pageEvent
	for _, s := range steps(events, n) {
		if s.leftOut > 0 {
			out = append(out, pageEvent{LeftOut: count(s.leftOut, "event")})
			continue
		}
		if c := s.event.Conn; several && c != 0 && c != current {
			out = append(out, pageEvent{Class: "middle note", What: fmt.Sprintf("connection %d", c)})
			current = c
		}
		out = append(out, pageEventOf(s.event, s.tells))
	}
	return out
}

// lanes names where an event stands.
var lanes = map[wire.Side]string{wire.Tester: "left", wire.Target: "right", wire.Control: "middle"}

func pageEventOf(e wire.Event, tells bool) pageEvent {
	v := pageEvent{At: fmt.Sprintf("%.6f", e.At.Seconds()), What: line(e.What), Wrong: wrong(e), Open: tells}
	by := wire.Control
	if e.By == wire.Tester || e.By == wire.Target {
		by = e.By
	}
	v.Class = lanes[by] + " " + [...]string{arrow: "arrow", remark: "remark", note: "note"}[kindOf(e)]
	v.Who = string(by) + ": "
	if e.Wrong != "" {
		v.Class += " wrong"
	}
	octets := pageOctetsFolded
	if tells {
		octets = pageOctets
	}
	var labels []string
	if len(e.Fields) > 0 {
		labels = append(labels, count(len(e.Fields), "field"))
		v.Fields = strings.Join(columned(e.Fields), "\n")
	}
	if len(e.Octets) > 0 {
		labels = append(labels, count(max(e.Length, len(e.Octets)), "octet"))
		v.Octets = strings.Join(dump(e.Octets, octets, e.Length), "\n")
	}
	v.Label = strings.Join(labels, ", ")
	return v
}
