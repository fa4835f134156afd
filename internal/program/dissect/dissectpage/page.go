package dissectpage

import (
	"bytes"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"urnic/internal/host/printable"
	"urnic/internal/page"
	"urnic/internal/program/dissect"
)

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
	rowsPerPart    = 2000    // rows of the ladder that are decompressed together
	maxRows        = 4 << 20 // rows of the ladder
	maxConnections = 1000    // in the table
	maxViolations  = 1000
	maxTerminates  = 200
	maxCharted     = 64 // connections with charts
)

// A Page collects what is found in a capture. Its Handle is a dissect.Handler.
type Page struct {
	options dissect.Options
	start   time.Time
	parts   page.Parts
	rows    []row
	index   []piece
	all     int // rows
	leftOut int

	connections []*dissect.Connection
	charts      map[int]*chart
	violations  []finding
	terminates  []finding
	moreFound   int // violations and Terminates that are not listed
	broken      int
	err         error
}

// A row of the ladder: seconds, packet, connection, side, kind, text.
type row [6]any

// A piece is a part with rows, and what the filter must know to pass it by.
type piece struct {
	Part  string `json:"part"`
	Rows  int    `json:"rows"`
	Kinds string `json:"kinds"` // one letter for each kind in it
	First int    `json:"first"` // the lowest and the highest connection
	Last  int    `json:"last"`
}

// A finding is a violation or a Terminate.
type finding struct {
	Seconds    string
	Packet     int
	Connection int
	From       string
	Clause     string
	Text       string
}

// New returns an empty page. The options choose what the ladder shows.
func New(o dissect.Options) *Page { return &Page{options: o, charts: map[int]*chart{}} }

// kinds has a letter for each kind of event, in its order; violations are "v".
const kinds = "ssmvncu"

// Handle takes an event.
func (p *Page) Handle(e *dissect.Event) error {
	if p.start.IsZero() {
		p.start = e.At.Time
	}
	n := e.Conn.Number
	if n > len(p.connections) && len(p.connections) < maxConnections {
		p.connections = append(p.connections, e.Conn)
	}
	seconds := e.At.Time.Sub(p.start).Seconds()
	if c := p.chart(n); c != nil {
		c.add(seconds, e)
	}
	kind := kinds[e.Kind]
	found := finding{Seconds: fmt.Sprintf("%.6f", seconds), Packet: e.At.Packet, Connection: n, From: e.From.String()}
	switch {
	case e.Kind == dissect.KindViolation:
		p.broken++
		found.Clause, found.Text = e.Violation.Clause, printable.Escape(e.Violation.Detail)
		p.find(&p.violations, maxViolations, found)
	case e.Kind == dissect.KindMessage && e.Message.Terminate != nil:
		kind = 't'
		found.Text = explain(e.From, e.Message.Terminate)
		p.find(&p.terminates, maxTerminates, found)
	}
	if !p.options.Shows(e) {
		return nil
	}
	p.add(row{float64(int64(seconds*1e6)) / 1e6, e.At.Packet, n, int(e.From), string(kind), printable.Escape(e.String())})
	return p.err
}

func (p *Page) find(list *[]finding, most int, f finding) {
	if len(*list) < most {
		*list = append(*list, f)
	} else {
		p.moreFound++
	}
}

func (p *Page) add(r row) {
	if p.all >= maxRows {
		p.leftOut++
		return
	}
	p.all++
	p.rows = append(p.rows, r)
	if len(p.rows) >= rowsPerPart {
		p.flush()
	}
}

// flush compresses the rows that are there.
func (p *Page) flush() {
	if len(p.rows) == 0 {
		return
	}
	x := piece{Part: fmt.Sprintf("rows-%d", len(p.index)), Rows: len(p.rows)}
	for _, r := range p.rows {
		n, kind := r[2].(int), r[4].(string)
		if x.First == 0 || n < x.First {
			x.First = n
		}
		x.Last = max(x.Last, n)
		if !strings.Contains(x.Kinds, kind) {
			x.Kinds += kind
		}
	}
	if err := p.parts.Add(x.Part, p.rows); err != nil {
		p.err = err
	}
	p.index = append(p.index, x)
	p.rows = p.rows[:0]
}

func (p *Page) chart(n int) *chart {
	c := p.charts[n]
	if c == nil && len(p.charts) < maxCharted {
		c = newChart()
		p.charts[n] = c
	}
	return c
}

// Write writes the page of a capture that has this name. Its error is that of w.
func (p *Page) Write(w io.Writer, tool, file string, r *dissect.Result) error {
	p.flush()
	charts := map[int]*series{}
	for n, c := range p.charts {
		charts[n] = c.series()
	}
	if err := p.parts.Add("index", p.index); err != nil {
		return err
	}
	if err := p.parts.Add("charts", charts); err != nil {
		return err
	}
	view := p.view(file, r)
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, view); err != nil {
		return err
	}
	document := page.Document{
		Title: view.Outcome + ": " + view.Headline + ": " + view.File, Tool: tool,
		Style: pageCSS, Script: pageJS, Body: template.HTML(body.String()), Parts: &p.parts,
	}
	return document.Write(w)
}
