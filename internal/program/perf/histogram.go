package perf

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A histogram holds times with three digits.
type histogram struct{ *hdrhistogram.Histogram }

// longest is the longest time that a histogram holds.
const longest = time.Minute

func newHistogram() *histogram {
	return &histogram{hdrhistogram.New(1, int64(longest), 3)}
}

func (h *histogram) record(d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 1), longest))) // which it has room for
}

// A Percentiles says how long messages took, in nanoseconds.
type Percentiles struct {
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	P9999 float64 `json:"p99_99"`
	Max   float64 `json:"max"`
	Mean  float64 `json:"mean"`
}

// percentiles returns what the histogram says, divided by parts.
func (h *histogram) percentiles(parts float64) *Percentiles {
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / parts }
	return &Percentiles{
		Min: float64(h.Min()) / parts, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99),
		Max: float64(h.Max()) / parts, Mean: h.Mean() / parts,
	}
}

// A point of a latency curve: so many of the messages took no longer.
type point struct {
	share float64 // below 1
	ns    float64
}

// curve returns the latency at shares that come nearer and nearer to 1, as far
// as there are messages to tell.
func (h *histogram) curve(parts float64) []point {
	const perDecade = 12
	var points []point
	total := float64(h.TotalCount())
	for i := 0; ; i++ {
		rest := math.Pow(10, -float64(i)/perDecade)
		if rest*total < 1 {
			return points
		}
		points = append(points, point{1 - rest, float64(h.ValueAtPercentile(100*(1-rest))) / parts})
	}
}
