package perf

import (
	"bytes"
	_ "embed" // the page's parts
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"urnic/internal/page"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
)

// WriteHTML writes the results of a run as one page that a browser opens from a file: the last figure first, then the
// plot of [Report.WriteSVG], if the test has one, the table, and what was measured where. tool is the program
// that makes the page, with its version. The error is that of w.
func (r *Report) WriteHTML(w io.Writer, tool string) error {
	view := struct {
		Title, Headline string
		Plot            template.HTML
		Columns         []string
		Rows            [][]string
		Facts           [][2]string
		Notes           []string
		Error           string
	}{Title: r.pageTitle(), Headline: r.headline(), Notes: r.Notes, Error: r.Error, Facts: r.facts()}
	if len(r.Results) > 0 && r.Test != TestIdle && r.Test != TestConnect {
		var b bytes.Buffer
		if err := r.WriteSVG(&b); err != nil {
			return err
		}
		view.Plot = template.HTML(b.String())
	}
	t := &Table{report: r}
	for i := range r.Results {
		columns := t.columns(&r.Results[i])
		if i == 0 {
			for _, c := range columns {
				view.Columns = append(view.Columns, c.title)
			}
		}
		var row []string
		for _, c := range columns {
			row = append(row, c.value)
		}
		view.Rows = append(view.Rows, row)
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, view); err != nil {
		return err
	}
	d := page.Document{Title: view.Title, Tool: tool, Style: pageCSS, Body: template.HTML(body.String())}
	return d.Write(w)
}

func (r *Report) pageTitle() string {
	switch r.Test {
	case TestIdle:
		return "Idle queue pairs of iWARP"
	case TestConnect:
		return "Connections of iWARP, made and closed"
	default:
		return fmt.Sprintf("RDMA %s over iWARP: %s", opTitle(r.Op), testTitle(r))
	}
}

// headline says in a sentence what the best result is, and how it compares to bare TCP.
func (r *Report) headline() string {
	if len(r.Results) == 0 {
		return "There are no results."
	}
	best := r.best()
	var b strings.Builder
	switch r.Test {
	case TestLatency:
		fmt.Fprintf(&b, "%s µs at the median with messages of %s bytes, %s µs at 99 %%", micros(best.Latency.P50), sizeText(best.Size), micros(best.Latency.P99))
	case TestRate:
		fmt.Fprintf(&b, "%.0f messages per second of %s bytes", best.MessagesPerSecond, sizeText(best.Size))
	case TestConnect:
		fmt.Fprintf(&b, "%.0f connections per second", best.ConnectionsPerSecond)
	case TestIdle:
		fmt.Fprintf(&b, "%.0f bytes for each of %d idle queue pairs", best.BytesPerQP, best.QPs)
	default:
		fmt.Fprintf(&b, "%s MB/s with messages of %s bytes", megabytes(best.BytesPerSecond), sizeText(best.Size))
		if r.Test == TestScale {
			fmt.Fprintf(&b, " on %d queue pairs", best.QPs)
		}
	}
	if best.Ratio > 0 && best.Baseline != nil {
		what := "bare TCP"
		if len(best.Baselines) > 0 {
			what += ", " + best.Baseline.Kind
		}
		fmt.Fprintf(&b, ": %s times %s", ratioText(best.Ratio), what)
	}
	return b.String() + "."
}

// best returns the fastest result.
func (r *Report) best() *Result {
	best := &r.Results[0]
	for i := range r.Results[1:] {
		next := &r.Results[i+1]
		better := next.BytesPerSecond > best.BytesPerSecond
		switch r.Test {
		case TestLatency:
			better = next.Latency.P50 < best.Latency.P50
		case TestRate:
			better = next.MessagesPerSecond > best.MessagesPerSecond
		case TestIdle:
			better = next.QPs > best.QPs
		default:
		}
		if better {
			best = next
		}
	}
	return best
}

// facts are what was measured, and where.
func (r *Report) facts() [][2]string {
	facts := [][2]string{
		{"Completions", string(r.Poll)},
		{"Depth", number(r.Depth)},
		{"CRC", onOff(r.CRC)},
		{"Markers", onOff(r.Markers)},
		{"Rounds", number(r.Rounds)},
		{"MULPDU, bytes", number(r.MULPDU)},
		{"MTU, bytes", number(r.MTU)},
		{"Processor", r.CPU},
		{"Cores", number(r.Cores)},
		{"System", strings.Join(nonEmpty(r.OS, r.Kernel), ", ")},
		{"Go", r.Go},
		{"urnic", r.Urnic},
		{"Date", r.Date},
	}
	return slices.DeleteFunc(facts, func(f [2]string) bool { return f[1] == "" })
}

// number is empty for 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
