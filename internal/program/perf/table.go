package perf

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"urnic/internal/host/plural"
)

// A Table prints a run as human-readable text, a row as soon as it is there.
type Table struct {
	W      io.Writer
	report *Report
	rows   bool
}

// Begin prints what is measured, and where.
func (t *Table) Begin(r *Report) {
	t.report = r
	what := fmt.Sprintf("%s %s, poll %s, depth %d, CRC %s, markers %s", r.Op, r.Test, r.Poll, r.Depth, onOff(r.CRC), onOff(r.Markers))
	switch r.Test {
	case TestIdle:
		what = fmt.Sprintf("queue pairs connected and idle, depth %d, CRC %s, markers %s", r.Depth, onOff(r.CRC), onOff(r.Markers))
	case TestConnect:
		what = fmt.Sprintf("connections made and closed, %d at a time, CRC %s, markers %s", r.QPs[0], onOff(r.CRC), onOff(r.Markers))
	default:
	}
	if r.Inline {
		what += ", inline"
	}
	if r.Bidir {
		what += ", both directions"
	}
	t.note(what)
	if r.MSS > 0 {
		fmt.Fprintf(t.W, "MULPDU %d, MSS %d, MTU %d\n", r.MULPDU, r.MSS, r.MTU)
	} else if r.MULPDU > 0 {
		fmt.Fprintf(t.W, "MULPDU %d, MTU %d\n", r.MULPDU, r.MTU)
	}
	t.note(strings.Join(nonEmpty(r.CPU, plural.Count(r.Cores, "core"), r.Go, r.OS, r.Kernel), ", "))
	for _, n := range r.Notes {
		t.note(n)
	}
}

func nonEmpty(words ...string) (some []string) {
	for _, w := range words {
		if w != "" {
			some = append(some, w)
		}
	}
	return some
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// A column is a part of a row, as wide as its title at least.
type column struct {
	title, value string
}

// Row prints a result.
func (t *Table) Row(r Result) {
	columns := t.columns(&r)
	if !t.rows {
		t.rows = true
		fmt.Fprintln(t.W)
		t.line(columns, func(c column) string { return c.title })
	}
	t.line(columns, func(c column) string { return c.value })
}

// tableWidth is how many columns of a terminal the table takes.
const tableWidth = 80

// line prints a row, in several lines if it is wider than the table.
func (t *Table) line(columns []column, text func(column) string) {
	var b strings.Builder
	width := 0
	for _, c := range columns {
		w := max(10, len(c.title)+2)
		if width += w; width > tableWidth {
			b.WriteByte('\n')
			width = indent + w
			b.WriteString(strings.Repeat(" ", indent))
		}
		fmt.Fprintf(&b, "%*s", w, text(c))
	}
	fmt.Fprintln(t.W, b.String())
}

// indent is how many columns the further lines of a row or a note begin later.
const indent = 2

// note prints a text in lines of the table's width.
func (t *Table) note(text string) {
	column := 0
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > tableWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	fmt.Fprintln(t.W, b.String())
}

func (t *Table) columns(r *Result) []column {
	var columns []column
	add := func(title, value string) { columns = append(columns, column{title, value}) }
	if r.Size > 0 {
		add("size", sizeText(r.Size))
	}
	if t.report.Test == TestScale || t.report.Test == TestIdle || r.QPs != 1 && t.report.Test != TestConnect {
		add("QPs", fmt.Sprint(r.QPs))
	}
	base := r.Baseline
	if base == nil {
		base = &BaselineResult{}
	}
	switch t.report.Test {
	case TestLatency:
		for _, p := range r.Latency.named() {
			add(p.name, micros(p.value))
		}
		if r.Service != nil {
			add("sent p50", micros(r.Service.P50))
			add("sent p99", micros(r.Service.P99))
			add("messages/s", fmt.Sprintf("%.0f", r.MessagesPerSecond))
		}
		if base.Latency != nil {
			add("TCP p50", micros(base.Latency.P50))
			add("TCP p99", micros(base.Latency.P99))
		}
	case TestConnect:
		add("connections/s", fmt.Sprintf("%.0f", r.ConnectionsPerSecond))
		if r.Baseline != nil {
			add("TCP", fmt.Sprintf("%.0f", base.ConnectionsPerSecond))
		}
	case TestIdle:
		add("seconds", fmt.Sprintf("%.2f", r.Seconds))
	case TestRate:
		add("messages/s", fmt.Sprintf("%.0f", r.MessagesPerSecond))
		add("MB/s", megabytes(r.BytesPerSecond))
		t.addStreams(r, add, func(b *BaselineResult) string { return fmt.Sprintf("%.0f", b.MessagesPerSecond) })
	default:
		add("MB/s", megabytes(r.BytesPerSecond))
		add("messages/s", fmt.Sprintf("%.0f", r.MessagesPerSecond))
		t.addStreams(r, add, func(b *BaselineResult) string { return megabytes(b.BytesPerSecond) })
	}
	if r.Baseline != nil && len(r.Baselines) == 0 {
		addRatio(r.Baseline, add)
	}
	if t.report.Test == TestScale {
		add("to first", fmt.Sprintf("%.2f", r.Scaling))
	}
	if t.report.Test == TestScale || t.report.Test == TestIdle {
		octets, goroutines := "-", "-" // too few to tell
		if r.GoroutinesPerQP != nil {
			octets, goroutines = fmt.Sprintf("%.0f", r.BytesPerQP), fmt.Sprintf("%.2f", *r.GoroutinesPerQP)
		}
		add("bytes/QP", octets)
		add("goroutines/QP", goroutines)
	}
	if r.AllocsPerOp != nil {
		add("allocs/op", fmt.Sprintf("%.3f", *r.AllocsPerOp))
	}
	return columns
}

// addStreams adds both baselines of a stream, each with its ratio.
func (t *Table) addStreams(r *Result, add func(title, value string), figure func(*BaselineResult) string) {
	for i := range r.Baselines {
		b := &r.Baselines[i]
		add(b.Kind+" TCP", figure(b))
		addRatio(b, add)
	}
}

// addRatio adds the ratio to a baseline, and its range over the rounds.
func addRatio(b *BaselineResult, add func(title, value string)) {
	add("ratio", ratioText(b.Ratio))
	if len(b.RatioSamples) > 1 {
		add("ratio range", ratioText(slices.Min(b.RatioSamples))+"-"+ratioText(slices.Max(b.RatioSamples)))
	}
}

// ratioText has two digits at least of small ratios, too.
func ratioText(r float64) string {
	if r < 0.1 {
		return fmt.Sprintf("%.2g", r)
	}
	return fmt.Sprintf("%.2f", r)
}

type namedValue struct {
	name  string
	value float64
}

func (p *Percentiles) named() []namedValue {
	return []namedValue{
		{"min", p.Min},
		{"p50", p.P50},
		{"p90", p.P90},
		{"p99", p.P99},
		{"p99.9", p.P999},
		{"p99.99", p.P9999},
		{"max", p.Max},
		{"mean", p.Mean},
	}
}

// megabytes writes bytes as millions of them.
func megabytes(n float64) string { return fmt.Sprintf("%.1f", n/1e6) }

// micros writes nanoseconds as microseconds.
func micros(ns float64) string {
	return fmt.Sprintf("%.2f", ns/float64(time.Microsecond))
}
