package perf

import (
	"strings"
	"testing"

	"urnic/internal/page/pagetest"
)

// The page of a run: the best figure first, the plot in the colours of the page, the table and where it was measured.
func TestPageOfARun(t *testing.T) {
	base := BaselineResult{Kind: kindBatched, BytesPerSecond: 2e9, Ratio: 0.5}
	r := &Report{
		Op: OpWrite, Test: TestBandwidth, Poll: "event", CPU: "<b>Fast</b>", Cores: 2, Depth: 16, Notes: []string{"a <note>"},
		Results: []Result{
			{Size: 64, QPs: 1, BytesPerSecond: 1e8, MessagesPerSecond: 5, Baseline: &base, Baselines: []BaselineResult{base}, Ratio: 0.05},
			{Size: 65536, QPs: 1, BytesPerSecond: 1e9, MessagesPerSecond: 5, Baseline: &base, Baselines: []BaselineResult{base}, Ratio: 0.5},
		},
	}
	var b strings.Builder
	if err := r.WriteHTML(&b, "urnic"); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for name, flags := range map[string][]string{"light": nil, "phone, dark": {"--window-size=390,800", "--blink-settings=preferredColorScheme=0"}} {
		var got struct {
			Outcome, Line, Paper string
			Cells                []string
			Fits, Dark           bool
			Width                float64
		}
		pagetest.Browse(t, text, "", `
out.outcome = document.querySelector(".outcome").textContent;
out.cells = [...document.querySelectorAll("tbody tr:last-child td")].filter(seen).map((e) => e.textContent);
out.line = getComputedStyle(document.querySelector("polyline")).stroke;
out.paper = getComputedStyle(document.body).backgroundColor;
out.dark = matchMedia("(prefers-color-scheme: dark)").matches;
out.width = document.querySelector("svg").getBoundingClientRect().width;
out.fits = document.documentElement.scrollWidth <= innerWidth;
`, &got, flags...)
		if got.Outcome != "1000.0 MB/s with messages of 64K bytes: 0.50 times bare TCP, batched." {
			t.Errorf("%s: %q is first", name, got.Outcome)
		}
		if strings.Join(got.Cells[:3], " ") != "64K 1000.0 5" {
			t.Errorf("%s: the last row is %q", name, got.Cells)
		}
		if dark := name != "light"; got.Dark != dark || (got.Line == "rgb(20, 84, 156)") == dark || (got.Paper == "rgb(21, 23, 26)") != dark {
			t.Errorf("%s: dark is %v, a line %s on %s", name, got.Dark, got.Line, got.Paper)
		}
		if !got.Fits || got.Width < 100 {
			t.Errorf("%s: the page does not fit, or the plot has %v pixels", name, got.Width)
		}
	}
}

func TestPageOfARunThatFailed(t *testing.T) {
	var b strings.Builder
	if err := (&Report{Test: TestLatency, Op: OpSend, Error: "it <ended>"}).WriteHTML(&b, "urnic"); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "outcome red") || !strings.Contains(text, "<strong>FAILED</strong> it &lt;ended&gt;") {
		t.Error(text)
	}
}

// A page says what the test measures, and which result is the best.
func TestHeadlines(t *testing.T) {
	latency := func(ns float64) *Percentiles { return &Percentiles{P50: ns, P99: 2 * ns} }
	for want, r := range map[string]*Report{
		"There are no results.": {Test: TestBandwidth},
		"2.00 µs at the median with messages of 8 bytes, 4.00 µs at 99 %.": {Test: TestLatency, Results: []Result{
			{Size: 64, Latency: latency(3000)}, {Size: 8, Latency: latency(2000)},
		}},
		"7 messages per second of 64 bytes.":                   {Test: TestRate, Results: []Result{{Size: 64, MessagesPerSecond: 7}, {Size: 128, MessagesPerSecond: 6}}},
		"9.0 MB/s with messages of 64 bytes on 8 queue pairs.": {Test: TestScale, Results: []Result{{Size: 64, QPs: 1}, {Size: 64, QPs: 8, BytesPerSecond: 9e6}}},
		"10 connections per second: 0.30 times bare TCP.":      {Test: TestConnect, Results: []Result{{ConnectionsPerSecond: 10, Ratio: 0.3, Baseline: &BaselineResult{Kind: kindConnections}}}},
		"4096 bytes for each of 256 idle queue pairs.":         {Test: TestIdle, Results: []Result{{QPs: 16, BytesPerQP: 5000}, {QPs: 256, BytesPerQP: 4096}}},
	} {
		if got := r.headline(); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
