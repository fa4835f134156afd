package perf

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Tables and notes fit a terminal of 80 columns, and lose nothing.
func TestTablesFit80Columns(t *testing.T) {
	percentiles := &Percentiles{Min: 1e7, P50: 1e7, P90: 1e7, P99: 1e7, P999: 1e7, P9999: 1e7, Max: 1e7, Mean: 1e7}
	base := BaselineResult{Kind: "per-message", Latency: percentiles, Ratio: 1.25, RatioSamples: []float64{1, 2}}
	goroutines, allocs := 2.5, 0.125
	for _, tc := range []struct {
		test   Test
		result Result
		titles string
	}{
		{
			TestLatency,
			Result{Size: 64, QPs: 2, Latency: percentiles, Service: percentiles, Baseline: &base, AllocsPerOp: &allocs},
			"size QPs min p50 p90 p99 p99.9 p99.99 max mean sent p50 sent p99 messages/s TCP p50 TCP p99 ratio ratio range allocs/op",
		},
		{
			TestBandwidth,
			Result{Size: 64, QPs: 2, Baseline: &base, Baselines: []BaselineResult{base, base}, AllocsPerOp: &allocs},
			"size QPs MB/s messages/s per-message TCP ratio ratio range per-message TCP ratio ratio range allocs/op",
		},
		{
			TestScale,
			Result{Size: 64, QPs: 2, GoroutinesPerQP: &goroutines, AllocsPerOp: &allocs},
			"size QPs MB/s messages/s to first bytes/QP goroutines/QP allocs/op",
		},
		{TestIdle, Result{QPs: 2, GoroutinesPerQP: &goroutines}, "QPs seconds bytes/QP goroutines/QP"},
	} {
		var b strings.Builder
		table := &Table{W: &b}
		note := strings.Repeat("a note of many words ", 10)
		table.Begin(&Report{Test: tc.test, Notes: []string{note}, Cores: 1})
		table.Row(tc.result)
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", tc.test, n, line)
			}
		}
		words := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(words, strings.TrimSpace(note)) || !strings.Contains(words, " "+tc.titles+" ") || !strings.Contains(words, "1 core") {
			t.Errorf("%s: no %q, or not the note, in\n%s", tc.test, tc.titles, b.String())
		}
	}
}
