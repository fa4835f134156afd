package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// The page and its style and script. They stand in the page itself, and a policy
// in it allows nothing else: neither what a target slipped in, if ever it came past
// the template's escapes, nor anything from a network.
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
	pageExchanges    = 4 << 20 // octets of the page for all exchanges; failures come first
	pageEvents       = 120     // events of an exchange that did not pass
	pageEventsPass   = 24      // events of one that did
	pageOctets       = 256     // octets of an event that tells something
	pageOctetsFolded = 64      // of one that does not
)

// HTML writes a report as one page of HTML that needs nothing else, to be opened
// from a file: coverage, the results with a filter, each with its exchange, and
// the clauses with their cases. The page has some megabytes at most: if there is
// more, it leaves out the exchanges of cases that passed, and says so.
//
// Each result has a place of its own in the page, CASE@ROLE, that a link can name:
// report.html#rfc5041-7.1-4/end-one-octet-beyond@responder. A filter may follow, or
// stand alone: report.html#?verdict=fail&rfc=RFC+5041.
//
// The error is that of w.
func HTML(w io.Writer, r *conformance.Report) error {
	p := &page{
		Style: template.CSS(pageCSS), StyleHash: hash(pageCSS),
		Script: template.JS(pageJS), ScriptHash: hash(pageJS),
		Tool: line(r.Tool), Target: line(r.Target), Profile: line(r.Profile), Strict: r.Strict,
		Began: r.Began.UTC().Format("2 January 2006, 15:04:05 MST"), BeganISO: r.Began.UTC().Format(time.RFC3339),
		Took: seconds(r.Duration), Totals: r.Totals,
		Outcome: strings.ToUpper(string(r.Outcome())), Headline: line(r.Headline()), Passed: r.Outcome() == conformance.Passed,
	}
	p.results(r)
	p.coverage(r)
	p.clauses(r)
	return pageTemplate.Execute(w, p)
}

// hash names a text as a Content-Security-Policy does.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
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

// exchange draws the exchange of a case, if it has one and there is room for it.
func (p *page) exchange(r *conformance.Result) template.HTML {
	if len(r.Exchange) == 0 {
		return ""
	}
	const left = `<p class="note">The exchange is left out, to keep this page small; the JSON report has it.</p>`
	if p.exchanges > pageExchanges {
		return left
	}
	n := pageEvents
	if r.Verdict == conformance.Pass || r.Verdict == conformance.Skipped {
		n = pageEventsPass
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "exchange", pageEventsOf(r.Exchange, n)); err != nil {
		return left // a Buffer takes everything, and the template fits its data
	}
	if p.exchanges += b.Len(); p.exchanges > pageExchanges {
		return left
	}
	return template.HTML(b.String())
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
			out = append(out, pageEvent{Class: "control note", What: fmt.Sprintf("connection %d", c)})
			current = c
		}
		out = append(out, pageEventOf(s.event, s.tells))
	}
	return out
}

func pageEventOf(e wire.Event, tells bool) pageEvent {
	v := pageEvent{At: fmt.Sprintf("%.6f", e.At.Seconds()), What: line(e.What), Wrong: wrong(e), Open: tells}
	by := wire.Control
	if e.By == wire.Tester || e.By == wire.Target {
		by = e.By
	}
	v.Class = string(by) + " " + [...]string{arrow: "arrow", remark: "remark", note: "note"}[kindOf(e)]
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
