package perf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSizesAreParsed(t *testing.T) {
	all := []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20}
	for text, want := range map[string][]int{
		"64": {64}, "4K": {4096}, "1m": {1 << 20}, "1G": {1 << 30}, "1, 2k,3": {1, 2048, 3}, "all": all,
	} {
		if got, err := ParseSizes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "K", "1T", "2G", "1.5K", "1,,2", "9999999999999999999G", "1KK", strings.Repeat("1,", most) + "1"} {
		if got, err := ParseSizes(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for n, want := range map[int]string{1: "1", 1000: "1000", 1024: "1K", 1536: "1536", 3 << 20: "3M", 1 << 30: "1G"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestMemoryIsParsed(t *testing.T) {
	for text, want := range map[string]uint64{"1": 1, "64k": 64 << 10, "256M": 256 << 20, "100G": 100 << 30} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "G", "1GG", "-1", "1T", "99999999999999G"} {
		if got, err := ParseMemory(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {3}, 2.5: {9, 1, 4, 1}, 7: {1, 7, 100}} {
		if got := median(values); got != want {
			t.Errorf("%v: %v", values, got)
		}
	}
}

func TestPercentilesAreThoseOfTheTimes(t *testing.T) {
	h := newHistogram()
	for i := range 10_000 {
		h.record(time.Duration(i+1) * time.Microsecond)
	}
	h.record(0)               // less than it holds
	h.record(100 * time.Hour) // and more
	for parts := range 2 {
		parts := float64(parts + 1)
		p := h.percentiles(parts)
		for _, tc := range []struct {
			name      string
			got, want float64
		}{{"p50", p.P50, 5e6}, {"p90", p.P90, 9e6}, {"p99", p.P99, 9.9e6}, {"p99.9", p.P999, 9.99e6}, {"min", p.Min, 1}, {"max", p.Max, float64(longest)}} {
			if off := math.Abs(tc.got*parts-tc.want) / tc.want; off > 0.002 {
				t.Errorf("%s is %v parts of %v, want %v", tc.name, parts, tc.got, tc.want)
			}
		}
	}
	curve := h.curve(1)
	for i, p := range curve {
		if p.share >= 1 || i > 0 && (p.share <= curve[i-1].share || p.ns < curve[i-1].ns) {
			t.Fatalf("point %d: %+v", i, p)
		}
	}
	if last := curve[len(curve)-1]; last.share < 0.9998 {
		t.Errorf("the curve ends at %v", last.share)
	}
}

func TestDefaultsAreThoseOfTheTest(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, "write bw event [65536] [1] 64 1s 0 1"},
		{Options{Test: TestLatency, Baseline: true}, "write lat event [64] [1] 1 1s 0 3"},
		{Options{Test: TestRate, Op: OpAtomic}, "atomic rate event [8] [1] 256 1s 0 1"},
		{Options{Test: TestScale, Iterations: 5}, "write scale event [65536] [1 64] 16 0s 5 1"},
		{Options{Test: TestIdle}, "write idle event [1] [256] 16 0s 0 1"},
		{Options{Test: TestConnect}, "write connect event [1] [4] 1 0s 1000 1"},
	} {
		if err := tc.o.Check(); err != nil {
			t.Fatal(err)
		}
		o := tc.o
		if got := fmt.Sprint(o.Op, " ", o.Test, " ", o.Poll, " ", o.Sizes, o.QPs, o.Depth, " ", o.Duration, " ", o.Iterations, " ", o.Rounds); got != tc.want && strings.ReplaceAll(got, "]", "] ") != tc.want {
			t.Errorf("%s; want %s", got, tc.want)
		}
	}
}

func TestRatiosAreThoseOfTheRounds(t *testing.T) {
	r := Result{Samples: []float64{10, 30, 20}}
	r.compare(baselineOf(kindBatched, Result{Samples: []float64{10, 10, 10}, BytesPerSecond: 5}))
	if r.Ratio != 2 || !slices.Equal(r.RatioSamples, []float64{1, 3, 2}) || r.Baseline.Kind != kindBatched || r.Baseline.BytesPerSecond != 5 {
		t.Errorf("%+v, %+v", r, r.Baseline)
	}
}

func TestTallyCountsMessagesAndOctets(t *testing.T) {
	var tally tally
	tally.add(100, timed{seconds: 1, mallocs: 50})
	tally.add(100, timed{seconds: 2, mallocs: 0})
	tally.add(100, timed{seconds: 4, mallocs: 10})
	r := tally.result(setup{Size: 10, QPs: 2}, false)
	if r.Iterations != 300 || r.Seconds != 7 || r.MessagesPerSecond != 50 || r.BytesPerSecond != 500 || *r.AllocsPerOp != 0.1 || !slices.Equal(r.Samples, []float64{1000, 500, 250}) {
		t.Errorf("%+v", r)
	}
	if r := tally.result(setup{Size: 10}, true); !slices.Equal(r.Samples, []float64{100, 50, 25}) {
		t.Errorf("%+v", r)
	}
}

func TestProcessorIsNamed(t *testing.T) {
	for want, text := range map[string]string{
		"Fast 3000": "processor : 0\nmodel name\t: Fast 3000\nmodel name : Other\n",
		"Board 4":   "processor : 0\nModel\t\t: Board 4\n",
		"":          "processor : 0\n",
	} {
		if got := cpuModel([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// wellFormed checks that a picture is XML, and returns its text.
func wellFormed(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "-1.#"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s in\n%s", bad, text)
		}
	}
	return text
}

func TestPlotsOfAnyFigures(t *testing.T) {
	latency := func(ns float64) *Percentiles { return &Percentiles{P50: ns, P99: 2 * ns} }
	for name, r := range map[string]*Report{
		"one size":  {Test: TestBandwidth, Results: []Result{{Size: 64, BytesPerSecond: 5e9}}},
		"no speed":  {Test: TestBandwidth, Results: []Result{{Size: 64}, {Size: 128}}},
		"names":     {Test: TestRate, CPU: `<Fast> & "cheap"`, Results: []Result{{Size: 64, MessagesPerSecond: 1}}},
		"latencies": {Test: TestLatency, Results: []Result{{Size: 1, Latency: latency(10)}, {Size: 1 << 20, Latency: latency(1e9)}}},
		"the same":  {Test: TestLatency, Results: []Result{{Size: 1, Latency: latency(1000)}, {Size: 2, Latency: latency(1000)}}},
		"one trip":  {Test: TestLatency, Results: []Result{{Size: 1, Latency: latency(1), curve: []point{{0, 1}}}}},
		"no trips":  {Test: TestLatency, Results: []Result{{Size: 1, Latency: latency(1)}}},
		"many":      {Test: TestScale, QPs: []int{1, 10}, Results: []Result{{QPs: 1, BytesPerSecond: 1}, {QPs: 10, BytesPerSecond: 99}}},
	} {
		t.Run(name, func(t *testing.T) {
			if text := wellFormed(t, r); !strings.Contains(text, "<polyline") || !strings.HasPrefix(text, "<svg ") {
				t.Errorf("%s", text)
			}
		})
	}
	if err := (&Report{}).WriteSVG(io.Discard); err == nil {
		t.Error("nothing was plotted")
	}
}
