package nfsbench

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Table prints results as human-readable text, a row as soon as it is there.
type Table struct {
	W    io.Writer
	last Test
}

// Row prints a result.
func (t *Table) Row(r Result) {
	type column struct{ title, value string }
	columns := []column{{"test", string(r.Test)}}
	if r.Size > 0 {
		columns = append(columns, column{"bytes", fmt.Sprint(r.Size)})
	}
	if r.Depth > 0 {
		columns = append(columns, column{"depth", fmt.Sprint(r.Depth)})
	} else {
		columns = append(columns, column{"callers", fmt.Sprint(r.Callers)})
	}
	columns = append(columns, column{"calls/s", fmt.Sprintf("%.0f", r.Calls)})
	if r.Bytes > 0 {
		columns = append(columns, column{"MB/s", fmt.Sprintf("%.1f", r.Bytes/1e6)})
	}
	if l := r.Latency; l != nil {
		columns = append(columns, column{"p50 µs", micros(l.P50)}, column{"p99 µs", micros(l.P99)}, column{"max µs", micros(l.Max)})
	}
	line := func(text func(column) string) {
		var b strings.Builder
		for i, c := range columns {
			fmt.Fprintf(&b, "%*s", cmp.Or(min(i, 1), -1)*10, text(c))
		}
		fmt.Fprintln(t.W, strings.TrimRight(b.String(), " "))
	}
	if r.Test != t.last {
		if t.last != "" {
			fmt.Fprintln(t.W)
		}
		t.last = r.Test
		line(func(c column) string { return c.title })
	}
	line(func(c column) string { return c.value })
}

func micros(ns int64) string {
	return fmt.Sprintf("%.1f", float64(ns)/float64(time.Microsecond))
}
