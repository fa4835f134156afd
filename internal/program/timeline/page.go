package timeline

import (
	"bytes"
	"cmp"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"urnic/internal/host/printable"
	"urnic/internal/page"
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
	rowsPerPart = 2000
	mostRows    = 400_000
)

// A summary is a row of the table: requests of one operation.
type summary struct {
	Op, Queue        string
	Requests, Failed int
	Bytes            uint64
	Phases           []string // median of each phase, in microseconds
	Total, Slowest   string   // from post to poll, or the last known point
	durations        [][]time.Duration
	totals           []time.Duration
}

// WritePage writes a page about what was recorded, of that name, by a tool. Its error is that of w.
func (t *Timeline) WritePage(w io.Writer, tool, name string) error {
	var parts page.Parts
	var index []any
	rows := make([]any, 0, rowsPerPart)
	for i := range t.Requests[:min(len(t.Requests), mostRows)] {
		if rows = append(rows, t.Requests[i].row()); len(rows) == rowsPerPart || i == min(len(t.Requests), mostRows)-1 {
			part := fmt.Sprintf("rows-%d", len(index))
			if err := parts.Add(part, rows); err != nil {
				return err
			}
			index, rows = append(index, part), rows[:0]
		}
	}
	if err := parts.Add("index", append([]any{}, index...)); err != nil {
		return err
	}
	view := struct {
		Name                      string
		Requests, LeftOut, Failed int
		Processes                 []Process
		Queues                    []string
		Phases                    []string
		Summaries                 []*summary
		Start                     string
	}{
		Name: printable.Escape(name), Requests: len(t.Requests), LeftOut: max(0, len(t.Requests)-mostRows), Processes: t.Processes,
		Summaries: t.summaries(), Start: t.Start.UTC().Format("2006-01-02 15:04:05.000000 MST"),
	}
	for i := range view.Processes {
		view.Processes[i].Note = printable.Escape(view.Processes[i].Note)
	}
	for _, x := range phases {
		view.Phases = append(view.Phases, x.name)
	}
	seen := map[string]bool{}
	for i := range t.Requests {
		r := &t.Requests[i]
		if r.Failed {
			view.Failed++
		}
		if q := r.queue(); !seen[q] && len(view.Queues) < 500 {
			seen[q] = true
			view.Queues = append(view.Queues, q)
		}
	}
	slices.Sort(view.Queues)
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, view); err != nil {
		return err
	}
	document := page.Document{
		Title: fmt.Sprintf("%d work requests: %s", len(t.Requests), view.Name), Tool: tool,
		Style: pageCSS, Script: pageJS, Body: template.HTML(body.String()), Parts: &parts,
	}
	return document.Write(w)
}

// queue names the queue of a request on the page.
func (r *Request) queue() string {
	return fmt.Sprintf("process %d, QP 0x%06x", r.Process+1, r.QPN)
}

// row is a request as the page's script has it: queue, receive or not, operation, ID, bytes, failed, and times
// in microseconds or null.
func (r *Request) row() []any {
	row := []any{r.queue(), r.Recv, r.Op.String(), fmt.Sprintf("0x%x", r.ID), r.Length, r.Failed}
	for _, d := range r.Times {
		if d == None {
			row = append(row, nil)
		} else {
			row = append(row, micros(d))
		}
	}
	return row
}

// summaries returns what requests of each operation took.
func (t *Timeline) summaries() []*summary {
	byOp := map[string]*summary{}
	var all []*summary
	for i := range t.Requests {
		r := &t.Requests[i]
		queue := "send"
		if r.Recv {
			queue = "receive"
		}
		s := byOp[queue+r.Op.String()]
		if s == nil {
			s = &summary{Op: r.Op.String(), Queue: queue, durations: make([][]time.Duration, len(phases))}
			byOp[queue+s.Op] = s
			all = append(all, s)
		}
		s.Requests++
		s.Bytes += r.Length
		if r.Failed {
			s.Failed++
			continue
		}
		for k, x := range phases {
			if from, to, is := r.spanOf(x); is {
				s.durations[k] = append(s.durations[k], to-from)
			}
		}
		if first, last := r.span(); r.known(Posted) && last > first {
			s.totals = append(s.totals, last-first)
		}
	}
	for _, s := range all {
		for _, list := range s.durations {
			s.Phases = append(s.Phases, quantile(list, 50))
		}
		s.Total, s.Slowest = quantile(s.totals, 50), quantile(s.totals, 99)
	}
	slices.SortFunc(all, func(a, b *summary) int { return cmp.Or(cmp.Compare(b.Queue, a.Queue), cmp.Compare(a.Op, b.Op)) })
	return all
}

// quantile returns a quantile of durations in microseconds, or a dash if there are none.
func quantile(list []time.Duration, percent int) string {
	if len(list) == 0 {
		return "–"
	}
	slices.Sort(list)
	return fmt.Sprintf("%.1f", micros(list[min(len(list)*percent/100, len(list)-1)]))
}
